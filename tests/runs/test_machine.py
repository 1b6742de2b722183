import sys
from collections.abc import Sequence

import psutil
import pytest

from kerasbench.host import linux, nvidia
from kerasbench.host.noise import Surroundings
from kerasbench.host.nvidia import Sample
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.runs.machine import MachineMonitor, MemoryBudget, MemoryPool, memory_budget, on_card, starts_at_once
from tests import made
from tests.nvml import ONE, SLICE, TWO, FakeCard, Nvml

GIB = 1 << 30
FIRST, SECOND = (Device("cuda", index, "NVIDIA H200") for index in (0, 1))
ONE_SHOWN, TWO_SHOWN = (uuid.removeprefix("GPU-") for uuid in (ONE, TWO))  # as CUDA tells them


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    at_work = FakeCard(TWO, readings=[(1755, 0x4)], processes=[4711], free_bytes=10 * GIB)
    driver = Nvml([FakeCard(ONE, free_bytes=10 * GIB), at_work])
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    monkeypatch.setattr(nvidia, "INTERVAL_S", 0.001)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return driver


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
def test_a_child_fits_beside_those_before(free_gib: list[int | None], peaks_gib: list[float], fits: list[bool]) -> None:
    looks = iter([None if gib is None else gib * GIB for gib in free_gib])
    budget = MemoryBudget([MemoryPool(looks.__next__, [int(gib * GIB) for gib in peaks_gib])])
    assert [budget.reserve(member) for member in range(1, 1 + len(fits))] == fits


@pytest.mark.parametrize(
    ("peaks_gib", "parameters", "at_once"),
    [
        ((0,) * 20, 1000, 6),
        ((0,) * 20, 100_000_000, 1),
        ((0, 4), None, 2),
        ((0, 9), None, 1),
        ((9, 9), None, 16),  # all are known: the budget decides
    ],
)
def test_children_start_at_once_where_memory_is_ample(
    monkeypatch: pytest.MonkeyPatch, peaks_gib: Sequence[int], parameters: int | None, at_once: int
) -> None:
    monkeypatch.setattr("kerasbench.runs.machine.available_bytes", lambda: 10 * GIB)
    assert starts_at_once([peak * GIB for peak in peaks_gib], parameters, cores=8) == at_once


def test_what_each_child_was_seen_to_take_is_told_and_stays_known(nvml: Nvml) -> None:
    budget = memory_budget([FIRST, made.CPU, FIRST, FIRST], [GIB] * 4, [0] * 4)
    for member, free_gib in enumerate((8, 8, 5), start=1):
        nvml.cards[0].free_bytes = free_gib * GIB
        budget.reserve(member)
    assert budget.pools[1].seen_bytes == {0: 2 * GIB, 1: 0, 2: 3 * GIB}
    pool = MemoryPool(iter([10 * GIB, 6 * GIB, 6 * GIB]).__next__, [4 * GIB, 9 * GIB, 0])
    assert [pool.fits([0], 1), pool.fits([0], 2)] == [False, True]
    assert pool.seen_bytes == {0: 4 * GIB}


def test_a_card_for_one_process_has_one_column_at_a_time(nvml: Nvml) -> None:
    nvml.cards[0].mode = 3
    budget = memory_budget([FIRST, FIRST, SECOND, made.CPU, SECOND], [0] * 5, [0] * 5)
    assert [budget.reserve(member) for member in range(1, 5)] == [False, True, True, True]


@pytest.mark.usefixtures("nvml")
def test_memory_and_each_card_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def fits(device: Device, peak_gib: int, on_card_gib: int = 0) -> bool:
        """Another one of the kind beside a process on the first card, or two processes on the processor."""
        on_card = [0 if device == made.CPU else 5 * GIB, on_card_gib * GIB]
        return memory_budget([device, device], [peak_gib * GIB] * 2, on_card).reserve(1)

    monkeypatch.setattr(linux, "memory_left", lambda: None)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 100 * GIB}))
    assert [fits(FIRST, 1, on_card_gib) for on_card_gib in (3, 5)] == [True, False]
    assert memory_budget([FIRST, made.CPU], [GIB] * 2, [5 * GIB, 0]).reserve(1)  # which takes nothing of the card
    assert [fits(made.CPU, gib) for gib in (40, 60)] == [True, False]
    monkeypatch.setattr(linux, "memory_left", lambda: 10 * GIB)  # a container's
    assert [fits(made.CPU, gib) for gib in (4, 5)] == [True, False]


