"""The records of ``--json``: how a case, a number and a ratio are written. Modes have others."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.differences import Difference
from kerasbench.analysis.estimates import Estimate, Interval
from kerasbench.analysis.metrics import BY_NAME, METRICS
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import CaseKey, Column, Size
from kerasbench.protocol.messages import Failure
from kerasbench.report.document import CaseDifference, CaseFact, Configuration, FailedCase, Ratio, Result


def configuration(column: Column) -> Configuration:
    return Configuration(column.backend, column.device, dict(column.options.unsized))


def of_row(scenario: str, workload: str, size: Size | None) -> dict[str, Any]:
    batch, width = (size.batch, size.width) if size else (None, None)
    return {"scenario": scenario, "workload": workload, "batch_size": batch, "width": width}


def of_key(case: CaseKey) -> dict[str, Any]:
    return of_row(case.scenario, case.workload, case.size) | {"configuration": configuration(case.column)}


def result(case: Mapping[str, Any], metric: str, estimate: Estimate | Interval, **more: Any) -> Result:
    """Return a number; ``unit`` is among ``more`` where the metric is a mode's own, ``trials`` where it is a fit."""
    facts = dict(case, metric=metric, value=estimate.value, low=estimate.low, high=estimate.high, sessions=None)
    if metric in BY_NAME:
        facts["unit"] = BY_NAME[metric].unit
    if isinstance(estimate, Estimate):
        facts["trials"] = estimate.trials
    return Result(**facts | more)


def results(summary: Summary, side: str = "") -> Iterator[Result]:
    for row, column, case in summary.cases:
        key, sessions = of_key(row.key(column)), len({trial.session for trial, _ in case.trials})
        versions = case.trials[0][1].resolved.versions if case.trials else {}
        keras, backend = (versions.get(package, "") for package in ("keras", column.backend))
        more = {"sessions": sessions, "side": side, "keras": keras, "backend_version": backend}
        for metric in METRICS:
            estimate = case.estimate(metric.name)
            if estimate is not None and math.isfinite(estimate.value):  # a loss may be none
                yield result(key, metric.name, estimate, **more)


def case_facts(summary: Summary) -> Iterator[CaseFact]:
    for row, column, case in summary.cases:
        for name, value in case.facts.items():
            yield CaseFact(**of_key(row.key(column)), fact=name, value=value)


def difference(different: Difference) -> CaseDifference:
    fact, value, before = different.fact.name, different.value, different.before
    return CaseDifference(**of_key(different.over.key), fact=fact, value=value, before=before)


def ratio(contrast: Contrast, **more: Any) -> Ratio:
    return Ratio(
        **of_key(contrast.over.key),
        over=configuration(contrast.under.column),
        metric=contrast.metric,
        takes_times_as_much=contrast.ratio.value,
        low=contrast.ratio.low,
        high=contrast.ratio.high,
        verdict=contrast.verdict,
        disturbed=contrast.ratio.disturbed,
        rounds=contrast.ratio.trials,
        **more,
    )


def failed_case(case: CaseKey, failure: Failure) -> FailedCase:
    place = of_key(case)
    return FailedCase(**place, code=failure.code, cause=failure.cause, remedy=failure.remedy, phase=failure.phase)


def failures(summary: Summary) -> list[FailedCase]:
    return [failed_case(row.key(column), failure) for row, column, failure in summary.unmeasured]
