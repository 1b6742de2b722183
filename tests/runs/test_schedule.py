"""Orders of cases, and when a row and a run have enough."""

from collections import Counter
from typing import Any

import pytest

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.results.run import Effort, Trial
from kerasbench.runs import schedule
from kerasbench.runs.rows import OpenRow
from kerasbench.runs.schedule import Between, StopReason
from tests import made
from tests.scripted import THREE, by_round

WIDE, NARROW = 0.5, 0.01
FIVE, TWELVE = Effort(3, 5), Effort(3, 12)


@pytest.mark.parametrize(
    ("widths", "reason"),
    [
        ([[None], [0.001]], None),  # fewer than three blocks have no interval that deserves the name
        ([[None], [None], [0.019, 0.02]], StopReason.PRECISE),
        ([[None], [None], [0.019, 0.021]], None),
        ([[None], [None], [None, 0.001]], None),
        ([[None], [None], [WIDE], [0.6 * WIDE]], None),
        ([[None], [None], []], None),
        ([[WIDE]] * 5, StopReason.ROUNDS),
    ],
)
def test_when_a_row_has_enough(widths: list[list[float | None]], reason: StopReason | None) -> None:
    assert schedule.stop_reason(FIVE, widths) is reason


@pytest.mark.parametrize(
    ("since", "reason"),
    [
        ([[2 * WIDE, NARROW], [1.5 * WIDE, NARROW]], None),  # an unusual block, and one that made up for a part of it
        ([[2 * WIDE, NARROW], [1.5 * WIDE, NARROW], [0.99 * WIDE, NARROW]], StopReason.NO_GAIN),
        ([[2 * WIDE, NARROW], [1.5 * WIDE, NARROW], [0.9 * WIDE, NARROW]], None),
        ([[WIDE, WIDE], [WIDE, WIDE], [WIDE, 0.9 * WIDE]], None),
        ([[WIDE, WIDE], [WIDE, WIDE], [WIDE]], None),  # a column has failed
    ],
)
def test_a_row_is_given_up_when_three_blocks_have_gained_nothing(
    since: list[list[float | None]], reason: StopReason | None
) -> None:
    assert schedule.stop_reason(TWELVE, [[None], [None], [WIDE, since[0][1]], *since]) is reason


def test_on_battery_a_run_aims_at_less() -> None:
    reasons = [schedule.stop_reason(FIVE, [[0.04]] * 3, schedule.precision_of(effect)) for effect in (0.03, 0.05)]
    assert reasons == [None, StopReason.PRECISE]


def test_a_run_says_what_it_aimed_at_and_that_it_gained_nothing() -> None:
    precise = schedule.in_words(StopReason.PRECISE, FIVE, 0.05)
    assert precise == "the session's own noise is below ±5 % for every ratio"
    given_up = schedule.in_words(StopReason.NO_GAIN, FIVE, 0.02, several=False)
    assert given_up == "the last 3 rounds made the times no more precise"


@pytest.mark.parametrize(
    ("spent_s", "another_s", "done", "reason"),
    [
        (0.0, 500.0, 0, ""),  # the first round is always completed
        (50.0, 50.0, 1, ""),
        (51.0, 51.0, 1, "another round of about 51 s does not fit into the 49 s that --budget leaves"),
        (200.0, 1.0, 1, "--budget 100 s is used up: the first round, which is always completed, has taken 200 s"),
        (120.0, 1.0, 2, "--budget 100 s is used up: 2 rounds have taken 120 s"),
    ],
)
def test_a_budget_allows_no_round_that_it_would_not_hold(
    spent_s: float, another_s: float, done: int, reason: str
) -> None:
    assert schedule.out_of_budget(100.0, spent_s, another_s, done) == reason
    assert schedule.out_of_budget(None, spent_s, another_s, done) == ""


def widths(trials: list[Trial], between: Between = by_round) -> list[float | None]:
    row = OpenRow([], trials=trials)
    return schedule.half_widths(row.compared, row.metric(None), between)


def test_all_ratios_of_a_row_are_looked_at_but_those_of_failed_columns_or_of_one_its_own_interval() -> None:
    def disturbed(*asked: Any) -> LogEstimate:
        return LogEstimate(0.0, 0.001, 2, 3, disturbed=True)

    jax = made.in_rounds(1.0, 1.01, 0.99, backend="jax")
    tensorflow = made.in_rounds(2.0, 2.01, 2.0, backend="tensorflow")
    torch = made.in_rounds(3.0, 3.0, 3.1, backend="torch")
    assert len(widths([*jax, *tensorflow, *torch])) == 3
    assert widths([*jax, *torch], disturbed) == [None]
    failed = made.trial(4, backend="torch", failure=made.FAILURE)
    for trials in ([*jax, *tensorflow, *torch, failed], jax):
        (width,) = widths(trials)
        assert width is not None and 0 < width < 0.1
    assert widths(jax[:1]) == [None]
    assert widths([failed]) == []


def test_an_order_keeps_scenarios_together_and_is_drawn_anew_for_each_round_and_seed() -> None:
    cases = [made.case(name, case.backend) for name in ("a", "b", "c", "d") for case in THREE]
    ordered = schedule.order_cases(cases, seed=1, round_index=1)
    assert Counter(case.key for case in ordered) == Counter(case.key for case in cases)
    scenarios = [case.selected.entry.name for case in ordered]
    assert all(len(set(scenarios[start : start + 3])) == 1 for start in range(0, 12, 3))
    drawn = [tuple(case.key for case in schedule.order_cases(cases, *drawn)) for drawn in ((1, 1), (1, 2), (2, 1))]
    assert len(set(drawn)) == 3
    assert schedule.order_cases(cases, 1, 1) == ordered