def outcome(*cards: str) -> Outcome:
    return Outcome([], 1, measurement=made.changed(made.measurement(), proof={"cards": list(cards)}))


def watched(device: Device, *cards: str) -> tuple[Outcome, Surroundings]:
    """What becomes of a block of one column to which CUDA showed these cards."""
    monitor = MachineMonitor(look=lambda sample_s: made.state())
    (checked,), (seen,) = monitor.watch([device], lambda: [outcome(*cards)], lambda reason: None)
    return made.known(checked), seen


@pytest.mark.usefixtures("nvml")
def test_a_block_waits_once_for_heat_and_each_column_has_its_own_card() -> None:
    waits = iter([12.0])
    monitor = MachineMonitor(look=lambda sample_s: made.state(), cool=lambda on_wait: next(waits))
    outcomes = [outcome(), outcome(TWO_SHOWN), outcome(ONE_SHOWN), None]
    checked, seen = monitor.watch([made.CPU, SECOND, FIRST, SECOND], lambda: outcomes, lambda reason: None)
    assert list(checked) == outcomes
    assert [(around.card, around.waited_s, around.gpu_neighbours) for around in seen] == [
        ("", 12.0, []),
        (TWO, 12.0, [4711]),
        (ONE, 12.0, []),
        (TWO, 12.0, [4711]),
    ]
    assert [around.gpu is None for around in seen] == [True, False, False, False]


def test_a_trial_is_judged_by_what_surrounded_it_and_by_the_clocks_before() -> None:
    judge, trial = MachineMonitor().judge, made.trial(device=SECOND)
    fast, slow = (made.surroundings(gpu=(Sample(mhz, []),)) for mhz in (1980, 1000))
    assert judge(trial, fast).noise == []
    (signal,) = judge(trial, slow).noise
    assert (signal.name, judge(trial, slow).surroundings) == ("gpu clock", slow)
    hot = made.surroundings(after=made.state(thermal_level=1))
    assert judge(made.trial(failure=made.FAILURE), hot).noise[0].name == "heat"


@pytest.mark.parametrize("platform", ["cpu", "rocm", "mps"])
def test_no_other_device_asks_nvidia_s_driver(platform: str, nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "nvmlInit", lambda: pytest.fail("the driver was asked"))
    _, seen = watched(Device(platform))
    assert (seen.gpu, seen.gpu_neighbours) == (None, [])


def test_a_trial_on_a_card_goes_on_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    checked, seen = watched(SECOND)
    assert checked.measurement is not None
    assert (seen.gpu, seen.gpu_neighbours) == ([], [])  # which is told from a device that is no card


@pytest.mark.usefixtures("nvml")
def test_another_card_than_the_one_that_was_asked_for_is_a_failure() -> None:
    checked, seen = watched(SECOND, ONE_SHOWN)
    cause = f"asked for gpu:1, which is {TWO}, but CUDA computed on {ONE_SHOWN}"
    remedy = f"set CUDA_VISIBLE_DEVICES={TWO} and add --device gpu"
    assert (checked.measurement, checked.failure) == (None, Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))
    assert seen.card == TWO


@pytest.mark.usefixtures("nvml")
def test_what_the_user_has_left_visible_is_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"1,{ONE[:12]}")
    checked, seen = watched(SECOND, ONE_SHOWN)
    assert (seen.card, checked.failure) == (ONE, None)
    assert watched(FIRST, TWO_SHOWN)[1].card == TWO


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (ONE, outcome(ONE_SHOWN)),
        (SLICE, outcome(SLICE.removeprefix("MIG-"))),
        (ONE, outcome()),  # CUDA's driver does not tell
        ("", outcome(ONE_SHOWN)),  # NVML does not
        (ONE, Outcome([], 1, failure=Failure(Code.OOM, "out of memory", ""))),  # for its own reason
    ],
)
def test_only_what_both_sides_tell_is_compared(asked: str, answer: Outcome) -> None:
    assert on_card(answer, SECOND, asked) is answer
