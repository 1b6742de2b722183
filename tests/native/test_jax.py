import pytest

from tests.native import trained

pytestmark = [pytest.mark.real, pytest.mark.traced]
ADAM_SLOTS = 5  # two moments of each of two weights, and the step


@pytest.mark.parametrize(("optimizer", "slots"), [("sgd", 0), ("adam", ADAM_SLOTS)])
def test_it_trains_as_is_computed_by_hand(optimizer: str, slots: int) -> None:
    assert trained.check("jax", optimizer)["slots"] == slots
