"""The records of ``--json``: how a case, a number and a ratio are written. Modes have others."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import Estimate, Interval
from kerasbench.analysis.metrics import BY_NAME, METRICS
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import CaseKey, Column, Size
from kerasbench.report.document import Configuration, FailedCase, Ratio, Result

T = TypeVar("T", bound=Struct)


def like(kind: type[T], source: object, **more: Any) -> T:
    """Return a record whose other fields are those of a source that have the same names."""
    names = [name for name in kind.__struct_fields__ if name not in more and hasattr(source, name)]
    return kind(**{name: getattr(source, name) for name in names}, **more)


def configuration(column: Column) -> Configuration:
    return Configuration(column.backend, column.device, dict(column.options.unsized))


def of_row(scenario: str, workload: str, size: Size | None) -> dict[str, Any]:
    batch, width = (size.batch, size.width) if size else (None, None)
    return {"scenario": scenario, "workload": workload, "batch_size": batch, "width": width}


def of_key(case: CaseKey) -> dict[str, Any]:
    return of_row(case.scenario, case.workload, case.size) | {"configuration": configuration(case.column)}


def result(case: Mapping[str, Any], metric: str, estimate: Estimate | Interval, **more: Any) -> Result:
    """Return a number; ``unit`` is among ``more`` where the metric is a mode's own."""
    unit = BY_NAME[metric].unit if metric in BY_NAME else ""
    return like(Result, estimate, **case, **({"metric": metric, "unit": unit, "sessions": None} | more))


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


def ratio(contrast: Contrast, **more: Any) -> Ratio:
    ratio, over = contrast.ratio, configuration(contrast.under.column)
    more |= {"metric": contrast.metric, "verdict": contrast.verdict, "rounds": ratio.trials}
    return like(Ratio, ratio, **of_key(contrast.over.key), over=over, takes_times_as_much=ratio.value, **more)


def failures(summary: Summary) -> list[FailedCase]:
    return [like(FailedCase, failure, **of_key(row.key(column))) for row, column, failure in summary.unmeasured]
