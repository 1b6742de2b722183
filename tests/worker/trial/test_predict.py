import pytest

from kerasbench.exchange.requests import Protocol
from kerasbench.worker.trial.predict import goes_on

S = 1_000_000_000


@pytest.mark.parametrize(
    ("calls", "spent_ns", "wanted"),
    [
        (0, 0, True),
        (199, 2 * S, True),  # too few calls
        (200, 2 * S, False),
        (500, S // 2, True),  # too short a time
        (1_000, S // 2, False),  # enough for a 99th percentile
        (10, 3 * S, False),  # a slow model
    ],
)
def test_calls_go_on_for_200_and_a_second_but_not_for_ever(calls: int, spent_ns: int, wanted: bool) -> None:
    assert goes_on(calls, spent_ns, Protocol()) is wanted
