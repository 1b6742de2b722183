"""What the parent asks of a child, what the child gets for that, and what becomes of its answer."""

import dataclasses
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kerasbench.processes import block, outcome, questions
from kerasbench.processes.block import BlockMember, BlockPolicy
from kerasbench.processes.outcome import Limits, Outcome, Received
from kerasbench.processes.process import Exit
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure, Inventory, Message, Phase, ProbeReport
from kerasbench.protocol.requests import CountRequest, Protocol, TrialRequest
from tests import made

MPS = ProbeReport("torch", "3.12.1", {"torch": "2.15.0"}, [Device("cpu"), Device("mps", 0, "Apple GPU")])


def test_an_interpreter_tells_what_is_installed_without_importing_it() -> None:
    found = questions.inventory("jax", sys.executable)
    assert isinstance(found, Inventory)
    assert (found.python, found.prefix) == (platform.python_version(), sys.prefix)
    assert {"msgspec", "psutil"} <= found.packages.keys()


UNTITLED = """
import numpy as np
from kerasbench import Workload, Scenario
from kerasbench.datasets import Dataset

def draw(samples, rng):
    return np.zeros((samples, 3), np.float32), np.zeros(samples, np.int32)

rows = Dataset("", (3,), draw, load=lambda: draw(8, None))
scenario = Scenario(build=print, data=rows, workloads=(Workload(train=8),))
"""


def test_an_empty_title_of_real_rows_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))
    file = tmp_path / "untitled.py"
    file.write_text(UNTITLED)
    assert questions.fetch(str(file), "default", "jax", sys.executable) == ""


def test_no_operations_at_all_are_an_answer(tmp_path: Path) -> None:
    program = tmp_path / "python"
    said = Message(counted=0.0).encode().decode().strip()
    program.write_text(f"#!/bin/sh\nread -r token request\necho \"$token\" '{said}' > /dev/fd/$2\n")
    program.chmod(0o755)
    assert questions.count(CountRequest("mine.py", "", "default"), str(program)) == 0.0


def test_a_program_that_is_no_interpreter_is_a_failure_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    program.chmod(0o755)
    found = questions.inventory("jax", str(program))
    assert isinstance(found, Failure)
    assert (found.code, found.cause) == (Code.CRASH, "left with exit status 3 in phase 'spawn' without a result")
    assert found.detail == "no such library"


def test_a_program_that_is_not_for_this_machine_is_a_failure_that_names_it(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    found = questions.inventory("jax", str(program))
    assert isinstance(found, Failure)
    assert (found.code, found.phase) == (Code.UNAVAILABLE, "spawn")
    assert str(program) in found.cause and "--python" in found.remedy


def test_a_mac_s_gpu_has_its_chip_s_name() -> None:
    named = questions.with_chip(MPS, "Apple M1")
    assert named.devices == [Device("cpu"), Device("mps", 0, "Apple M1")]
    assert [device.title for device in named.devices] == ["", "Apple M1 (mps)"]


def test_a_chip_that_is_not_told_leaves_the_name_that_the_backend_gave() -> None:
    assert questions.with_chip(MPS, "") == MPS


REQUEST = TrialRequest("mine", "/mine.py", "hash", "default", "jax", made.CPU, 0, "synthetic", Protocol())
RULES = BlockPolicy(lambda columns: iter([range(columns)]), lambda stage, slices: True, lambda: True)


ASKED: dict[str, Callable[[str, dict[str, str]], object]] = {
    "probe": lambda python, kept: questions.probe("jax", python, kept=kept),
    "describe": lambda python, kept: questions.describe(["/mine.py"], python, kept=kept),
    "fetch": lambda python, kept: questions.fetch("/mine.py", "default", "jax", python, kept),
    "count": lambda python, kept: questions.count(CountRequest("/mine.py", "hash", "default"), python, kept),
    "block": lambda python, kept: block.measure(
        [BlockMember(python, REQUEST, Limits(60, "60 s"))], RULES, lambda event: None, True, kept
    ),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_every_child_of_a_run_gets_what_was_let_in_and_nothing_else_that_changes_figures(
    ask: Callable[[str, dict[str, str]], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\nenv >"${0%/*}/env"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    ask(str(program), {"OMP_PROC_BIND": "true"})
    got = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert got["OMP_PROC_BIND"] == "true"
    assert got["KERAS_HOME"] == got["TMPDIR"] != str(tmp_path)
    assert got["PATH"] == os.environ["PATH"]
    assert not {"ATEN_CPU_CAPABILITY", "LD_PRELOAD"} & got.keys()


FINE = Exit(0, False, False, None, "", 0.5, 100, 50, "", "")
LIMITS = Limits(60, "60 s", memory_bytes=1 << 30)
MEASURED = Message(measurement=made.measurement())


def judged(ended: Exit, answer: Message | None, phases: Sequence[Phase] = ()) -> Outcome:
    return outcome.outcome_of(ended, Received(phases=list(phases), answer=answer), LIMITS, started_alone=False)


def test_a_measurement_is_believed_with_what_only_the_parent_sees() -> None:
    found = judged(FINE, MEASURED, [Phase("worker", 110, 120), Phase("train", 120, 145, 5)])
    assert found == Outcome(
        [Phase("spawn", 100, 110), Phase("worker", 110, 120), Phase("train", 120, 145, 5), Phase("exit", 145, 150)],
        50,
        measurement=MEASURED.measurement,
        left_cpu_s=0.5,
        started_alone=False,
    )


@pytest.mark.parametrize(
    ("ended", "answer", "code"),
    [
        (FINE, Message(failure=made.FAILURE), made.FAILURE.code),
        (FINE, None, Code.CRASH),
        (dataclasses.replace(FINE, timed_out=True), None, Code.TIMEOUT),
        (dataclasses.replace(FINE, broke_protocol=True), MEASURED, Code.INVALID),
        (dataclasses.replace(FINE, broke_protocol=True), Message(failure=made.FAILURE), Code.INVALID),
        (dataclasses.replace(FINE, exceeded_bytes=2 << 30), MEASURED, Code.OOM),
    ],
)
def test_what_else_comes_is_a_failure(ended: Exit, answer: Message | None, code: Code) -> None:
    found = judged(ended, answer)
    assert found.failure is not None and found.failure.code is code
    assert (found.measurement, found.phases, found.wall_ns) == (None, [], 50)
