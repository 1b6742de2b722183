import dataclasses
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kerasbench.host import load
from kerasbench.host.load import LoadLimit, limit_of
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.protocol.stages import BATCH, ONE, PARTS, PARTS_OF_STEP, TRAIN
from tests import made

Blocks = list[list[list[Slice]]]  # each of columns, of their slices
MS = made.MS
GPU = Device("cuda", 0, "NVIDIA H200")
COLUMNS, CYCLES = 3, 40
OF_16 = LoadLimit(counters=16)


@pytest.mark.parametrize(
    ("system", "asked", "expected"),
    [
        ("linux", (made.CPU, None, 0.0, 4, 4), (0.0, 0.12, 1)),  # one line for all of them
        ("linux", (made.CPU, None, 0.0, 1, 4), (0.0, 0.12, 1)),
        ("linux", (made.CPU, None, 0.0, 3, 4), (0.0, 0.12, 3)),  # the lines of those that are allowed
        ("linux", (made.CPU, 2, 0.005, 4, 4), (0.01, 0.12, 2)),
        ("linux", (made.CPU, 8, 0.005, 4, 4), (0.02, 0.12, 1)),
        ("linux", (made.CPU, None, 0.5, 4, 4), (0.04, 0.12, 1)),  # a busy machine is not a quiet one
        ("darwin", (made.CPU, 1, 0.005, 4, 4), (0.02, 0.12, 4)),  # which rounds each core, and limits none
        ("linux", (GPU, None, 0.0, 4, 4), (0.0, 0.24, 1)),
        ("linux", (GPU, 1, 0.0, 4, 4), (0.0, 0.12, 1)),
    ],
)
def test_a_limit_is_above_what_a_quiet_machine_does(system: str, asked: Any, expected: tuple[float, ...]) -> None:
    with patch("sys.platform", system):
        assert dataclasses.astuple(limit_of(*asked)) == pytest.approx(expected)


def disturbed(columns: Sequence[Sequence[Slice]], *limits: LoadLimit) -> list[list[int | None]]:
    """Return the cycles of each column that do not count; the last limit is also that of all further columns."""
    judged = load.judged(TRAIN, dict(enumerate(columns)), [*limits, *limits[-1:] * len(columns)])
    return [[slice_.cycle for slice_ in slices if slice_.disturbed] for slices in judged]


def column(*others_ms: float, ns: int = 100 * MS, steal_ms: float = 0) -> list[Slice]:
    steal_ns = int(steal_ms * MS)
    return [Slice(1, ns, cycle, others_ns=int(ms * MS), steal_ns=steal_ns) for cycle, ms in enumerate(others_ms)]


@pytest.mark.parametrize(
    ("slices", "quiet", "cycles"),
    [
        *((column(12), 0.0, []), (column(12.1), 0.0, [0])),
        (column(2, steal_ms=10.1), 0.0, [0]),  # what a hypervisor keeps is taken by others, too
        *((column(14), 0.02, []), (column(14.1), 0.02, [0])),
        *((column(10, ns=4 * MS), 0.0, []), (column(10.1, ns=4 * MS), 0.0, [0])),  # a tick of the system's clock
    ],
)
def test_of_one_counter_each_slice_is_judged_by_itself(slices: list[Slice], quiet: float, cycles: list[int]) -> None:
    assert disturbed([slices, column(0, ns=slices[0].ns)], LoadLimit(quiet)) == [cycles, []]


@pytest.mark.parametrize(
    ("columns", "limits", "cycles"),
    [
        # What a short slice cannot show, a sum of slices does: 0.16 of a core in slices of 50 ms.
        ([column(*[8.0] * 8, ns=50 * MS)], [LoadLimit()], [list(range(8))]),
        ([column(*[8.0] * 2, ns=50 * MS)], [LoadLimit()], [[]]),
        # A burst marks its cycle, and no longer sum.
        ([column(*[0.0] * 5, 100.0, *[0.0] * 10), column(*[0.0] * 16)], [OF_16], [[5], []]),
        # A cycle is judged by all its columns: alone, there are 40 ms of rounding.
        ([column(35.0, 35.0)] * 3, [LoadLimit(counters=9)], [[0, 1]] * 3),
        ([column(35.0, 35.0), column(0, 0), column(0, 0)], [LoadLimit(counters=9)], [[], [], []]),
        # What a column on a GPU tolerates hides nothing from those on the CPU.
        ([column(50, 50)] * 3, [OF_16, OF_16, LoadLimit(above=0.96, counters=16)], [[0, 1], [0, 1], []]),
    ],
)
def test_sums_show_what_is_hidden(columns: list[list[Slice]], limits: list[LoadLimit], cycles: list[list[int]]) -> None:
    assert disturbed(columns, *limits) == cycles


