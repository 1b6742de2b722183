"""Scenario files that go wrong, in real children: each is a failure with its code, and nothing is left behind."""

import re
from pathlib import Path

import psutil
import pytest

from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code
from tests import stand_in
from tests.real import trials

pytestmark = pytest.mark.real

CASES = [
    ("raises_in_build", Code.ERROR, r"raises_in_build\.py, line 5: ValueError: no model today", "build"),
    ("raises_in_data", Code.ERROR, r"raises_in_data\.py, line 5: KeyError: 'column'", "data"),
    ("raises_in_fit", Code.ERROR, r"raises_in_fit\.py, line 8: ArithmeticError", "first step"),
    ("exits_in_build", Code.CRASH, r"left with exit status 3 in phase 'build'", "build"),
    ("leaves_in_build", Code.CRASH, r"left with exit status 0 in phase 'build'", "build"),
    ("hangs_in_build", Code.TIMEOUT, r"stopped in phase 'build' by --timeout 10 s", "build"),
    ("becomes_nan", Code.NONFINITE, r"the loss became (nan|inf)", ""),
    ("miscounts", Code.INVALID, r"has 10 parameters, the scenario says 11", "build"),
    ("not_compiled", Code.INVALID, r"must return a compiled Keras model", "build"),
    ("stops_early", Code.INVALID, r"training was ended after \d slices, before enough were measured", ""),
    ("runs_eagerly", Code.INVALID, r"run_eagerly or steps_per_execution cannot be measured", "build"),
    ("uses_another_framework", Code.UNSUPPORTED, r"uses_another_framework\.py, line 5: imports \w+, which", "build"),
]


@pytest.mark.parametrize(("name", "code", "cause", "phase"), CASES, ids=[case[0] for case in CASES])
def test_a_fault_is_a_failure_with_its_code_and_cause(
    faults: Path, name: str, code: Code, cause: str, phase: str
) -> None:
    outcome = trials.run(faults / f"{name}.py", "jax", timeout_s=10 if name == "hangs_in_build" else 120)
    assert outcome.measurement is None
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.phase) == (code, phase)
    assert re.search(cause, outcome.failure.cause)
    assert outcome.failure.remedy
    assert name != "exits_in_build" or "I have had enough" in outcome.failure.detail
    assert psutil.Process().children(recursive=True) == []


@pytest.mark.parametrize("name", ["shouts", "changes_its_surroundings"])
def test_what_is_odd_but_harmless_is_measured(faults: Path, name: str) -> None:
    assert trials.measured(trials.run(faults / f"{name}.py", "jax")).parameters == 10


def test_a_daemon_that_a_scenario_starts_does_not_outlive_its_trial(faults: Path, tmp_path: Path) -> None:
    place = tmp_path / "daemon"
    trials.measured(trials.run(faults / "leaves_a_daemon.py", "jax", kept={"DAEMON_FILE": str(place)}))
    number = int(place.read_text())
    assert all(map(stand_in.is_gone, stand_in.existing([number])))


def test_a_peak_above_the_limit_of_memory_is_a_failure_though_it_was_never_seen(faults: Path) -> None:
    # The import of a framework reaches its peak between two looks, if it is quick.
    failure = trials.run(faults / "fine.py", "jax", memory_bytes=100 << 20).failure
    assert failure is not None
    assert failure.code is Code.OOM
    assert re.search(r"^used \d+(\.\d+)? MiB .*, the limit is 100 MiB \(--memory-limit\)$", failure.cause)


def test_what_the_parent_holds_counts_for_no_limit_of_memory(faults: Path) -> None:
    held = b"x" * (1200 << 20)
    found = trials.measured(trials.run(faults / "fine.py", "jax", memory_bytes=len(held)))
    assert found.peak_rss_bytes < len(held)


def test_a_file_that_changes_during_the_run_is_refused(
    faults: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fine.py"
    file.write_text((faults / "fine.py").read_text())
    monkeypatch.setattr(trials, "source_hash", lambda *path: "what it was before")
    failure = trials.run(file, "jax").failure
    assert failure is not None
    assert (failure.code, "changed while the run was going on" in failure.cause) == (Code.INVALID, True)


def test_tensorflow_s_silent_fall_back_to_the_cpu_is_never_a_row(faults: Path) -> None:
    # TensorFlow runs on the CPU without a word where the GPU is not there.
    outcome = trials.run(faults / "fine.py", "tensorflow", device=Device("cuda", 99), protocol=trials.STEPS_ALONE)
    failure = outcome.failure
    assert failure is not None
    assert failure.code is Code.WRONG_DEVICE
    assert failure.cause == "asked for cuda:99, but weights lived on cpu:0"


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_a_gpu_that_is_not_there_is_a_failure(faults: Path, backend: str) -> None:
    outcome = trials.run(faults / "fine.py", backend, device=Device("cuda", 99))
    assert outcome.measurement is None
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.phase) == (Code.UNAVAILABLE, "device")
