import math
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pytest

from kerasbench.analysis.cases import summarize_case
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import RowRatios
from kerasbench.protocol.columns import Column
from kerasbench.results.run import Effort
from kerasbench.runs import stopping
from kerasbench.runs.stopping import RatioPrecision, StopReason, in_words, precision_of, stop_reason
from tests import made

JAX, TORCH, TENSORFLOW = (Column(name, "cpu") for name in ("jax", "torch", "tensorflow"))
AGAIN, NATIVE = JAX.with_options(control=True), TORCH.with_options(native=True)
OLD, NEW = JAX.with_options(environment="old"), JAX.with_options(environment="new")
OLD_AGAIN = OLD.with_options(control=True)


def seen(
    times: Mapping[Column, float], error: float = 0.005, paired: bool = False, **different: Any
) -> dict[tuple[str, ...], bool]:
    """Return by their labels which ratios of columns, that take so long, a row looks at, and whether they are known."""

    def estimate_within_sessions(ratios: RowRatios[Column], a: Column, b: Column, metric: str) -> LogEstimate:
        return LogEstimate(math.log(times[a] / times[b]), error, 8.0, 5, **different)

    trials = [made.trial(backend=column.backend, options=column.options) for column in times]
    ratios = RowRatios({trial.column: summarize_case([trial]) for trial in trials})
    with patch.object(RowRatios, "estimate_within_sessions", estimate_within_sessions):
        found = precision_of(ratios, "train_step_ms", paired, Effort(), 0.03)
    return {tuple(column.label for column in pair): known.is_enough for pair, known in found.items()}  # type: ignore[attr-defined]


def test_a_row_looks_at_what_its_page_prints() -> None:
    found = seen({JAX: 1.0, TORCH: 1.5, TENSORFLOW: 2.5, NATIVE: 0.5, AGAIN: 1.0})
    over = {("torch cpu", "jax cpu"), ("tensorflow cpu", "jax cpu")}
    beside = {(NATIVE.label, "torch cpu"), (AGAIN.label, "jax cpu")}
    assert found == dict.fromkeys(over | beside, True)
    assert seen({OLD: 1.0, NEW: 1.2, OLD_AGAIN: 1.0}, paired=True) == {
        (OLD.label, NEW.label): True,
        (OLD_AGAIN.label, OLD.label): True,
    }


@pytest.mark.parametrize(
    ("torch", "error", "different", "is_known"),
    [
        (1.5, 0.005, {}, True),
        (1.5, 0.03, {}, False),  # ±8 %
        (3.0, 0.03, {}, True),  # beyond 2×: ±10 % are enough
        (9.0, 0.05, {}, False),  # ±13 %
        (2.1, 0.03, {}, False),  # perhaps
        (1.03, 0.005, {}, False),  # slower, or not
        (1.0, 0.005, {}, False),  # within ±4 %, but not within the effect
        (1.5, 0.005, {"disturbed": True}, False),
    ],
)
def test_what_is_known_is_decided_and_narrow_or_far_off(
    torch: float, error: float, different: dict[str, Any], is_known: bool
) -> None:
    assert list(seen({JAX: 1.0, TORCH: torch}, error, **different).values()) == [is_known]


def test_versions_that_are_the_same_are_known_without_what_sessions_differ_by() -> None:
    assert all(seen({OLD: 1.0, NEW: 1.0, OLD_AGAIN: 1.0}, 0.005, paired=True).values())


@pytest.mark.parametrize(
    ("times_as_long", "error", "between", "is_hopeless"),
    [
        (1.5, 0.03, 0.0, False),  # 0.03 of five rounds become 0.019 of twelve, of which 2.1 are 4 %
        (1.5, 0.04, 0.0, True),
        (2.2, 0.04, 0.0, False),  # it will lie wholly beyond 2×
        (9.0, 0.12, 0.0, True),  # and this will not be within ±10 %
        (1.5, 0.03, 0.02, True),  # sessions differ, however many rounds there are
        (1.05, 0.02, 0.0, False),  # it is not decided yet
        (1.0, 0.001, 0.02, True),  # nor will it be
    ],
)
def test_what_all_rounds_would_leave(times_as_long: float, error: float, between: float, is_hopeless: bool) -> None:
    ratio = LogEstimate(math.log(times_as_long), error, 8.0, 5, between_sessions=between)
    assert stopping.ratio_precision(ratio, Effort(), 0.03).is_hopeless is is_hopeless


