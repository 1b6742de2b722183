"""What warns of the order and the spread of slices."""

import pytest

from kerasbench.analysis.warnings import growth


@pytest.mark.parametrize(
    ("units_ns", "times"),
    [
        ([10, 11, 12, 13, 14, 15], 1.38),  # each longer than the one before
        ([10, 12, 11, 13, 14, 15], 1.0),  # of six, one pair in the wrong order may be chance
        ([20, 22, 21, 23, 24, 25, 24, 27, 26, 28, 31, 29], 1.33),  # of twelve, some may be
        ([10, 14, 10, 13, 10, 14, 10, 13, 14, 13, 14, 14], 1.0),
        ([15, 14, 13, 12, 11, 10], 1.0),
        ([10 + slice_ / 1_000 for slice_ in range(9_000)], 1.52),  # of a soak
        ([10, 11, 12, 13, 14], 1.0),  # too few
    ],
)
def test_steps_get_longer_where_slices_do_in_order(units_ns: list[float], times: float) -> None:
    assert growth(units_ns) == pytest.approx(times, abs=0.01)
