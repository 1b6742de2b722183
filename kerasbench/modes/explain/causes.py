"""Which of the causes that a case might have make it slow, by the columns without them that took turns with it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kerasbench import variants
from kerasbench.analysis.cases import PREDICTED_ONE, STEADY
from kerasbench.analysis.contrasts import CaseInRow, Contrast, between, control_ratio_of, judge
from kerasbench.analysis.estimates import MINIMAL_EFFECT, Verdict, mean_interval
from kerasbench.modes.explain import MODE
from kerasbench.protocol.messages import Code
from kerasbench.results.times import epoch_ns, epoch_overhead_ns
from kerasbench.text import percent
from kerasbench.variants.causes.cause import Cause

SOMETHING_ELSE = "its alternative computes something else"
NO_TIME = "it was not measured beside the case"
UNKNOWN = "it is unknown whether its alternative computes the same"


class CauseOutcome(StrEnum):
    FOUND = "found"
    NONE = "no cause"  # without it, it takes as long, or longer
    UNDECIDED = "undecided"
    REFUSED = "refused"  # the alternative computes something else
    NOT_TRIED = "not tried"
    SEEN = "seen"  # in what was measured; what it costs was not


@dataclass(frozen=True)
class TriedCause:
    cause: Cause
    outcome: CauseOutcome
    contrast: Contrast | None = None  # without the cause over the case as it is; None: it has no ratio
    why: str = ""  # it has none; how it was seen


def tried_causes(cases: Sequence[CaseInRow], effect: float) -> list[list[TriedCause]]:
    """Return the causes that were tried beside each case, or could not be: those that cost most first."""
    tried = [[*_beside(case)] for case in cases]
    contrasts = {contrast.over.key: contrast for of_case in tried for cause in of_case if (contrast := cause.contrast)}
    contrasts = judge(contrasts, effect)
    of_cases = []
    for of_case in tried:
        causes = [_decide(cause, contrasts[cause.contrast.over.key]) if cause.contrast else cause for cause in of_case]
        costs = {cause.cause.name: cause.contrast.ratio.value for cause in causes if cause.contrast}
        of_cases.append(sorted(causes, key=lambda cause: costs.get(cause.cause.name, math.inf)))
    return of_cases


def _decide(tried: TriedCause, contrast: Contrast) -> TriedCause:
    outcome, least = CauseOutcome.NONE, contrast.ratio.low
    if contrast.verdict is Verdict.FASTER:
        outcome = CauseOutcome.FOUND
    elif contrast.withheld or contrast.ratio.disturbed or least is None or least < 1 - MINIMAL_EFFECT:
        outcome = CauseOutcome.UNDECIDED
    return replace(tried, outcome=outcome, contrast=contrast)


def _beside(case: CaseInRow) -> Iterator[TriedCause]:
    row, column = case
    trial, measurement = case.case.trials[-1]
    shares = [(epoch_overhead_ns(m) or 0) / ns for _, m in case.case.trials if (ns := epoch_ns(m))]
    once = mean_interval(shares)
    shown = (trial.device, measurement, once.value if once.is_above_zero else 0.0)
    tries_causes = MODE.settings_of(row.origin.config).causes
    for cause in variants.CAUSES:
        without = column.with_options(**{cause.name: True})
        other = row.cases.get(without)
        if other is None:
            if tries_causes and cause.occurs_on(column.backend) and (sign := cause.noticed(*shown)):
                yield TriedCause(cause, CauseOutcome.SEEN, why=sign)
            continue
        metric = PREDICTED_ONE if cause.predicts else STEADY
        contrast = between(row, without, column, metric, control_ratio_of(row))
        parities = [m.parity for _, m in other.trials if m.parity is not None]
        compared = cause.repeats or any(parity.outputs or not cause.predicts for parity in parities)
        if other.failure is not None and other.failure.code is Code.PARITY:
            yield TriedCause(cause, CauseOutcome.REFUSED, why=f"{SOMETHING_ELSE}: {other.failure.cause}")
        elif other.failure is not None or contrast is None:
            why = other.failure.cause if other.failure else NO_TIME
            yield TriedCause(cause, CauseOutcome.NOT_TRIED, why=why)
        elif without in row.deviating:
            apart = row.deviating[without]
            off = f"the loss of step {apart.step} differs by {percent(apart.share)}"
            yield TriedCause(cause, CauseOutcome.REFUSED, why=f"{SOMETHING_ELSE}: {off}")
        elif not compared:
            yield TriedCause(cause, CauseOutcome.REFUSED, why=UNKNOWN)
        else:
            yield TriedCause(cause, CauseOutcome.NONE, contrast)
