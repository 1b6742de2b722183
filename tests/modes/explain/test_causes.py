"""What the columns without a cause come to, beside the column that may have it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.modes import explain
from kerasbench.modes.explain import ExplainConfig
from kerasbench.modes.explain.breakdown import explained
from kerasbench.modes.explain.causes import CauseOutcome, TriedCause
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Compiler
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import RunConfig, Trial
from tests import made

POOLING, MEMORY = Options(without_pooling_copy=True), Options(without_returned_memory=True)
ROUNDS = (1, 2, 3)


def tried(*others: Trial, causes: bool = True, **different: Any) -> dict[str, TriedCause]:
    """Return by their names the causes that were tried beside a column on torch whose steps take 2 ms."""
    mine = [made.trial(index, found=made.changed(made.with_parts(), **different)) for index in ROUNDS]
    record = made.record(*mine, *others, rounds=3)
    config = explain.MODE.configured(RunConfig(), ExplainConfig(causes=causes))
    (breakdown,) = explained(summarize(dataclasses.replace(record, config=config)))
    return {cause.cause.title: cause for cause in breakdown.causes}


def without(step_ms: float, options: Options = POOLING, **different: Any) -> list[Trial]:
    measured = made.changed(made.measurement(step_ms), **different)
    return [made.trial(index, found=measured, options=options) for index in ROUNDS]


@pytest.mark.parametrize(
    ("step_ms", "outcome"),
    [(1.0, CauseOutcome.FOUND), (1.96, CauseOutcome.UNDECIDED), (2.4, CauseOutcome.NONE), (3.0, CauseOutcome.NONE)],
)
def test_what_takes_less_by_more_than_three_percent_is_a_cause(step_ms: float, outcome: CauseOutcome) -> None:
    cause = tried(*without(step_ms))["pooling copy"]
    assert cause.outcome is outcome
    assert made.known(cause.contrast).ratio.value == pytest.approx(step_ms / 2)


def test_the_one_that_costs_most_is_first() -> None:
    others = [*without(1.5), *without(1.0, MEMORY)]
    assert list(tried(*others))[:2] == ["returned memory", "pooling copy"]


def test_what_scatters_too_much_is_undecided() -> None:
    measured = [
        made.trial(index, found=made.measurement(ms), options=POOLING) for index, ms in enumerate((0.9, 1.9, 3), 1)
    ]
    assert tried(*measured)["pooling copy"].outcome is CauseOutcome.UNDECIDED


@pytest.mark.parametrize(
    ("different", "options", "why"),
    [
        (
            {"parity": {"losses": [2.3, 3.0]}},
            POOLING,
            "its alternative computes something else: the loss of step 2 is 3",
        ),
        (
            {"parity": {"losses": [2.31]}},
            POOLING,
            "its alternative computes something else: the loss of step 1 differs",
        ),
        ({"parity": None}, POOLING, "it is unknown whether its alternative computes the same"),
        ({"parity": None}, MEMORY, ""),  # which cannot compute anything else
    ],
)
def test_an_alternative_that_may_compute_something_else_is_not_offered(
    different: Mapping[str, Any], options: Options, why: str
) -> None:
    causes = tried(*without(1.0, options, **different)).values()
    (cause,) = [cause for cause in causes if cause.outcome is not CauseOutcome.SEEN]
    assert cause.why.startswith(why)
    assert cause.outcome is (CauseOutcome.REFUSED if why else CauseOutcome.FOUND)


def test_the_column_itself_is_right_whatever_its_alternatives_compute() -> None:
    wrong: dict[str, Any] = {"parity": {"losses": [9.0] * 6}}
    causes = tried(*without(1.0, **wrong), *without(1.0, MEMORY, **wrong))
    assert causes["pooling copy"].outcome is CauseOutcome.REFUSED  # and the column was explained


def test_what_could_not_be_tried_is_no_failure_of_the_run() -> None:
    failure = Failure(Code.UNSUPPORTED, "Keras 3.16.0 has another function", "compare with that version")
    absent = made.trial(0, failure=failure, options=POOLING)
    cause = tried(absent)["pooling copy"]
    assert (cause.outcome, cause.why, cause.contrast) == (CauseOutcome.NOT_TRIED, failure.cause, None)
    assert summarize(made.record(made.trial(1), absent)).unmeasured == []


def test_what_may_take_far_less_or_far_longer_is_undecided_wherever_its_middle_is() -> None:
    measured = [
        made.trial(index, found=made.measurement(ms), options=POOLING) for index, ms in enumerate((1.5, 4.0, 10), 1)
    ]
    cause = tried(*measured)["pooling copy"]
    assert made.known(cause.contrast).ratio.value > 1
    assert cause.outcome is CauseOutcome.UNDECIDED


def test_a_column_without_a_cause_is_named_without_a_second_negation() -> None:
    assert POOLING.label == "without-pooling-copy"
    assert Options(jit=False, without_rolled_steps=True).label == "jit=off without-rolled-steps"


def test_what_has_no_alternative_is_seen_in_what_was_measured() -> None:
    broken: dict[str, Any] = {"compiler": Compiler(breaks={"data dependent": 2, "skipped": 17})}
    slow: dict[str, Any] = {"resolved": {"recurrent": ["lstm: keras", "gru: cudnn"]}}
    assert tried()["epoch cost"].outcome is CauseOutcome.SEEN
    assert tried(**broken)["graph breaks"].why == "It met 19 graph breaks, most often: skipped"
    assert "slow recurrence" not in tried(**slow)  # there is no cuDNN on a CPU
    assert tried(causes=False, **broken) == {}
