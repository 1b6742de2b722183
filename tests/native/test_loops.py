import pytest

from tests.native import trained

pytestmark = [pytest.mark.real, pytest.mark.traced]


@pytest.mark.parametrize(
    ("name", "adam_slots"),  # two moments of each of two weights, and ...
    [
        ("jax", 5),  # ... the step
        ("tensorflow", 6),  # ... two powers of beta
        ("torch", 6),  # ... a step of each
    ],
)
def test_it_trains_as_is_computed_by_hand(name: str, adam_slots: int) -> None:
    assert trained.check(name) == {"sgd": 0, "adam": adam_slots}
