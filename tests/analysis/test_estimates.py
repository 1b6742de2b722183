import dataclasses
import math
import random
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats as reference

from kerasbench.analysis import estimates
from kerasbench.analysis.estimates import (
    CONFIDENCE,
    Amount,
    Estimate,
    LogEstimate,
    Verdict,
    claim,
    estimate,
    judge,
    learned,
    mean_interval,
    variance,
    welch,
)
from tests import made
from tests.made import known


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.1]])
def test_fewer_than_three_trials_have_no_interval(values: list[float]) -> None:
    found = estimate(values)
    assert (found.low, found.high, found.half_width, found.trials) == (None, None, None, len(values))


@pytest.mark.parametrize("values", [[], [1.0, 0.0, 2.0], [-1.0]])
def test_a_time_is_positive(values: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        estimate(values)


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [(2.0, 0.2, 1), (-2.0, 0.8, 0), (-2.0, 0.2, -1), (0.0, 0.0, 0), (2.0, None, 1), (-2.0, None, 0)],
)
def test_an_amount_is_told_from_zero_by_its_interval(value: float, error: float | None, told: int) -> None:
    assert Amount(value, error, degrees=2, trials=3).sign == told


@pytest.mark.parametrize("centre", [0.0, 1.0, 1e9])
def test_the_variance_is_the_exact_one_s(centre: float) -> None:
    values = [centre + step for step in (0.1, -0.2, 0.4, 0.0)]
    assert variance(values) == pytest.approx(statistics.variance(values))
    assert variance([centre + 0.1] * 3) == 0


def test_welch_of_two_trials_has_no_interval_and_of_equal_ones_no_width() -> None:
    assert welch([1.0, 1.0], [1.0, 1.0, 1.0]).half_width is None
    assert welch([2.0] * 3, [1.0] * 3).half_width == 0


def test_an_amount_may_be_negative_and_its_interval_is_a_share_of_its_value() -> None:
    found = mean_interval([-1.0, 0.0, 4.0])
    assert found.sign == 0
    assert found.half_width == pytest.approx(4.302653 * math.sqrt(7 / 3))
    assert mean_interval([1.0, 2.0]).half_width is None
    assert mean_interval([-1.0, 0.0, 1.0]).half_width == math.inf


def verdict_of(ratio: LogEstimate, effect: float = estimates.MINIMAL_EFFECT) -> Verdict:
    return judge([ratio], effect)[0].verdict


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
    assert verdict_of(made.estimate((low * high) ** 0.5, high, 5)) is verdict


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [(2.3036, 2.3036, False), (2.3036, 2.30361, False), (2.30264, 2.30285, True), (2.3, 0.4, True), (0.0, 0.0, False)],
)
def test_a_loss_that_stays_the_same_means_that_nothing_was_learned(before: float, after: float, answer: bool) -> None:
    assert learned(before, after) is answer


def measured(value: float, spread: float) -> LogEstimate:
    """Return a ratio of five rounds with about that standard deviation of its logarithm."""
    return estimate([value * (1 + spread * step) for step in (-1.2, -0.6, 0.0, 0.6, 1.2)])


def verdicts(ratios: Sequence[LogEstimate | None], runs: Sequence[object] = ()) -> list[Verdict]:
    return [one.verdict for one in judge(ratios, runs=runs)]


def test_a_run_s_verdicts_do_not_depend_on_what_else_is_shown() -> None:
    border, unclear = measured(0.93, 0.02), measured(1.0, 0.1)
    assert verdicts([border] + [unclear] * 19, ["one"] + ["other"] * 19)[0] is Verdict.FASTER
    assert verdicts([border] + [None] * 19)[0] is Verdict.FASTER  # nor on those that nothing can be said of


