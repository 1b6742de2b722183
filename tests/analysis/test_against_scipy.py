"""The statistics against scipy.stats, which arrives at them in another way: by its own tests and distributions."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats as reference

from kerasbench.analysis import estimates
from kerasbench.analysis.estimates import CONFIDENCE, Estimate, LogEstimate, Verdict, claim, estimate, judge_all

ALPHA = (1 - CONFIDENCE) / 2  # of one side
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


@pytest.mark.parametrize("degrees", [1, 2, 4.7, 29])
def test_quantiles_are_those_of_t(degrees: float) -> None:
    assert estimates.t_quantile(degrees) == pytest.approx(reference.t.ppf(1 - ALPHA, degrees))


def ratios(seed: int, count: int, strength: float) -> list[LogEstimate]:
    """Ratios of five rounds, from no difference to a clear one, in any order."""
    rng = random.Random(seed)
    made = [
        estimate([math.exp(strength * index / count + rng.gauss(0, 0.03)) for _ in range(5)]) for index in range(count)
    ]
    rng.shuffle(made)
    return made


def p_values(found: Sequence[LogEstimate], effect: float) -> list[float]:
    """One-sided against the nearer edge of the effect, by scipy's t."""
    edge = math.log1p(effect)
    off = [abs(abs(one.log_centre) - edge) / one.log_error for one in found if one.log_error]
    return [float(reference.t.sf(t, one.trials - 1)) for t, one in zip(off, found, strict=True)]


def holm(p: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, written as his paper has them: the running maximum of (m - i) * p_(i)."""
    order = np.argsort(p)
    scaled = [(len(p) - rank) * p[index] for rank, index in enumerate(order)]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(scaled))
    return [float(one) for one in adjusted]


@pytest.mark.parametrize("strength", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("count", [1, 2, 11, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_verdicts_are_those_of_holm_s_adjusted_p(seed: int, count: int, strength: float) -> None:
    found, effect = ratios(seed, count, strength), 0.03
    rejected = [p <= ALPHA for p in holm(p_values(found, effect))]
    expected = [
        claim(one, effect).verdict if sure else Verdict.INCONCLUSIVE for one, sure in zip(found, rejected, strict=True)
    ]
    assert judge_all(found, effect) == expected


def test_those_verdicts_are_of_all_kinds() -> None:
    """Otherwise the test above would compare nothing with nothing."""
    found = [one for seed in SEEDS for one in judge_all(ratios(seed, 40, 0.6), 0.03)]
    assert {Verdict.SLOWER, Verdict.INCONCLUSIVE} <= set(found)
    assert Verdict.SAME in judge_all([estimate([1.0, 1.001, 0.999])] * 40, 0.03)
