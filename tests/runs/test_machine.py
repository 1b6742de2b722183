"""Memory for one more child, and what is seen around a trial, with a driver that is made up."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import psutil
import pytest

from kerasbench.host import linux, nvidia
from kerasbench.host.noise import Surroundings
from kerasbench.host.nvidia import Sample
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.runs import machine
from kerasbench.runs.machine import MachineMonitor, on_card
from tests import made
from tests.nvml import ONE, SLICE, TWO, FakeCard, Nvml

GIB = 1 << 30
CARD = Device("cuda", 0, "NVIDIA H200")


@pytest.mark.parametrize(
    ("free_gib", "peaks_gib", "fits"),
    [
        ([10, 10], [4, 4], [True]),  # children may take four fifths of what was free
        ([10, 10], [4, 4.1], [False]),
        ([10, 10], [0, 8.1], [False]),
        ([10, 7, 6, 5], [0, 0, 0, 0], [True, True, True]),  # the first holds three, the others one each
        ([10, 7, 4], [0, 0, 0], [True, False]),  # as large as the largest
        ([10, 10, 10], [3, 4, 2], [True, False]),  # which hold nothing yet
        ([10, 10, 10, 10, 10], [3, 9, 2, 3, 1], [False, True, True, False]),  # what did not fit leaves its room
        ([None, None], [1, 1], [True]),  # nobody tells
    ],
)
def test_a_child_fits_beside_what_those_before_it_hold_or_are_known_to_take(
    free_gib: list[int | None], peaks_gib: list[float], fits: list[bool]
) -> None:
    left = [None if one is None else one * GIB for one in free_gib]  # at each look
    budget = machine.MemoryBudget([machine.MemoryPool(lambda: left.pop(0), [int(one * GIB) for one in peaks_gib])])
    assert [budget() for _ in fits] == fits


@pytest.mark.parametrize(
    ("peaks_gib", "parameters", "at_once"),
    [
        ((0, 0, 0), 1000, True),
        ((0,) * 6, 1000, True),
        ((0,) * 7, 1000, False),
        ((0, 0, 0), 100_000_000, False),
        ((0, 5), None, True),
        ((0, 7), None, False),
        ((9, 9), None, True),  # all are known: the budget decides
    ],
)
def test_children_start_at_once_where_memory_is_ample(
    monkeypatch: pytest.MonkeyPatch, peaks_gib: Sequence[int], parameters: int | None, at_once: bool
) -> None:
    monkeypatch.setattr(machine, "available_bytes", lambda: 10 * GIB)
    assert machine.can_start_at_once([peak * GIB for peak in peaks_gib], parameters) is at_once


def test_what_each_child_was_seen_to_take_is_told_and_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    card = FakeCard(ONE, free_bytes=10 * GIB)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([card]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    budget = machine.memory_budget([CARD, made.CPU, CARD, CARD], [GIB] * 4, [0] * 4)
    for free_gib in (8, 8, 5):
        card.free_bytes = free_gib * GIB
        budget()
    assert budget.seen_on_cards() == {0: 2 * GIB, 1: 0, 2: 3 * GIB}
    pool = machine.MemoryPool(iter([10 * GIB, 6 * GIB, 6 * GIB]).__next__, [4 * GIB, 9 * GIB, 0])
    assert [pool.fits([0], 1), pool.fits([0], 2)] == [False, True]
    assert pool.seen_bytes == {0: 4 * GIB}


def test_a_card_for_one_process_has_one_column_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [FakeCard(ONE, free_bytes=10 * GIB, mode=3), FakeCard(TWO, free_bytes=10 * GIB)]
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(cards))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    other = Device("cuda", 1)
    budget = machine.memory_budget([CARD, CARD, other, made.CPU, other], [0] * 5, [0] * 5)
    assert [budget() for _ in range(4)] == [False, True, True, True]


def test_memory_and_each_card_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    card = FakeCard(ONE, free_bytes=10 * GIB)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([card]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(linux, "memory_left", lambda: None)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 100 * GIB}))
    budget = machine.memory_budget([made.CPU, CARD, CARD], [GIB] * 3, [0, 5 * GIB, 5 * GIB])
    assert (budget(), budget()) == (True, False)
    assert machine.memory_budget([CARD, made.CPU], [GIB] * 2, [5 * GIB, 0])()  # which takes nothing of the card
    budget = machine.memory_budget([made.CPU, made.CPU], [60 * GIB] * 2, [0, 0])
    assert not budget()
    monkeypatch.setattr(linux, "memory_left", lambda: 10 * GIB)  # a container's
    assert not machine.memory_budget([made.CPU, made.CPU], [5 * GIB] * 2, [0, 0])()
    assert machine.memory_budget([made.CPU, made.CPU], [4 * GIB] * 2, [0, 0])()


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


MONITOR = MachineMonitor(look=lambda sample_s: made.state())


def watched(device: Device, trial: Callable[[], Outcome] = outcome) -> tuple[Outcome, Surroundings]:
    """A block of one column."""
    (found,), (seen,) = MONITOR.watch([device], lambda: [trial()], lambda reason: None)
    assert found is not None
    return found, seen


@pytest.mark.usefixtures("nvml")
def test_a_block_waits_once_for_heat_and_each_column_has_its_own_card() -> None:
    waits = iter([12.0])
    monitor = MachineMonitor(look=lambda sample_s: made.state(), cool=lambda on_wait: next(waits))
    devices = [made.CPU, CUDA, replace(CUDA, index=0), CUDA]
    own = [outcome(), outcome(TWO.removeprefix("GPU-")), outcome(ONE.removeprefix("GPU-"))]
    found, seen = monitor.watch(devices, lambda: [*own, None], lambda reason: None)
    assert list(found) == [*own, None]
    assert [(one.card, one.waited_s) for one in seen] == [("", 12.0), (TWO, 12.0), (ONE, 12.0), (TWO, 12.0)]
    assert [one.gpu_neighbours for one in seen] == [[], [4711], [], [4711]]
    assert [one.gpu is None for one in seen] == [True, False, False, False]


def test_a_trial_is_judged_by_what_surrounded_it_and_by_the_clocks_before() -> None:
    judge = MachineMonitor().judge
    cuda = replace(made.trial(), device=CUDA)
    fast, slow = (made.surroundings(gpu=(Sample(mhz, [], 60),)) for mhz in (1980, 1000))
    assert judge(cuda, fast).noise == []
    (signal,) = judge(cuda, slow).noise
    assert (signal.name, judge(cuda, slow).surroundings) == ("gpu clock", slow)
    failed = replace(made.trial(failure=made.FAILURE), device=made.CPU)
    assert judge(failed, made.surroundings(after=made.state(thermal_level=1))).noise[0].name == "heat"


@pytest.mark.parametrize("device", [Device("cpu"), Device("rocm"), Device("mps")])
def test_no_other_device_asks_nvidia_s_driver(device: Device, nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "nvmlInit", lambda: pytest.fail("the driver was asked"))
    _, seen = watched(device)
    assert (seen.gpu, seen.gpu_neighbours) == (None, [])


def test_a_trial_on_a_card_goes_on_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found, seen = watched(CUDA)
    assert found.measurement is not None
    assert (seen.gpu, seen.gpu_neighbours) == ([], [])  # which is told from a device that is no card


@pytest.mark.usefixtures("nvml")
def test_another_card_than_the_one_that_was_asked_for_is_a_failure() -> None:
    other = ONE.removeprefix("GPU-")
    found, seen = watched(CUDA, lambda: outcome(other))
    cause = f"asked for gpu:1, which is {TWO}, but CUDA computed on {other}"
    remedy = f"set CUDA_VISIBLE_DEVICES={TWO} and add --device gpu"
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
