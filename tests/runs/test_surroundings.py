"""What is seen around one trial, with a driver that is made up."""

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kerasbench.host import nvidia
from kerasbench.host.noise import Surroundings
from kerasbench.host.nvidia import Sample
from kerasbench.processes import process
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.runs.surroundings import Judge, Watch, on_card
from tests import made
from tests.nvml import ONE, SLICE, TWO, FakeCard, Nvml

CUDA = Device("cuda", 1, "NVIDIA H200")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    """Two cards, of which the second is at work."""
    found = Nvml([FakeCard(ONE), FakeCard(TWO, readings=[(1755, 0x4, 61)], processes=[4711])])
    monkeypatch.setitem(sys.modules, "pynvml", found)
    monkeypatch.setattr(nvidia, "INTERVAL_S", 0.001)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return found


def outcome(*cards: str) -> Outcome:
    """A trial to which CUDA showed these cards."""
    measured = made.measurement()
    return Outcome([], 1, measurement=replace(measured, proof=replace(measured.proof, cards=list(cards))))


WATCH = Watch(look=lambda sample_s: made.state())


def watched(device: Device, trial: Callable[[], Outcome] = outcome) -> tuple[Outcome, Surroundings]:
    """A block of one column."""
    (found,), (seen,) = WATCH([device], lambda: [trial()], lambda reason: None)
    assert found is not None
    return found, seen


@pytest.mark.usefixtures("nvml")
def test_a_block_waits_once_for_heat_and_each_column_has_its_own_card() -> None:
    waits = iter([12.0])
    watch = Watch(look=lambda sample_s: made.state(), cool=lambda on_wait: next(waits))
    devices = [made.CPU, CUDA, replace(CUDA, index=0), CUDA]
    own = [outcome(), outcome(TWO.removeprefix("GPU-")), outcome(ONE.removeprefix("GPU-"))]
    found, seen = watch(devices, lambda: [*own, None], lambda reason: None)
    assert list(found) == [*own, None]
    assert [(one.card, one.waited_s) for one in seen] == [("", 12.0), (TWO, 12.0), (ONE, 12.0), (TWO, 12.0)]
    assert [one.gpu_neighbours for one in seen] == [[], [4711], [], [4711]]


def test_a_trial_is_judged_by_what_surrounded_it_and_by_those_before() -> None:
    judge = Judge()
    cuda = replace(made.trial(), device=CUDA)
    fast, slow = (made.surroundings(gpu=(Sample(mhz, [], 60),)) for mhz in (1980, 1000))
    assert judge(cuda, fast).noise == []
    (signal,) = judge(cuda, slow).noise
    assert (signal.name, judge(cuda, slow).surroundings) == ("gpu clock", slow)
    failed = replace(made.trial(failure=made.FAILURE), device=made.CPU)
    assert judge(failed, made.surroundings(after=made.state(10.0, thermal_level=1))).noise[0].name == "heat"


def test_a_trial_on_a_card_is_watched_by_the_driver_s_library(nvml: Nvml) -> None:
    def trial() -> Outcome:
        nvml.wait_for(2)
        return outcome()

    _, seen = watched(CUDA, trial)
    assert seen.gpu is not None
    assert (seen.gpu[:2], seen.gpu_neighbours) == ([Sample(1755, ["sw_power_cap"], 61)] * 2, [4711])
    assert nvml.opened == 0


@pytest.mark.parametrize("device", [Device("cpu"), Device("rocm"), Device("mps")])
def test_no_other_device_asks_nvidia_s_driver(device: Device, nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "nvmlInit", lambda: pytest.fail("the driver was asked"))
    _, seen = watched(device)
    assert (seen.gpu, seen.gpu_neighbours) == (None, [])


def test_a_trial_on_a_card_goes_on_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found, seen = watched(CUDA)
    assert found.measurement is not None
    assert (seen.gpu, seen.gpu_neighbours) == ([], [])


@pytest.mark.usefixtures("nvml")
def test_a_full_disk_does_not_end_the_watching_of_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("TemporaryFile", "NamedTemporaryFile", "mkstemp", "mkdtemp"):
        monkeypatch.setattr(tempfile, name, full)
    assert watched(CUDA)[0].measurement is not None


@pytest.mark.usefixtures("nvml")
def test_the_card_that_was_asked_for_is_recorded_beside_the_one_that_cuda_used() -> None:
    found, seen = watched(CUDA, lambda: outcome(TWO.removeprefix("GPU-")))
    assert found.measurement is not None
    assert (seen.card, found.measurement.proof.cards) == (TWO, [TWO.removeprefix("GPU-")])


@pytest.mark.usefixtures("nvml")
def test_another_card_than_the_one_that_was_asked_for_is_a_failure() -> None:
    other = ONE.removeprefix("GPU-")
    found, seen = watched(CUDA, lambda: outcome(other))
    cause = f"asked for gpu:1, which is {TWO}, but CUDA computed on {other}"
    remedy = f"CUDA_VISIBLE_DEVICES={TWO} and --device gpu ask for that card by its name"
    assert (found.measurement, found.failure) == (None, Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))
    assert seen.card == TWO


def test_what_the_user_has_left_visible_is_what_is_asked_for(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"1,{ONE[:12]}")
    found, seen = watched(CUDA, lambda: outcome(ONE.removeprefix("GPU-")))
    assert (seen.card, found.failure) == (ONE, None)
    assert watched(replace(CUDA, index=0), lambda: outcome(TWO.removeprefix("GPU-")))[1].card == TWO


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (ONE, (ONE.removeprefix("GPU-"),)),
        (SLICE, (SLICE.removeprefix("MIG-"),)),
        (ONE, ()),  # CUDA's driver does not tell
        ("", (ONE.removeprefix("GPU-"),)),  # NVML does not
    ],
)
def test_only_what_both_sides_tell_is_compared(asked: str, shown: tuple[str, ...]) -> None:
    found = outcome(*shown)
    assert on_card(found, CUDA, asked) is found


def test_a_trial_that_failed_has_failed_for_its_own_reason() -> None:
    failed = Outcome([], 1, failure=Failure(Code.OOM, "out of memory", ""))
    assert on_card(failed, CUDA, ONE) is failed


# A child that uses a processor, and a grandchild that does so too and is killed with it.
BUSY = """
import os, sys, time
def be_busy():
    while time.process_time() < 0.3: pass
fd = int(sys.argv[1])
said, saying = os.pipe()
if os.fork() == 0:
    be_busy()
    os.write(saying, b'.')
    while True: time.sleep(60)
be_busy()
os.read(said, 1)
os._exit(0)
"""


@pytest.mark.processes
def test_a_child_s_processor_time_is_that_of_all_that_it_started(tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    usual: list[float] = []

    def trial() -> Outcome:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = process.run(sys.executable, os.environ, b"", 60, lambda line: True, worker=script)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        usual.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return Outcome([], ended.wall_ns, left_cpu_s=ended.left_cpu_s)

    outcome, seen = watched(made.CPU, trial)
    assert outcome.left_cpu_s >= 0.29 and usual[0] >= 0.29
    assert seen.child_cpu_s == pytest.approx(usual[0] + outcome.left_cpu_s)