def test_a_system_that_tells_nothing_marks_nothing_and_a_card_s_mark_stays() -> None:
    silent = [Slice(1, 100 * MS, cycle, disturbed=cycle == 1) for cycle in range(3)]
    assert disturbed([silent, column(50, 0, 0)], LoadLimit()) == [[1], [0]]
    measurement = measured(column(0, 0), [column(0, 0)] * 3)
    assert load.mark({0: measurement}, [LoadLimit()]) == {0: measurement}


def counted(rng: np.random.Generator, processors: int, ns: int, others: float, blocks: int = 1) -> Blocks:
    """Return blocks whose processors are read one by one, of which others take so much of one."""
    shape = (blocks * COLUMNS * CYCLES, processors)
    free_ns, began_ns = rng.uniform(0, ns, shape), rng.uniform(0, load.TICK_NS, shape)
    used_ns = processors * ns - free_ns.sum(axis=1)
    free_ns[np.arange(len(free_ns)), free_ns.argmax(axis=1)] -= others * ns
    counted_ns = load.TICK_NS * np.floor((began_ns + free_ns) / load.TICK_NS).sum(axis=1)
    others_ns = map(int, processors * ns - counted_ns - used_ns)
    slices = [Slice(1, ns, place % CYCLES, others_ns=taken_ns) for place, taken_ns in enumerate(others_ns)]
    columns = [slices[start : start + CYCLES] for start in range(0, len(slices), CYCLES)]
    return [columns[start : start + COLUMNS] for start in range(0, len(columns), COLUMNS)]


@pytest.mark.parametrize("processors", [4, 16, 128])
@pytest.mark.parametrize("ns", [50 * MS, 100 * MS])
def test_rounding_alone_marks_less_than_one_cycle_in_a_hundred(processors: int, ns: int) -> None:
    rng, limit = np.random.default_rng(processors), LoadLimit(counters=processors)
    blocks = counted(rng, processors, ns, 0.0, 100)
    marked = [len(set().union(*disturbed(block, limit))) / CYCLES for block in blocks]
    assert np.mean(marked) <= 0.01


def test_sums_are_as_long_as_rounding_needs() -> None:
    on_gpu = LoadLimit(above=7.68, counters=128)
    judged_s = [limit.judged_s(100 * MS) for limit in (LoadLimit(), OF_16, LoadLimit(counters=128), on_gpu)]
    assert [LoadLimit().judged_s(50 * MS), *judged_s] == pytest.approx([0.3, 0.1, 2.1, 16.2, 0.1])


def test_a_file_has_the_marks_by_which_a_block_went_on() -> None:
    rng, limits = np.random.default_rng(7), [OF_16] * COLUMNS
    (slices,) = counted(rng, 16, 100 * MS, 0.3)
    parts = counted(rng, 16, 40 * MS, 0.3, COLUMNS)  # of each column, in three ways
    kept = load.mark({place: measured(slices[place], parts[place]) for place in (0, 2)}, limits)
    live = load.judged(TRAIN, {place: slices[place] for place in (0, 2)}, limits)
    sums = {place: [in_sum(*ways) for ways in zip(*parts[place], strict=True)] for place in (0, 2)}
    of_sums = load.judged(PARTS, sums, limits)
    assert all(0 < sum(slice_.disturbed for slice_ in of_stage[0]) < CYCLES for of_stage in (live, of_sums))
    for measurement, of_train, of_parts in zip(kept.values(), live, of_sums, strict=True):
        assert list(measurement.samples[TRAIN]) == list(of_train)
        for way in PARTS_OF_STEP:
            assert measurement.samples[way].disturbed == [slice_.disturbed for slice_ in of_parts]


def measured(slices: list[Slice], parts: list[list[Slice]]) -> Measurement:
    ways = dict(zip(PARTS_OF_STEP, map(Samples.of, parts), strict=True))
    return made.with_samples(made.measurement(), train=Samples.of(slices), **ways)


def in_sum(*ways: Slice) -> Slice:
    """Return what a turn says of a step in parts."""
    return Slice(3, sum(way.ns for way in ways), ways[0].cycle, others_ns=sum(way.others_ns or 0 for way in ways))


def test_stages_are_judged_apart_also_where_a_column_has_not_all() -> None:
    quiet, busy = (Samples.of(column(*[ms] * 3)) for ms in (0.0, 50.0))
    whole = made.with_samples(made.measurement(), predict_one=quiet, predict_batch=busy)
    marked = load.mark({0: whole, 1: made.without(whole, ONE)}, [LoadLimit(counters=8)] * 2)
    assert [marked[0].samples[stage].disturbed for stage in (ONE, BATCH)] == [None, [True] * 3]
    assert marked[1].samples[BATCH].disturbed == [True] * 3
