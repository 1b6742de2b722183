import dataclasses
import math
import random

import pytest

from kerasbench.analysis import estimates
from kerasbench.analysis.estimates import LogEstimate, Verdict, estimate, judge, judge_all, learned
from tests import made


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.80, 0.90, Verdict.FASTER),
        (1.10, 1.20, Verdict.SLOWER),
        (0.98, 1.02, Verdict.SAME),
        (0.90, 1.01, Verdict.INCONCLUSIVE),
        (0.93, 0.98, Verdict.INCONCLUSIVE),  # faster for certain, but perhaps by less than the minimal effect
        (0.50, 2.00, Verdict.INCONCLUSIVE),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, verdict: Verdict) -> None:
    assert judge(made.estimate((low * high) ** 0.5, high, 5)) is verdict


def test_two_rounds_decide_nothing() -> None:
    assert judge(estimate([1 / 9, 1 / 9])) is Verdict.INCONCLUSIVE
    assert judge(None) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [(2.3036, 2.3036, False), (2.3036, 2.30361, False), (2.3036, 2.31, True), (2.3, 0.4, True), (0.0, 0.0, False)],
)
def test_a_loss_that_stays_the_same_means_that_nothing_was_learned(before: float, after: float, answer: bool) -> None:
    assert learned(before, after) is answer


def measured(value: float, spread: float) -> LogEstimate:
    """Return a ratio of five rounds with about that standard deviation of its logarithm."""
    return estimate([value * (1 + spread * step) for step in (-1.2, -0.6, 0.0, 0.6, 1.2)])


def test_verdicts_are_corrected_for_their_number() -> None:
    border = measured(0.93, 0.02)  # faster by itself
    assert judge(border) is Verdict.FASTER
    assert judge_all([border] * 2) == [Verdict.FASTER] * 2
    assert judge_all([border] * 20) == [Verdict.INCONCLUSIVE] * 20
    assert judge_all([border] + [None] * 20) == [Verdict.FASTER] + [Verdict.INCONCLUSIVE] * 20


def test_what_is_clear_stays_so_among_many() -> None:
    clear, border = measured(0.5, 0.01), measured(0.93, 0.02)
    found = judge_all([border] * 19 + [clear])
    assert found == [Verdict.INCONCLUSIVE] * 19 + [Verdict.FASTER]


def test_same_is_corrected_too() -> None:
    equal = measured(1.0, 0.018)
    assert judge(equal) is Verdict.SAME
    assert judge_all([equal] * 20) == [Verdict.INCONCLUSIVE] * 20


@pytest.mark.parametrize("effect", [0.03, 0.05])
def test_the_test_and_the_interval_are_the_same_decision(effect: float) -> None:
    rng = random.Random(2)
    for _ in range(300):
        found = estimate([rng.uniform(0.85, 1.15) * (1 + rng.gauss(0, 0.02)) for _ in range(rng.randint(3, 8))])
        assert found.low is not None and found.high is not None
        low, high = 1 / (1 + effect), 1 + effect
        by_interval = (
            Verdict.FASTER if found.high < low
            else Verdict.SLOWER if found.low > high
            else Verdict.SAME if low < found.low and found.high < high
            else Verdict.INCONCLUSIVE
        )  # fmt: skip
        assert judge(found, effect) is by_interval


def test_exactly_equal_times_are_the_same() -> None:
    assert judge(estimate([1.0, 1.0, 1.0])) is Verdict.SAME


def test_more_rounds_decide_unless_the_ratio_lies_on_the_edge() -> None:
    unclear = measured(0.93, 0.06)
    needed = estimates.rounds_to_decide(unclear, 0.03)
    assert judge(unclear) is Verdict.INCONCLUSIVE
    assert needed is not None and needed > 5
    assert estimates.rounds_to_decide(measured(0.5, 0.01), 0.03) == 3
    assert estimates.rounds_to_decide(measured(1 / 1.03, 0.05), 0.03) is None


def test_on_battery_a_difference_must_be_larger() -> None:
    assert estimates.minimal_effect(on_battery=True) > estimates.minimal_effect(on_battery=False)


def test_one_trial_whose_slices_tell_its_error_decides() -> None:
    sliced = LogEstimate(math.log(0.8), 0.01, 20, trials=1, basis="slices")
    assert judge(sliced) is Verdict.FASTER
    assert judge(dataclasses.replace(sliced, log_error=None)) is Verdict.INCONCLUSIVE
    assert judge(dataclasses.replace(sliced, log_error=0.2)) is Verdict.INCONCLUSIVE
    assert estimates.claim(sliced, 0.03) == estimates.claim(
        dataclasses.replace(sliced, trials=21, basis="trials"), 0.03
    )


def test_how_many_rounds_would_decide_is_not_known_without_an_error() -> None:
    assert estimates.rounds_to_decide(estimate([1.0, 2.0]), 0.03) is None
