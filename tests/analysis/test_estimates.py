import math
import random
import statistics

import pytest

from kerasbench.analysis.estimates import (
    Basis,
    LogEstimate,
    estimate,
    mean_interval,
    sign,
    variance,
    welch,
)


def test_the_interval_is_student_s_t_on_logarithms() -> None:
    found = estimate([10.0, 11.0, 12.0])
    logs = [math.log(value) for value in (10, 11, 12)]
    centre = sum(logs) / 3
    spread = math.sqrt(sum((log - centre) ** 2 for log in logs) / 2)
    assert found.value == pytest.approx(math.exp(centre))
    assert found.high == pytest.approx(math.exp(centre + 4.302653 * spread / math.sqrt(3)))
    assert found.low is not None and found.high is not None
    assert found.low * found.high == pytest.approx(found.value**2)


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.1]])
def test_fewer_than_three_trials_have_no_interval(values: list[float]) -> None:
    found = estimate(values)
    assert (found.low, found.high, found.half_width, found.trials) == (None, None, None, len(values))


@pytest.mark.parametrize("values", [[], [1.0, 0.0, 2.0], [-1.0]])
def test_a_time_is_positive(values: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        estimate(values)


@pytest.mark.parametrize("trials", [3, 5])
def test_the_interval_covers_what_it_promises(trials: int) -> None:
    rng = random.Random(1)
    runs = 1000
    covered = 0
    for _ in range(runs):
        found = estimate([10 * math.exp(rng.gauss(0, 0.05)) for _ in range(trials)])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 10 <= found.high
    assert 0.93 < covered / runs < 0.97


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        ((2.0, 1.0, 3.0), 1),
        ((2.0, -1.0, 5.0), 0),
        ((-2.0, -5.0, 1.0), 0),
        ((-2.0, -3.0, -1.0), -1),
        ((0.0, 0.0, 0.0), 0),
        ((2.0, None, None), 1),
        ((-2.0, None, None), 0),
    ],
)
def test_an_amount_is_told_from_zero_by_its_interval(
    amount: tuple[float, float | None, float | None], told: int
) -> None:
    assert sign(*amount) == told


@pytest.mark.parametrize("centre", [0.0, 1.0, 1e9])
def test_the_variance_is_the_exact_one_s(centre: float) -> None:
    values = [centre + step for step in (0.1, -0.2, 0.4, 0.0)]
    assert variance(values) == pytest.approx(statistics.variance(values))
    assert variance([centre + 0.1] * 3) == 0


def test_welch_of_two_trials_has_no_interval_and_of_equal_ones_no_width() -> None:
    assert welch([1.0, 1.0], [1.0, 1.0, 1.0]).half_width is None
    assert welch([2.0] * 3, [1.0] * 3).half_width == 0


@pytest.mark.parametrize("basis", ["trials", "slices"])
def test_a_ratio_is_made_of_centre_error_and_degrees_also_of_one_trial(basis: Basis) -> None:
    found = LogEstimate(math.log(2), 0.1, 4, trials=1, basis=basis)
    assert found.value == pytest.approx(2)
    assert found.high == pytest.approx(2 * math.exp(2.776445 * 0.1))
    assert found.half_width == pytest.approx(math.exp(2.776445 * 0.1) - 1)
    assert found.has_interval


def test_an_estimate_times_a_number_keeps_its_relative_interval() -> None:
    found = estimate([10.0, 11.0, 12.0])
    half = found.times(0.5)
    assert half.value == pytest.approx(found.value / 2)
    assert half.high == pytest.approx((found.high or 0) / 2)
    assert half.half_width == pytest.approx(found.half_width)


def test_the_error_of_an_amount_is_that_of_its_values_and_not_of_their_logarithms() -> None:
    found = mean_interval([-1.0, 0.0, 4.0])
    assert found.value == pytest.approx(1)
    assert found.error == pytest.approx(math.sqrt(7 / 3))
    assert found.low == pytest.approx(1 - 4.302653 * math.sqrt(7 / 3))
    assert found.sign == 0
    assert (-found).value == pytest.approx(-1)
    assert (-found).high == pytest.approx(-(found.low or 0))
    assert found.half_width == pytest.approx(4.302653 * math.sqrt(7 / 3))
    assert mean_interval([1.0, 2.0]).half_width is None
    assert mean_interval([-1.0, 0.0, 1.0]).half_width == math.inf
