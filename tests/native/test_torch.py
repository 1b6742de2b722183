import pytest

from tests.native import trained

pytestmark = [pytest.mark.real, pytest.mark.traced]
ADAM_SLOTS = 6  # two moments and a step for each of two weights


def test_it_trains_as_is_computed_by_hand() -> None:
    assert trained.check("torch") == {"sgd": 0, "adam": ADAM_SLOTS}
