"""Everything that runs amount to, as one tidy table: a row for each case and metric of each run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.metrics import METRICS, Metric
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column, Size
from kerasbench.results.run import Run

MEASURED = "ok"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A metric of a case, or a case that failed. Scripts rely on names and their order: what is new comes last."""

    machine: str
    scenario: str
    workload: str
    backend: str
    device: str
    status: str  # MEASURED, or the code of the failure
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    trials: int = 0
    options: str
    device_name: str  # of a GPU
    batch: int | None  # batch and width where a sweep varies them
    width: float | None
    started: str  # of the run
    ratio: float | None = None  # the value over that of the fastest of its row
    ratio_low: float | None = None
    ratio_high: float | None = None
    environment: str  # the label of the interpreter
    host: str  # tells machines of equal parts apart
    keras: str = ""  # the versions of Keras and of the backend
    backend_version: str = ""
    commit: str = ""  # of the checkout that the run was started in


NAMES = tuple(field.name for field in fields(Observation))


def observations(summaries: Iterable[Summary]) -> list[Observation]:
    return [
        observation
        for summary in summaries
        for row, ranking in summary.ranked
        for column in row.cases
        for observation in _of_case(summary.record, row, column, ranking)
    ]


def _of_case(record: Run, row: Row, column: Column, ranking: Ranking) -> Iterator[Observation]:
    case, size = row.cases[column], row.size or Size()
    versions = case.trials[0][1].resolved.versions if case.trials else {}
    empty = Observation(
        machine=record.machine.chip,
        scenario=row.scenario.name,
        workload=row.workload.name,
        backend=column.backend,
        device=column.device,
        status=case.failure.code if case.failure else MEASURED,
        options=column.with_options(environment=None).options.label,
        device_name=case.device_title,
        batch=size.batch,
        width=size.width,
        started=row.origin.started,
        environment=column.options.environment,
        host=record.machine.identifier,
        keras=versions.get("keras", ""),
        backend_version=versions.get(column.backend, ""),
        commit=row.origin.commit,
    )
    if case.failure:
        yield empty
        return
    for metric in METRICS:
        estimate = case.estimate(metric.name)
        if estimate is not None:
            ratio = _over_fastest(row, column, ranking, metric)
            yield replace(
                empty,
                metric=metric.name,
                value=estimate.value,
                low=estimate.low,
                high=estimate.high,
                unit=metric.unit,
                trials=estimate.trials,
                ratio=ratio.value if ratio else None,
                ratio_low=ratio.low if ratio else None,
                ratio_high=ratio.high if ratio else None,
            )


def _over_fastest(row: Row, column: Column, ranking: Ranking, metric: Metric) -> LogEstimate | None:
    """Return the ratio to the fastest; losses and accuracies, which have no unit, and differences have none."""
    fastest = ranking.fastest
    if fastest is None or not metric.unit or metric.difference:
        return None
    if column == fastest:
        return LogEstimate(0.0, None, 0, 0)
    contrast = ranking.over_fastest(column) if metric.name == row.headline else None
    return contrast.ratio if contrast else row.ratios.estimate(column, fastest, metric.name)
