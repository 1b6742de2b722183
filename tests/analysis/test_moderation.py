import math
import random

import pytest
from scipy.special import polygamma

from kerasbench.analysis.estimates import MIN_RATIOS, Prior, confidence_of, inverse_trigamma, prior_of
from tests.made import known


@pytest.mark.parametrize("x", [0.02, 0.5, 1.1, 30.0, 4e6])
def test_the_inverse_of_trigamma(x: float) -> None:
    assert inverse_trigamma(float(polygamma(1, x))) == pytest.approx(x, rel=1e-4)


def test_the_distribution_of_many_variances_is_recovered(rng: random.Random) -> None:
    def chi_square(degrees: float) -> float:
        return rng.gammavariate(degrees / 2, 2)

    variances = [(0.065**2 * 2.2 / chi_square(2.2) * chi_square(4) / 4, 4.0) for _ in range(5000)]
    prior = known(prior_of(variances))
    assert prior.ratios == 5000
    assert prior.degrees == pytest.approx(2.2, rel=0.15)
    assert math.sqrt(prior.variance) == pytest.approx(0.065, rel=0.1)


def test_variances_that_differ_no_more_than_few_values_let_them_are_pooled() -> None:
    prior = known(prior_of([(0.01, 2.0)] * 10))
    assert prior.degrees == 18.0  # of twenty, less those of one
    assert prior.variance > 0.01  # log variances of two degrees of freedom are low on average
    assert prior_of([(0.01, 2.0)] * (MIN_RATIOS - 1)) is None


def test_a_variance_of_few_values_moves_towards_the_others_and_one_of_many_stays() -> None:
    prior = Prior(0.04, 2.0, 24)
    assert prior.moderate(0.0, 2.0) == (0.02, 4.0)
    assert prior.moderate(0.08, 2.0) == (0.06, 4.0)
    assert prior.moderate(0.08, 200.0)[0] == pytest.approx(0.0796, abs=1e-4)


def test_equal_values_have_no_variance_and_still_an_interval() -> None:
    assert known(prior_of([(0.0, 2.0), *[(0.01, 2.0)] * 6])).moderate(0.0, 2.0)[0] > 0


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
    assert confidence_of(p_values, 0.05) == pytest.approx(confidence)
