"""A child is asked; what the commands do with the answers is in tests/runs and tests/cli."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench.processes import block, questions
from kerasbench.processes.block import BlockMember
from kerasbench.processes.process import Limits
from kerasbench.processes.questions import GivenUp, Tick, together
from kerasbench.protocol.columns import CPU, GPU, Device
from kerasbench.protocol.messages import Code, Failure, Message, ProbeReport
from kerasbench.protocol.requests import CountRequest, DescribeRequest, ModelConfig, TrialPlan, TrialRequest
from tests import made

pytestmark = pytest.mark.processes


def test_what_is_found_stands_in_the_order_of_the_items() -> None:
    later = threading.Event()

    def work(item: int, tick: Tick) -> int:
        if item == 0:
            later.wait(60)
        later.set()
        return item * item

    assert together(work, [0, 1, 2, 3], at_once=2) == [0, 1, 4, 9]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, ValueError])
def test_when_one_fails_the_others_are_given_up_and_no_further_one_is_begun(ending: type[BaseException]) -> None:
    begun: list[int] = []
    given_up: list[int] = []

    def work(item: int, tick: Tick) -> None:
        begun.append(item)
        if item == 0:
            raise ending
        try:
            while True:
                tick()
        except GivenUp:
            given_up.append(item)
            raise

    with pytest.raises(ending):
        together(work, range(100), at_once=2)
    assert sorted(given_up) == sorted(item for item in begun if item)
    assert len(begun) <= 3  # a thread may take one more between the failure and the end


def program(folder: Path, content: bytes) -> str:
    file = folder / "python"
    file.write_bytes(content)
    file.chmod(0o755)
    return str(file)


def test_a_program_that_is_not_for_this_machine_is_a_failure_that_names_it(tmp_path: Path) -> None:
    python = program(tmp_path, b"\x7fELF")
    failure = questions.inventory(python)
    assert isinstance(failure, Failure) and (failure.code, failure.phase) == (Code.UNAVAILABLE, "spawn")
    assert python in failure.cause and "--python" in failure.remedy


def test_no_operations_at_all_are_an_answer(tmp_path: Path) -> None:
    answer = Message(counted=0.0).encode().decode().strip()
    script = f"#!/bin/sh\nread -r token request\necho \"$token\" '{answer}' > /dev/fd/$2\n"
    assert questions.count(CountRequest("mine.py", "", "default"), program(tmp_path, script.encode())) == 0.0


def test_a_file_that_does_not_end_is_stopped_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(questions.TIMES, DescribeRequest, (0.1, "describing scenario files"))
    failure = questions.describe(
        ["/mine.py"], program(tmp_path, b"#!/bin/sh\nexec sleep 60\n"), None, {}, ModelConfig()
    )
    assert isinstance(failure, Failure) and failure.code is Code.TIMEOUT
    assert "the limit of 0.1 s for describing scenario files" in failure.cause


def test_the_gpu_of_a_mac_has_the_name_of_its_chip() -> None:
    report = ProbeReport("tensorflow", "3.12.1", {}, [Device(CPU), Device(GPU, name="METAL")])
    assert questions.with_chip(report, "Apple M1").devices == [Device(CPU), Device(GPU, name="Apple M1")]
    assert questions.with_chip(report, "") == report  # a chip that does not tell its name takes none away


Ask = Callable[[str, dict[str, str]], object]
REQUEST = TrialRequest("mine", "/mine.py", "hash", "default", "jax", made.CPU, 0, "synthetic", TrialPlan())
ASKED: dict[str, Ask] = {
    "probe": lambda python, kept: questions.probe("jax", python, kept=kept),
    "describe": lambda python, kept: questions.describe(["/mine.py"], python, None, kept, ModelConfig()),
    "fetch": lambda python, kept: questions.fetch("/mine.py", "default", "jax", python, kept),
    "count": lambda python, kept: questions.count(CountRequest("/mine.py", "hash", "default"), python, kept),
    "block": lambda python, kept: block.measure(
        [BlockMember(python, REQUEST, Limits(60, "60 s"))], Mock(), Mock(), True, kept
    ),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_every_child_gets_what_was_let_in_alone(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    ask(program(tmp_path, b'#!/bin/sh\nenv >"${0%/*}/env"\n'), {"OMP_PROC_BIND": "true"})
    got = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert got["OMP_PROC_BIND"] == "true"
    assert got["KERAS_HOME"] == got["TMPDIR"] != str(tmp_path)
    assert got["PATH"] == os.environ["PATH"]
    assert not {"ATEN_CPU_CAPABILITY", "LD_PRELOAD"} & got.keys()
