import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest

from kerasbench.analysis.cells import Row
from kerasbench.analysis.drift import awake, bout, drifts
from kerasbench.analysis.findings import findings
from kerasbench.analysis.summary import summarize
from kerasbench.exchange.measurement import Block, Measurement, Usage
from kerasbench.report.page import document
from kerasbench.results.keys import Column
from kerasbench.results.record import Record
from tests import made

Factor = Callable[[int, str, "str | None"], float]
BACKENDS = ("jax", "tensorflow", "torch")
COLUMNS: dict[str, Column] = {backend: (backend, "cpu", "") for backend in BACKENDS}
CYCLES = 36


def run(factor: Factor, bouts: int = 3, backends: Sequence[str] = BACKENDS, noise: float = 0.01) -> Record:
    """Columns that take turns in every order; a slice takes so many times a millisecond, by cycle and predecessor.

    The machine changes its speed by half in the meantime, which hits all alike.
    """
    rng, trials = random.Random(3), []
    for number in range(1, bouts + 1):
        orders = list(itertools.islice(itertools.cycle(itertools.permutations(backends)), CYCLES))
        rng.shuffle(orders)
        slices: dict[str, list[Block]] = {backend: [] for backend in backends}
        before: str | None = None
        for cycle, order in enumerate(orders):
            for position, backend in enumerate(order):
                ms = (1.5 + math.sin(cycle)) * factor(cycle, backend, before) * math.exp(rng.gauss(0, noise))
                slices[backend].append(Block(50, int(50 * ms * made.MS), cycle, position, 0))
                before = backend
        trials += [made.in_bout(number, measured(slices[backend]), backend=backend) for backend in backends]
    return made.record(*trials, rounds=bouts)


def measured(blocks: list[Block]) -> Measurement:
    found = made.sliced([1.0] * len(blocks))
    return dataclasses.replace(found, training=dataclasses.replace(made.trained(found), blocks=blocks))


def rows(record: Record) -> list[Row]:
    return summarize(record).rows


def even(cycle: int, backend: str, before: str | None) -> float:
    return {"jax": 1.0, "tensorflow": 2.0, "torch": 3.0}[backend]


@pytest.mark.parametrize("bouts", [1, 3])
def test_drift_that_hits_all_is_none(bouts: int) -> None:
    assert drifts(rows(run(even, bouts))) == []


@pytest.mark.parametrize("bouts", [1, 3])
def test_a_column_that_becomes_slower_alone_is_named(bouts: int) -> None:
    def tires(cycle: int, backend: str, before: str | None) -> float:
        return 1.1 if backend == "torch" and cycle >= CYCLES // 2 else 1.0

    found = {one.column: one for one in drifts(rows(run(tires, bouts))) if one.after is None}
    assert found[COLUMNS["torch"]].change.value == pytest.approx(1.1, rel=0.02)


def test_of_two_columns_only_one_is_named() -> None:
    def tires(cycle: int, backend: str, before: str | None) -> float:
        return 1.1 if backend == "torch" and cycle >= CYCLES // 2 else 1.0

    (found,) = drifts(rows(run(tires, backends=("jax", "torch"))))
    assert (found.column, found.after) == (COLUMNS["jax"], None)
    assert found.change.value == pytest.approx(1 / 1.1, rel=0.02)


@pytest.mark.parametrize("bouts", [1, 3])
def test_what_a_predecessor_leaves_behind_is_named(bouts: int) -> None:
    def heated(cycle: int, backend: str, before: str | None) -> float:
        return 1.2 if (backend, before) == ("jax", "torch") else 1.0

    found = drifts(rows(run(heated, bouts)))
    named = {(one.column[0], one.after and one.after[0]): one.change.value for one in found}
    assert named["jax", "torch"] == pytest.approx(1.2, rel=0.03)


def test_what_is_smaller_than_a_percent_is_not_named() -> None:
    def hardly(cycle: int, backend: str, before: str | None) -> float:
        return 1.005 if backend == "torch" and cycle >= CYCLES // 2 else 1.0

    assert drifts(rows(run(hardly, noise=1e-5))) == []


def test_what_is_named_stands_on_the_page() -> None:
    def tires(cycle: int, backend: str, before: str | None) -> float:
        return 1.1 if backend == "torch" and cycle >= CYCLES // 2 else 1.0

    text = document(findings(run(tires)))
    assert "## What turns did not cancel" in text
    assert "dense torch cpu: slices took 1.1" in text
    assert "in the second half of a bout as in the first" in text
    assert "## What turns did not cancel" not in document(findings(run(even)))


def test_a_slice_s_predecessor_is_the_turn_before_it_also_in_the_cycle_before() -> None:
    a, b = ("a", "cpu", ""), ("b", "cpu", "")
    found = bout({a: [Block(1, 1, 0, 0), Block(1, 1, 1, 1)], b: [Block(1, 1, 0, 1), Block(1, 1, 1, 0)]})
    assert found.before == {a: {1: b}, b: {0: a, 1: b}}


def test_a_column_alone_and_old_files_have_no_drift() -> None:
    assert drifts(rows(run(even, backends=("jax",)))) == []
    assert drifts(rows(made.record(made.trial(), made.trial(backend="jax")))) == []


@pytest.mark.parametrize(("cpu_ms", "named"), [(4, 0), (6, 1)])
def test_a_column_that_computes_while_it_is_stopped_is_named(cpu_ms: int, named: int) -> None:
    found = dataclasses.replace(
        made.sliced([1.0]), usage=Usage(19 * made.MS, 10 * made.MS, 0, 1_000 * made.MS, cpu_ms * made.MS)
    )
    record = made.record(made.in_bout(1, found), made.in_bout(1, made.sliced([1.0]), backend="jax"))
    assert len(awake(rows(record))) == named
    text = document(findings(record))
    assert ("torch cpu used 0.6 % of a core while others had their turns" in text) is bool(named)
