import pytest

from kerasbench.protocol.columns import Axis
from kerasbench.report.figures import about, percent, seconds, significant, times, with_interval
from tests import made


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.000123, "0.000123"), (0.0123, "0.0123"), (1.8549, "1.85"), (12.345, "12.3"), (123.4, "123"), (99_481, "99,500"),
     (0, "0"), (-14.83, "-14.8"), (9.999, "10.0")],
)  # fmt: skip
def test_three_digits_without_exponents(value: float, text: str) -> None:
    assert significant(value) == text


def test_an_interval_stands_behind_its_unit() -> None:
    assert with_interval(made.estimate(12.3, 12.5214, 3), "ms") == "12.3 ms ±1.8 %"
    assert with_interval(made.estimate(12.3), "ms") == "12.3 ms"


@pytest.mark.parametrize(
    ("value", "high", "text"),
    [(3.9, 4.1, "3.9× (3.7–4.1)"), (3.0, 221.7, "3.0× (0.041–221.7)"), (12.3, 151, "12× (1.0–151)"),
     (1.5, 2.0, "1.50× (1.12–2.00)"), (2.0, 4.1, "2.0× (0.98–4.1)")],
)  # fmt: skip
def test_a_bound_of_a_ratio_is_never_nothing(value: float, high: float, text: str) -> None:
    assert times(made.estimate(value, high, 3)) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0181, "1.8 %"), (0.123, "12 %"), (0.0996, "10 %"), (1.5, "150 %"), (-0.2, "-20 %")]
)
def test_percentages(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"), [(7.6, "8 s"), (65, "1 min 05 s"), (3599.9, "1 h 00 min"), (4260, "1 h 11 min")]
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("axis", "size", "text"), [("batch", 8.08, "8"), ("batch", 1_234.4, "1,234"), ("width", 1.234, "1.23")]
)
def test_a_batch_between_two_is_told_in_whole_samples(axis: Axis, size: float, text: str) -> None:
    assert about(axis, size) == text
