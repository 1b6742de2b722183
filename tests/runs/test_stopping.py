import pytest

from kerasbench.results.asked import Effort
from kerasbench.runs import stopping

WIDE, NARROW = 0.5, 0.01


@pytest.mark.parametrize(
    ("widths", "reason"),
    [
        ([[None], [0.001]], ""),  # fewer than three rounds have no interval that deserves the name
        ([[None], [None], [0.019, 0.02]], "every interval is within ±2%"),
        ([[None], [None], [0.019, 0.021]], ""),
        ([[None], [None], [None, 0.001]], ""),
        ([[None], [None], [WIDE], [0.6 * WIDE]], ""),
        ([[None], [None], [WIDE, NARROW], [0.99 * WIDE, NARROW]], "no interval that is still too wide has shrunk"),
        ([[None], [None], [WIDE, WIDE], [WIDE, 0.6 * WIDE]], ""),
        ([[WIDE]] * 5, "all 5 rounds are done"),
    ],
)
def test_when_a_run_stops(widths: list[list[float | None]], reason: str) -> None:
    found = stopping.stop_reason(Effort(), widths)
    assert found.startswith(reason) and bool(found) is bool(reason)


def test_on_battery_a_run_aims_at_less() -> None:
    assert (
        stopping.stop_reason(Effort(), [[0.04]] * 3, precision=stopping.precision_of(0.05))
        == "every interval is within ±5%"
    )
    assert stopping.stop_reason(Effort(), [[0.04], [0.04], [0.03]], precision=stopping.precision_of(0.03)) == ""


@pytest.mark.parametrize(
    ("spent_s", "done", "reason"),
    [
        (40.0, 1, ""),
        (50.0, 1, ""),
        (51.0, 1, "another round would not have fitted into --budget 100 s"),
        (90.0, 2, "another round would not have fitted into --budget 100 s"),
        (
            200.0,
            1,
            "--budget 100 s is used up: the first round, which is always completed, has taken 200 s",
        ),
        (120.0, 2, "--budget 100 s is used up: 2 rounds have taken 120 s"),
    ],
)
def test_a_budget_allows_no_round_that_it_would_not_hold(spent_s: float, done: int, reason: str) -> None:
    assert stopping.stop_reason(Effort(budget_s=100.0), [[None]] * done, spent_s) == reason