def test_the_interval_that_is_shown_is_the_one_that_decides(rng: random.Random) -> None:
    effect = 0.03
    ratios = [measured(math.exp(rng.gauss(0, 0.2)), rng.uniform(0.001, 0.2)) for _ in range(40)]
    judgements = judge(ratios, effect)
    assert {one.verdict for one in judgements} >= {Verdict.FASTER, Verdict.SLOWER, Verdict.INCONCLUSIVE}
    for ratio, verdict in judgements:
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        beyond = Verdict.SLOWER if ratio.low > 1 + effect else Verdict.FASTER if ratio.high < 1 / (1 + effect) else None
        within = 1 / (1 + effect) < ratio.low and ratio.high < 1 + effect
        assert verdict is (beyond or (Verdict.SAME if within else Verdict.INCONCLUSIVE))


def test_an_interval_has_room_for_other_sessions_and_is_never_narrower_for_it() -> None:
    own = measured(0.5, 0.03)
    ratio = dataclasses.replace(own, between_sessions=0.02)
    (error, _), (of_any, degrees) = ratio.errors
    assert own.errors == ratio.errors[:1] and of_any == pytest.approx(math.hypot(error, 0.02))
    assert degrees == pytest.approx(own.degrees * (of_any / error) ** 4)  # of Welch and Satterthwaite
    assert known(ratio.half_width) > known(own.half_width)
    few = LogEstimate(0.0, 0.03, 2, 3)  # Student's t asks for 4.3 errors; with what is assumed, for 2.7
    assert dataclasses.replace(few, between_sessions=0.02).half_width == few.half_width
    exact = dataclasses.replace(own, log_error=0.0, between_sessions=0.02)
    assert known(exact.half_width) == pytest.approx(math.expm1(1.95996 * 0.02), rel=1e-4)
    assert dataclasses.replace(exact, log_error=None).half_width is None
    product = ratio.and_then(dataclasses.replace(ratio, basis="sessions"))
    assert product.basis == "sessions"
    assert product.between_sessions == pytest.approx(0.02 * math.sqrt(2))


def test_the_interval_of_few_blocks_holds_what_sessions_would_find_on_average() -> None:
    rng, runs = random.Random(1), 2000
    for own in (0.01, 0.03, 0.1):
        hits = 0
        for _ in range(runs):
            session = rng.gauss(0.0, 0.02)
            found = estimate([math.exp(session + rng.gauss(0.0, own)) for _ in range(3)])
            interval = dataclasses.replace(found, between_sessions=0.02)
            hits += known(interval.low) <= 1 <= known(interval.high)
        assert 0.935 < hits / runs < 0.97


def test_an_interval_and_a_verdict_agree_where_sessions_differ() -> None:
    rng = random.Random(1)
    for _ in range(200):
        own = LogEstimate(rng.gauss(0.0, 0.1), rng.uniform(0.001, 0.1), rng.choice((2, 9)), 3)
        ratio = dataclasses.replace(own, between_sessions=0.02)
        beyond = known(ratio.low) > 1.03 or known(ratio.high) < 1 / 1.03
        assert (verdict_of(ratio) in (Verdict.FASTER, Verdict.SLOWER)) is beyond
        assert verdict_of(ratio) is not Verdict.SAME  # 3 % is less than two sessions differ by


def test_on_battery_a_difference_must_be_larger() -> None:
    assert estimates.minimal_effect(on_battery=True) > estimates.minimal_effect(on_battery=False)


def test_one_trial_whose_slices_tell_its_error_decides() -> None:
    sliced = LogEstimate(math.log(0.8), 0.01, 20, trials=1, basis="slices")
    assert verdict_of(sliced) is Verdict.FASTER
    assert verdict_of(dataclasses.replace(sliced, log_error=None)) is Verdict.INCONCLUSIVE
    assert verdict_of(dataclasses.replace(sliced, log_error=0.2)) is Verdict.INCONCLUSIVE


SEEDS = range(8)


def drawn(seed: int, count: int, spread: float = 0.1) -> list[float]:
    rng = random.Random(seed)
    return [5 * math.exp(rng.gauss(0, spread)) for _ in range(count)]


def around(found: Estimate) -> tuple[float, float]:
    assert found.low is not None and found.high is not None
    return found.low, found.high


