import dataclasses
import math
import random
import statistics

import numpy as np
import pytest
from scipy import stats as reference
from scipy.special import polygamma

from kerasbench.analysis import estimates
from kerasbench.analysis.estimates import CONFIDENCE, Amount, Estimate, LogEstimate, Verdict, claim, estimate, judge
from tests.made import known


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.1]])
def test_fewer_than_three_trials_have_no_interval(values: list[float]) -> None:
    few = estimate(values)
    assert (few.low, few.high, few.half_width, few.trials) == (None, None, None, len(values))


@pytest.mark.parametrize("values", [[], [1.0, 0.0, 2.0], [-1.0]])
def test_a_time_is_positive(values: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        estimate(values)


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [(2, 0.2, True), (2, 0.8, False), (-2, 0.2, False), (0, 0.0, False), (2, None, True), (-2, None, False)],
)
def test_an_amount_is_told_from_zero_by_its_interval(value: float, error: float | None, told: bool) -> None:
    assert Amount(value, error, degrees=2, trials=3).is_above_zero is told


def test_the_variance_is_the_exact_one_s() -> None:
    centre = 1e9
    values = [centre + step for step in (0.1, -0.2, 0.4, 0.0)]
    assert estimates.variance(values) == pytest.approx(statistics.variance(values))
    assert estimates.variance([centre + 0.1] * 3) == 0


def test_intervals_at_their_edges() -> None:
    assert estimate([1.0] * 2).and_then(estimate([1.0] * 3)).half_width is None
    assert estimate([2.0] * 3).and_then(estimate([1.0] * 3)).half_width == 0


def around(value: Estimate) -> tuple[float, float]:
    return known(value.low), known(value.high)


def verdict_of(ratio: LogEstimate, effect: float = estimates.MINIMAL_EFFECT) -> Verdict:
    return judge([ratio], effect)[0].verdict


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [(2.3036, 2.3036, False), (2.3036, 2.30361, False), (2.30264, 2.30285, True), (2.3, 0.4, True), (0.0, 0.0, False)],
)
def test_a_loss_that_stays_the_same_means_that_nothing_was_learned(before: float, after: float, answer: bool) -> None:
    assert estimates.learned(before, after) is answer


def measured(value: float, spread: float) -> LogEstimate:  # a standard deviation of its logarithm
    return estimate([value * (1 + spread * step) for step in (-1.2, -0.6, 0.0, 0.6, 1.2)])


def test_a_run_s_verdicts_do_not_depend_on_what_else_is_shown() -> None:
    border, unclear = measured(0.93, 0.02), measured(1.0, 0.1)
    others: list[LogEstimate | None] = [unclear] * 19
    assert judge([border, *others], runs=["its own", *["another"] * 19])[0].verdict is Verdict.FASTER
    assert judge([border, *[None] * 19])[0].verdict is Verdict.FASTER  # nor on those that nothing can be said of


@pytest.mark.parametrize("between_sessions", [0.0, 0.02])
def test_the_interval_that_is_shown_is_the_one_that_decides(between_sessions: float, rng: random.Random) -> None:
    effect = 0.03
    ratios = [measured(math.exp(rng.gauss(0, 0.2)), rng.uniform(0.001, 0.2)) for _ in range(40)]
    ratios += [measured(0.5, 0.01), measured(2.0, 0.01), measured(1.0, 0.2), measured(1.0, 0.001)]
    judgements = judge([dataclasses.replace(ratio, between_sessions=between_sessions) for ratio in ratios], effect)
    # 3 % is less than two sessions differ by
    assert {verdict for _, verdict in judgements} == {*Verdict} - ({Verdict.SAME} if between_sessions else set())
    for ratio, verdict in judgements:
        low, high = around(known(ratio))
        beyond = Verdict.SLOWER if low > 1 + effect else Verdict.FASTER if high < 1 / (1 + effect) else None
        within = 1 / (1 + effect) < low and high < 1 + effect
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
            ratio = estimate([math.exp(session + rng.gauss(0.0, own)) for _ in range(3)])
            low, high = around(dataclasses.replace(ratio, between_sessions=0.02))
            hits += low <= 1 <= high
        assert 0.935 < hits / runs < 0.97


def test_one_trial_whose_slices_tell_its_error_decides() -> None:
    sliced = LogEstimate(math.log(0.8), 0.01, 20, trials=1, basis="slices")
    assert verdict_of(sliced) is Verdict.FASTER
    assert verdict_of(dataclasses.replace(sliced, log_error=None)) is Verdict.INCONCLUSIVE
    assert verdict_of(dataclasses.replace(sliced, log_error=0.2)) is Verdict.INCONCLUSIVE


SEEDS = range(8)


def drawn(seed: int, count: int, spread: float = 0.1) -> list[float]:
    rng = random.Random(seed)
    return [5 * math.exp(rng.gauss(0, spread)) for _ in range(count)]


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
def test_two_runs_are_compared_by_welch(seed: int, counts: tuple[int, int], spreads: tuple[float, float]) -> None:
    a, b = (drawn(10 * seed + side, counts[side], spreads[side]) for side in (0, 1))
    found = estimate(a).and_then(estimate(b).inverse)
    test = reference.ttest_ind(np.log(a), np.log(b), equal_var=False)
    low, high = test.confidence_interval(CONFIDENCE)
    assert around(found) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.degrees == pytest.approx(test.df)
    assert found.log_centre / known(found.log_error) == pytest.approx(test.statistic)


