import math
import random

import pytest

from kerasbench.stats import estimate, t_quantile


def test_the_interval_is_student_s_t_on_logarithms() -> None:
    found = estimate([10.0, 11.0, 12.0])
    logs = [math.log(value) for value in (10, 11, 12)]
    centre = sum(logs) / 3
    spread = math.sqrt(sum((log - centre) ** 2 for log in logs) / 2)
    assert found.value == pytest.approx(math.exp(centre))
    assert found.high == pytest.approx(math.exp(centre + 4.302653 * spread / math.sqrt(3)))
    assert found.low is not None
    assert found.low * found.high == pytest.approx(found.value**2)


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.1]])
def test_fewer_than_three_trials_have_no_interval(values: list[float]) -> None:
    found = estimate(values)
    assert (found.low, found.high, found.half_width, found.trials) == (None, None, None, len(values))


@pytest.mark.parametrize("values", [[], [1.0, 0.0, 2.0], [-1.0]])
def test_a_time_is_positive(values: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        estimate(values)


def test_t_quantile_is_the_textbook_s() -> None:
    assert [round(t_quantile(degrees), 3) for degrees in (1, 2, 4, 9)] == [12.706, 4.303, 2.776, 2.262]


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
