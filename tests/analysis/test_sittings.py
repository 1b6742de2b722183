"""Sittings: what each found, whether two differ, and intervals over three."""

import dataclasses
import math
from collections.abc import Sequence

import pytest

from kerasbench.analysis.estimates import estimate
from kerasbench.analysis.rankings import sittings
from kerasbench.analysis.summary import Summary, concerns, summarize
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Column
from kerasbench.results.record import Record, TrialRecord
from tests import made

SCATTER = (1.0, 1.01, 0.99)


def run(torch_ms: Sequence[float]) -> Record:
    """Three blocks of JAX (1 ms) and torch in each sitting, whose torch takes so long."""
    trials: list[TrialRecord] = []
    for sitting, ms in enumerate(torch_ms, start=1):
        for index, factor in enumerate(SCATTER):
            block = 3 * (sitting - 1) + index + 1
            for backend, step_ms in (("jax", 1.0), ("torch", ms * factor)):
                one = made.in_block(block, made.sliced([step_ms] * 8, [2 * step_ms] * 8), backend=backend)
                trials.append(dataclasses.replace(one, sitting=sitting, ended=f"2026-01-0{sitting}T00:0{index}:00Z"))
    return made.record(*trials, rounds=3 * len(torch_ms))


def of(torch_ms: Sequence[float]) -> Summary:
    return summarize(run(torch_ms))


def test_a_run_in_one_sitting_says_nothing_of_them() -> None:
    summary = of([2.0])
    assert sittings(summary.rows[0], summary.rankings[0]) == []


def test_two_that_differ_by_more_than_their_intervals_are_warned_of() -> None:
    summary = of([2.0, 2.5])
    (found,) = sittings(summary.rows[0], summary.rankings[0])
    assert [one.trials for one in found.ratios.values()] == [3, 3]
    assert found.apart is not None
    assert found.apart.value == pytest.approx(1.25, rel=0.01)
    assert found.differ
    (warned,) = [one for one in concerns(summary) if one.what is WarningKind.SITTINGS]
    assert (warned.columns, warned.detail) == ([Column("torch", "cpu")], "by 25%")


def test_two_that_agree_are_not_warned_of() -> None:
    summary = of([2.0, 2.02])
    (found,) = sittings(summary.rows[0], summary.rankings[0])
    assert not found.differ
    assert not [one for one in concerns(summary) if one.what is WarningKind.SITTINGS]


def test_of_three_the_interval_is_over_sittings() -> None:
    summary = of([2.0, 2.5, 2.2])
    (comparison,) = summary.rankings[0].comparisons
    mean = math.exp(sum(map(math.log, SCATTER)) / 3)
    wanted = estimate([2.0 * mean, 2.5 * mean, 2.2 * mean])
    found = comparison.ratio.inverse
    assert found.trials == 3
    assert found.log_centre == pytest.approx(wanted.log_centre)
    assert found.log_error == pytest.approx(wanted.log_error)
    (times,) = sittings(summary.rows[0], summary.rankings[0])
    assert times.apart is None and not times.differ  # the interval says it
    assert summary.rows[0].cases[Column("torch", "cpu")].estimate("steady_step_ms").trials == 3  # type: ignore[union-attr]


def test_a_disturbed_sitting_does_not_count_where_three_others_do() -> None:
    record = run([2.0, 2.5, 2.2, 9.0])
    trials = [_disturbed(one) if one.sitting == 4 else one for one in record.trials]
    (comparison,) = summarize(dataclasses.replace(record, trials=trials)).rankings[0].comparisons
    assert comparison.ratio.trials == 3
    assert comparison.ratio.inverse.value < 2.5


def _disturbed(trial: TrialRecord) -> TrialRecord:
    assert trial.measurement is not None
    training = made.trained(trial.measurement)
    slices = [dataclasses.replace(slice_, disturbed=True) for slice_ in training.slices]
    epochs = [dataclasses.replace(slice_, disturbed=True) for slice_ in training.epochs]
    return dataclasses.replace(
        trial,
        measurement=dataclasses.replace(
            trial.measurement, training=dataclasses.replace(training, slices=slices, epochs=epochs)
        ),
    )
