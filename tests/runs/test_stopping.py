import pytest

from kerasbench.results.record import Effort, exactly
from kerasbench.runs import schedule
from kerasbench.runs.schedule import Ending
from tests import made
from tests.scripted import by_round

WIDE, NARROW = 0.5, 0.01
FIVE, TWELVE = Effort(3, 5), Effort(3, 12)


@pytest.mark.parametrize(
    ("widths", "ending"),
    [
        ([[None], [0.001]], None),  # fewer than three blocks have no interval that deserves the name
        ([[None], [None], [0.019, 0.02]], Ending.PRECISE),
        ([[None], [None], [0.019, 0.021]], None),
        ([[None], [None], [None, 0.001]], None),
        ([[None], [None], [WIDE], [0.6 * WIDE]], None),
        ([[None], [None], []], None),
        ([[WIDE]] * 5, Ending.ROUNDS),
    ],
)
def test_when_a_row_has_enough(widths: list[list[float | None]], ending: Ending | None) -> None:
    assert schedule.ending(FIVE, widths) is ending


@pytest.mark.parametrize(
    ("since", "ending"),
    [
        ([[2 * WIDE, NARROW], [1.5 * WIDE, NARROW]], None),  # an unusual block, and one that made up for a part of it
        ([[2 * WIDE, NARROW], [1.5 * WIDE, NARROW], [0.99 * WIDE, NARROW]], Ending.NO_GAIN),
        ([[2 * WIDE, NARROW], [1.5 * WIDE, NARROW], [0.9 * WIDE, NARROW]], None),
        ([[WIDE, WIDE], [WIDE, WIDE], [WIDE, 0.9 * WIDE]], None),
        ([[WIDE, WIDE], [WIDE, WIDE], [WIDE]], None),  # a column has failed
    ],
)
def test_a_row_is_given_up_when_three_blocks_have_gained_nothing(
    since: list[list[float | None]], ending: Ending | None
) -> None:
    assert schedule.ending(TWELVE, [[None], [None], [WIDE, since[0][1]], *since]) is ending


def test_a_row_that_is_asked_for_so_many_blocks_has_them() -> None:
    assert [schedule.ending(exactly(4), [[NARROW]] * done) for done in (3, 4)] == [None, Ending.ROUNDS]


def test_on_battery_a_run_aims_at_less() -> None:
    assert schedule.ending(FIVE, [[0.04]] * 3, schedule.precision_of(0.05)) is Ending.PRECISE
    assert schedule.ending(FIVE, [[0.04], [0.04], [0.03]], schedule.precision_of(0.03)) is None


def test_a_run_says_which_of_its_rows_ended_why() -> None:
    three = [Ending.PRECISE, Ending.ROUNDS, Ending.PRECISE]
    assert schedule.summed_up(three[:1], FIVE, 0.05) == "every ratio is within ±5 %"
    assert schedule.summed_up(three, FIVE, 0.02) == ("2 rows: every ratio is within ±2 %; 1 row: all 5 rounds are done")
    assert schedule.summed_up([Ending.NO_GAIN], FIVE, 0.02, several=False) == (
        "no interval that is still too wide has shrunk in the last 3 rounds"
    )
    assert schedule.summed_up([Ending.ROUNDS], exactly(1), 0.02) == "one round was asked for"


@pytest.mark.parametrize(
    ("spent_s", "another_s", "done", "reason"),
    [
        (0.0, 500.0, 0, ""),  # the first round is always completed
        (40.0, 40.0, 1, ""),
        (50.0, 50.0, 1, ""),
        (51.0, 51.0, 1, "another round of about 51 s does not fit into the 49 s that --budget leaves"),
        (90.0, 5.0, 2, ""),  # most rows are decided
        (200.0, 1.0, 1, "--budget 100 s is used up: the first round, which is always completed, has taken 200 s"),
        (120.0, 1.0, 2, "--budget 100 s is used up: 2 rounds have taken 120 s"),
    ],
)
def test_a_budget_allows_no_round_that_it_would_not_hold(
    spent_s: float, another_s: float, done: int, reason: str
) -> None:
    assert schedule.out_of_budget(100.0, spent_s, another_s, done) == reason
    assert schedule.out_of_budget(None, spent_s, another_s, done) == ""


def test_all_ratios_of_a_row_are_looked_at_but_those_of_a_column_that_failed() -> None:
    steps = {"jax": (1.0, 1.01, 0.99), "tensorflow": (2.0, 2.01, 2.0), "torch": (3.0, 3.0, 3.1)}
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step))
        for backend, found in steps.items()
        for index, step in enumerate(found, start=1)
    ]
    assert len(schedule.half_widths(trials, by_round)) == 3
    failed = made.trial(4, backend="torch", failure=made.FAILURE)
    (width,) = schedule.half_widths([*trials, failed], by_round)
    assert width is not None and width < 0.1


def test_a_row_of_one_column_has_its_own_interval() -> None:
    trials = [made.trial(index, found=made.measurement(2 + index / 100)) for index in (1, 2, 3)]
    (width,) = schedule.half_widths(trials, by_round)
    assert width is not None and 0 < width < 0.1
    assert schedule.half_widths(trials[:1], by_round) == [None]
    assert schedule.half_widths([made.trial(failure=made.FAILURE)], by_round) == []
