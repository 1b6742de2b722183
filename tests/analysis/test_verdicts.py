import dataclasses
import math
import random

import pytest

from kerasbench.analysis import verdicts
from kerasbench.analysis.estimates import LogEstimate, estimate
from kerasbench.analysis.verdicts import Verdict, judge, judge_all, learned, ratio
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
    assert judge(ratio({1: 1.0, 2: 1.0}, {1: 9.0, 2: 9.0})) is Verdict.INCONCLUSIVE


def test_no_common_round_decides_nothing() -> None:
    assert ratio({1: 1.0}, {2: 1.0}) is None
    assert judge(None) is Verdict.INCONCLUSIVE


def test_drift_that_hits_both_cancels() -> None:
    # The machine slows down by 40 % over the run; B is 10 % slower than A in every round.
    a = {1: 1.0, 2: 1.2, 3: 1.4}
    b = {index: 1.1 * value for index, value in a.items()}
    found = ratio(a, b)
    assert found is not None
    assert found.value == pytest.approx(1 / 1.1)
    assert judge(found) is Verdict.FASTER


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [(2.3036, 2.3036, False), (2.3036, 2.30361, False), (2.3036, 2.31, True), (2.3, 0.4, True), (0.0, 0.0, False)],
)
def test_a_loss_that_stays_the_same_means_that_nothing_was_learned(before: float, after: float, answer: bool) -> None:
    assert learned(before, after) is answer


def measured(value: float, spread: float) -> LogEstimate:
    """Return a ratio of five rounds with about that standard deviation of its logarithm."""
    return estimate([value * (1 + spread * step) for step in (-1.2, -0.6, 0.0, 0.6, 1.2)])


def test_many_verdicts_are_corrected_for_their_number() -> None:
    border = measured(0.93, 0.02)  # faster by itself
    assert judge(border) is Verdict.FASTER
    assert judge_all([border] * 10) == [Verdict.FASTER] * 10
    assert judge_all([border] * 20) == [Verdict.INCONCLUSIVE] * 20


def test_what_is_beyond_all_doubt_stays_so_among_many() -> None:
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
    assert judge(ratio({1: 1.0, 2: 1.1, 3: 0.9}, {1: 1.0, 2: 1.1, 3: 0.9})) is Verdict.SAME


def test_more_rounds_decide_unless_the_ratio_lies_on_the_edge() -> None:
    unclear = measured(0.93, 0.06)
    needed = verdicts.rounds_to_decide(unclear, 0.03)
    assert judge(unclear) is Verdict.INCONCLUSIVE
    assert needed is not None and needed > 5
    assert verdicts.rounds_to_decide(measured(0.5, 0.01), 0.03) == 3
    assert verdicts.rounds_to_decide(measured(1 / 1.03, 0.05), 0.03) is None


def test_the_limit_that_a_plan_states_is_the_half_width_of_a_ratio() -> None:
    assert verdicts.half_width(5, 0.02) == pytest.approx(2.776 * (2 / 5) ** 0.5 * 0.02, rel=1e-3)
    assert verdicts.visible_difference(5, 0.02) > 0.03 + verdicts.half_width(5, 0.02)


@pytest.mark.parametrize("rounds", [3, 5])
def test_what_a_plan_calls_visible_is_called_nine_times_in_ten(rounds: int) -> None:
    rng, scatter, runs = random.Random(3), 0.02, 600
    slower = 1 + verdicts.visible_difference(rounds, scatter)
    called = 0
    for _ in range(runs):
        a = {index: slower * (1 + rng.gauss(0, scatter)) for index in range(rounds)}
        b = {index: 1 + rng.gauss(0, scatter) for index in range(rounds)}
        called += judge(ratio(a, b)) is Verdict.SLOWER
    assert 0.85 < called / runs < 0.97


def test_on_battery_a_difference_must_be_larger() -> None:
    assert verdicts.minimal_effect(on_battery=True) > verdicts.minimal_effect(on_battery=False)


def test_one_trial_whose_slices_tell_its_error_decides() -> None:
    sliced = LogEstimate(math.log(0.8), 0.01, 20, trials=1, basis="slices")
    assert judge(sliced) is Verdict.FASTER
    assert judge(dataclasses.replace(sliced, log_error=None)) is Verdict.INCONCLUSIVE
    assert judge(dataclasses.replace(sliced, log_error=0.2)) is Verdict.INCONCLUSIVE
    assert verdicts.claim(sliced, 0.03) == verdicts.claim(dataclasses.replace(sliced, trials=21, basis="trials"), 0.03)


def test_how_many_rounds_would_decide_is_not_known_without_an_error() -> None:
    assert verdicts.rounds_to_decide(estimate([1.0, 2.0]), 0.03) is None
