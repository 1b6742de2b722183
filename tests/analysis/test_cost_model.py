import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerasbench.analysis.estimates import LogEstimate, estimate
from kerasbench.analysis.series import FIT_TOLERANCE, fit
from tests import made

BATCHES = [1, 4, 16, 64, 256]


def exact(value: float) -> LogEstimate:
    return made.estimate(value, value, 3)


@given(st.floats(0.01, 100), st.floats(1e-5, 1))
def test_a_planted_line_is_found(overhead: float, per_sample: float) -> None:
    found = fit([(batch, exact(overhead + per_sample * batch)) for batch in BATCHES])
    assert found is not None
    assert found.overhead.value == pytest.approx(overhead, rel=1e-6)
    assert found.per_sample.value == pytest.approx(per_sample, rel=1e-6, abs=1e-9 * overhead)
    assert found.deviation < 1e-6
    assert found.fits


def test_two_sizes_lie_on_any_line() -> None:
    assert fit([(1, exact(1.0)), (2, exact(5.0))]) is None


def test_the_intervals_hold_what_was_planted_in_noise() -> None:
    rng = random.Random(0)
    covered = [0, 0]
    for _ in range(200):
        steps = [
            (batch, estimate([(2 + 0.05 * batch) * math.exp(rng.gauss(0, 0.03)) for _ in range(5)]))
            for batch in BATCHES
        ]
        found = fit(steps)
        assert found is not None
        covered[0] += found.overhead.low <= 2 <= found.overhead.high
        covered[1] += found.per_sample.low <= 0.05 <= found.per_sample.high
    assert min(covered) >= 180  # 95 % of them, less what chance may take


def test_a_size_that_is_known_well_draws_the_line() -> None:
    loose, tight = 0.5, 0.01

    def sized(value: float, error: float) -> LogEstimate:
        return made.estimate(value, value * math.exp(error), 5)

    found = fit([(0, sized(1, tight)), (10, sized(2, tight)), (20, sized(3, tight)), (30, sized(8, loose))])
    assert found is not None
    assert found.overhead.value == pytest.approx(1, abs=0.02)
    assert found.per_sample.value == pytest.approx(0.1, abs=0.003)
    assert found.worst == 30


def test_three_trials_that_happen_to_agree_do_not_draw_the_line() -> None:
    lucky = made.estimate(3.0, 3.0 * (1 + 1e-9), 3)
    steps = [(batch, made.estimate(1.0 + 0.1 * batch, 1.1 + 0.11 * batch, 3)) for batch in (1, 5, 20, 40)]
    found = fit([*steps[:2], (10, lucky), *steps[2:]])
    assert found is not None
    assert found.overhead.value + 10 * found.per_sample.value < 2.7


def test_a_series_that_is_no_line_is_not_explained() -> None:
    found = fit([(batch, exact(math.sqrt(batch))) for batch in BATCHES])
    assert found is not None
    assert found.deviation > FIT_TOLERANCE
    assert not found.fits


def test_what_a_size_s_own_interval_allows_is_no_misfit() -> None:
    wide = made.estimate(1.5, 4.5, 3)
    found = fit([(1, made.estimate(1.01, 1.13, 3)), (10, wide), (100, made.estimate(2.0, 2.2, 3))])
    assert found is not None
    assert found.deviation > FIT_TOLERANCE
    assert found.fits


def test_one_round_has_no_errors_and_intervals_from_the_misfit_alone() -> None:
    found = fit(
        [
            (batch, made.estimate(2 + 0.05 * batch * wobble))
            for batch, wobble in zip(BATCHES, (1, 1.2, 0.9, 1, 1.01), strict=True)
        ]
    )
    assert found is not None
    assert found.overhead.low < 2 < found.overhead.high
    assert found.overhead.high - found.overhead.low < 0.5