@pytest.mark.parametrize("strength", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("count", [1, 2, 11, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_verdicts_are_those_of_the_false_discovery_rate(seed: int, count: int, strength: float) -> None:
    rng, effect = random.Random(seed), 0.03
    centres = [strength * index / count for index in range(count)]  # from no difference to a clear one, in any order
    rng.shuffle(centres)
    ratios = [estimate([math.exp(centre + rng.gauss(0, 0.03)) for _ in range(5)]) for centre in centres]
    # Two-sided against the nearer edge of the effect.
    off = [(abs(ratio.log_centre) - math.log1p(effect)) / known(ratio.log_error) for ratio in ratios]
    rejected = reference.false_discovery_control([min(1, 2 * reference.t.sf(abs(t), 4)) for t in off]) <= 0.05
    expected = [
        claim(ratio, effect)[0] if sure else Verdict.INCONCLUSIVE for ratio, sure in zip(ratios, rejected, strict=True)
    ]
    assert [verdict for _, verdict in judge(ratios, effect)] == expected


@pytest.mark.parametrize("effect", [0.03, 0.1])
def test_a_detectable_difference_is_called_in_nine_of_ten_cases(effect: float, rng: random.Random) -> None:
    # The error is what four ratios have on the average: that of one run is known only roughly.
    scatter, rounds, runs = 0.02, 4, 2000
    typical = LogEstimate(0.0, scatter / math.sqrt(rounds), rounds - 1, rounds)
    ratio = known(estimates.detectable(typical, effect))
    assert ratio > effect
    assert estimates.detectable(dataclasses.replace(typical, log_error=None), effect) is None
    centre = math.log1p(ratio)
    runs_of = (estimate([math.exp(centre + rng.gauss(0, scatter)) for _ in range(rounds)]) for _ in range(runs))
    called = sum(verdict_of(run, effect) is Verdict.SLOWER for run in runs_of)
    deviation = math.sqrt(runs * 0.9 * 0.1)
    assert called == pytest.approx(0.9 * runs, abs=5 * deviation)


@pytest.mark.parametrize("x", [0.02, 0.5, 1.1, 30.0, 4e6])
def test_the_inverse_of_trigamma(x: float) -> None:
    assert estimates.inverse_trigamma(float(polygamma(1, x))) == pytest.approx(x, rel=1e-4)


def test_the_distribution_of_many_variances_is_recovered(rng: random.Random) -> None:
    def chi_square(degrees: float) -> float:
        return rng.gammavariate(degrees / 2, 2)

    variances = [(0.065**2 * 2.2 / chi_square(2.2) * chi_square(4) / 4, 4.0) for _ in range(5000)]
    prior = known(estimates.prior_of(variances))
    assert prior.degrees == pytest.approx(2.2, rel=0.15)
    assert math.sqrt(prior.variance) == pytest.approx(0.065, rel=0.1)


def test_variances_that_differ_no_more_than_few_values_let_them_are_pooled() -> None:
    prior = known(estimates.prior_of([(0.01, 2.0)] * 10))
    assert prior.degrees == 18.0  # of twenty, less those of one
    followers = known(estimates.prior_of([(0.01, 2.0)] * 15, 10))
    assert (followers.degrees, followers.ratios) == (18.0, 10)
    assert prior.variance > 0.01  # log variances of two degrees of freedom are low on average
    assert estimates.prior_of([(0.01, 2.0)] * (estimates.MIN_RATIOS - 1)) is None
    equal = known(estimates.prior_of([(0.0, 2.0), *[(0.01, 2.0)] * 6]))
    assert equal.moderate(0.0, 2.0)[0] > 0  # equal values have an interval


def test_a_variance_of_few_values_moves_towards_the_others_and_one_of_many_stays() -> None:
    prior = estimates.Prior(0.04, 2.0, 24)
    assert prior.moderate(0.0, 2.0) == (0.02, 4.0)
    assert prior.moderate(0.08, 2.0) == (0.06, 4.0)
    assert prior.moderate(0.08, 200.0)[0] == pytest.approx(0.0796, abs=1e-4)


@pytest.mark.parametrize(
    ("p_values", "confidence"),
    [
        ([], 0.95),
        ([0.2, 0.9], 0.975),  # nothing is called: as strict as for the smallest of them (Bonferroni)
        ([0.001, 0.002], 0.95),  # all are called: no correction
        ([0.001, 0.03, 0.9, 0.9], 1 - 0.05 / 4),
        ([0.04, 0.03, 0.02, 0.01], 0.95),  # none but the last by itself, and all together
    ],
)
def test_intervals_are_as_wide_as_what_is_called_asks_for(p_values: list[float], confidence: float) -> None:
    assert estimates.confidence_of(p_values, 0.05) == pytest.approx(confidence)