def test_a_row_of_one_column_ends_when_its_time_is_known() -> None:
    for times, is_enough in (((1.0, 1.01, 0.99), True), ((1.0, 1.2, 0.9), False), ((1.0,), False)):
        case = summarize_case(made.in_rounds(*times))
        ((pair, known),) = precision_of(RowRatios({JAX: case}), "train_step_ms", False, Effort(), 0.03).items()
        assert (len(pair), known.is_enough) == (1, is_enough)
    assert precision_of(RowRatios({}), "train_step_ms", False, Effort(), 0.03) == {}


PAIR, OTHER = (TORCH, JAX), (TENSORFLOW, JAX)
ENOUGH, OPEN, HOPELESS = RatioPrecision(0.04, True), RatioPrecision(0.2, False), RatioPrecision(0.2, False, True)


@pytest.mark.parametrize(
    ("done", "precision", "reason"),
    [
        (2, {PAIR: ENOUGH}, None),  # fewer than three rounds have no interval that deserves the name
        (3, {PAIR: ENOUGH}, StopReason.KNOWN),
        (3, {(JAX,): ENOUGH}, StopReason.TIMED),
        (3, {PAIR: ENOUGH, OTHER: OPEN}, None),
        (3, {}, None),
        (9, {PAIR: OPEN}, StopReason.ROUNDS),
        (4, {PAIR: HOPELESS, OTHER: ENOUGH}, None),  # too early to say
        (5, {PAIR: HOPELESS, OTHER: ENOUGH}, StopReason.HOPELESS),
        (5, {PAIR: HOPELESS, OTHER: OPEN}, None),
    ],
)
def test_when_a_row_has_enough(done: int, precision: stopping.RowPrecision, reason: StopReason | None) -> None:
    assert stop_reason(Effort(3, 9), done, precision) is reason


def test_why_a_row_ends_in_words() -> None:
    known = "who is faster is decided, and every interval is within ±5 % (beyond 2×: ±10 %)"
    assert in_words(StopReason.KNOWN, Effort()) == known
    assert "±7.5 %" in in_words(StopReason.TIMED, Effort(aim=0.075))
    assert in_words(StopReason.HOPELESS, Effort()) == (
        "not even 12 rounds would make it known to ±5 %, judging by the first ones"
    )
    assert in_words(StopReason.ROUNDS, Effort(1, 1)) == "one round was asked for"
    several = [StopReason.KNOWN, StopReason.ROUNDS, StopReason.KNOWN]
    assert stopping.all_in_words(several, Effort()) == f"2 workloads: {known}; 1 workload: all 12 rounds are done"


@pytest.mark.parametrize(
    ("spent_s", "another_s", "done", "reason"),
    [
        (0.0, 500.0, 0, ""),  # the first round is always completed
        (50.0, 50.0, 1, ""),
        (51.0, 51.0, 1, "another round of about 51 s does not fit into the 49 s that --budget leaves"),
        (200.0, 1.0, 1, "--budget 100 s is used up: the first round, which is always completed, has taken 200 s"),
        (120.0, 1.0, 2, "--budget 100 s is used up: 2 rounds have taken 120 s"),
    ],
)
def test_a_budget_allows_no_round_beyond_it(spent_s: float, another_s: float, done: int, reason: str) -> None:
    assert stopping.out_of_budget(100.0, spent_s, another_s, done) == reason
    assert stopping.out_of_budget(None, spent_s, another_s, done) == ""