@pytest.mark.parametrize("count", [3, 5, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_value_and_its_interval_are_those_of_a_t_test_on_logarithms(seed: int, count: int) -> None:
    values = drawn(seed, count)
    found = estimate(values)
    low, high = reference.ttest_1samp(np.log(values), 0).confidence_interval(CONFIDENCE)
    assert found.value == pytest.approx(reference.gmean(values))
    assert around(found) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.log_error == pytest.approx(reference.sem(np.log(values)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_difference_s_interval_is_that_of_a_t_test(seed: int) -> None:
    values = [value - 5 for value in drawn(seed, 5)]
    found = estimates.mean_interval(values)
    assert found.value == pytest.approx(np.mean(values))
    assert around(found) == pytest.approx(tuple(reference.ttest_1samp(values, 0).confidence_interval(CONFIDENCE)))


@pytest.mark.parametrize(("counts", "spreads"), [((5, 5), (0.1, 0.1)), ((3, 10), (0.3, 0.01)), ((4, 6), (0.02, 0.2))])
@pytest.mark.parametrize("seed", SEEDS)
def test_two_runs_are_compared_as_by_welch_s_test(
    seed: int, counts: tuple[int, int], spreads: tuple[float, float]
) -> None:
    a, b = (drawn(10 * seed + side, counts[side], spreads[side]) for side in (0, 1))
    found = estimates.welch(a, b)
    test = reference.ttest_ind(np.log(a), np.log(b), equal_var=False)
    low, high = test.confidence_interval(CONFIDENCE)
    assert around(found) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.degrees == pytest.approx(test.df)
    assert found.log_error is not None
    assert found.log_centre / found.log_error == pytest.approx(test.statistic)


def ratios(seed: int, count: int, strength: float) -> list[LogEstimate]:
    """Ratios of five rounds, from no difference to a clear one, in any order."""
    rng = random.Random(seed)
    made = [
        estimate([math.exp(strength * index / count + rng.gauss(0, 0.03)) for _ in range(5)]) for index in range(count)
    ]
    rng.shuffle(made)
    return made


def p_values(found: Sequence[LogEstimate], effect: float) -> list[float]:
    """Two-sided against the nearer edge of the effect, by scipy's t."""
    edge = math.log1p(effect)
    off = [abs(abs(one.log_centre) - edge) / one.log_error for one in found if one.log_error]
    return [min(1.0, 2 * float(reference.t.sf(t, one.trials - 1))) for t, one in zip(off, found, strict=True)]


@pytest.mark.parametrize("strength", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("count", [1, 2, 11, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_verdicts_are_those_of_the_false_discovery_rate(seed: int, count: int, strength: float) -> None:
    found, effect = ratios(seed, count, strength), 0.03
    rejected = reference.false_discovery_control(p_values(found, effect)) <= 0.05
    expected = [
        claim(one, effect)[0] if sure else Verdict.INCONCLUSIVE for one, sure in zip(found, rejected, strict=True)
    ]
    assert [one.verdict for one in judge(found, effect)] == expected


@pytest.mark.parametrize("effect", [0.03, 0.1])
def test_a_difference_that_a_ratio_could_have_shown_is_called_in_nine_of_ten_cases(
    effect: float, rng: random.Random
) -> None:
    # The error is what four ratios have on the average: that of one run is known only roughly.
    scatter, rounds, runs = 0.02, 4, 2000
    typical = LogEstimate(0.0, scatter / math.sqrt(rounds), rounds - 1, rounds)
    found = estimates.detectable(typical, effect)
    assert found is not None and found > effect
    assert estimates.detectable(dataclasses.replace(typical, log_error=None), effect) is None
    called = sum(
        verdict_of(estimate([math.exp(math.log1p(found) + rng.gauss(0, scatter)) for _ in range(rounds)]), effect)
        is Verdict.SLOWER
        for _ in range(runs)
    )
    deviation = math.sqrt(runs * 0.9 * 0.1)
    assert called == pytest.approx(0.9 * runs, abs=5 * deviation)
