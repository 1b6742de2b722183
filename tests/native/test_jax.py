import pytest

from tests.native import trained

pytestmark = [pytest.mark.real, pytest.mark.traced]
ADAM_SLOTS = 5  # two moments of each of two weights, and the step


def test_it_trains_as_is_computed_by_hand() -> None:
    assert trained.check("jax") == {"sgd": 0, "adam": ADAM_SLOTS}
