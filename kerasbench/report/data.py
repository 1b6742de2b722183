"""The records of ``--json``: of a run, of two sets of results, of a history, of a search."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kerasbench.analysis.bisect import Bisection, Probe, SearchOutcome
from kerasbench.analysis.cases import Row
from kerasbench.analysis.contrasts import Contrast, Place, between
from kerasbench.analysis.estimates import Estimate, Interval, Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.history import Series
from kerasbench.analysis.metrics import BY_NAME, METRICS
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.versus import UNTOUCHED, RunComparison
from kerasbench.host.noise import Signal, WarningKind
from kerasbench.names import EXPLAIN, FASTEST, RUN, SOAK, SWEEP, VERSUS
from kerasbench.protocol.columns import DEFAULT, CaseKey, Column
from kerasbench.report import document
from kerasbench.report.document import Configuration, Document, Failed, Ratio, Result
from kerasbench.report.race import to_write
from kerasbench.results.run import Run, Trial
from kerasbench.text import count

COMPARE, HISTORY, BISECT = "compare", "history", "bisect"
T = TypeVar("T")


def of_run(findings: Findings, records: Sequence[Run], file: Path | None = None) -> Document:
    """Return what was measured, and what follows from it."""
    where = str(file) if file else None
    return Document(
        command=_command(findings),
        machine=_like(document.MachineData, findings.record.machine),
        runs=[_like(document.RunFacts, run, rounds=run.rounds_completed, result_file=where) for run in records],
        fastest=list(_fastest(findings)),
        results=[*_results(findings.summary), *_parts(findings), *_costs(findings)],
        ratios=_ratios(findings),
        failures=_failures(findings.summary),
        warnings=list(_warnings(findings)),
        crossovers=list(_crossovers(findings)),
        advice=list(_advice(findings)),
        trends=list(_trends(findings)),
    )


def of_comparison(comparison: RunComparison, old: str, new: str) -> Document:
    """Return what became of every case between two sets of results."""
    results, ratios = [], []
    for change in comparison.changes:
        contrast = change.contrast
        for side, value in ((old, change.old), (new, change.new)):
            results.append(_result(_of_key(change.case), contrast.metric, value, side=side))
        ratios.append(_ratio(contrast, why_no_verdict=contrast.why))
    failures = [_like(Failed, failure, **_of_key(case)) for case, failure in comparison.failed]
    return Document(command=COMPARE, results=results, ratios=ratios, failures=failures)


def of_sides(summaries: Sequence[tuple[str, Summary]]) -> Document:
    """Return several sets of results, each with its name."""
    results = [result for name, summary in summaries for result in _results(summary, name)]
    failures = [failure for _, summary in summaries for failure in _failures(summary)]
    return Document(command=COMPARE, results=results, failures=failures)


def of_history(history: Sequence[Series]) -> Document:
    points = [
        document.HistoricRatio(
            **vars(_ratio(contrast)),
            started=contrast.over.row.run,
            commit=contrast.over.row.origin.commit,
            versions=contrast.over.case.trials[0][1].resolved.versions,
            machine=series.machine,
        )
        for series in history
        for contrast in series.points
    ]
    return Document(command=HISTORY, history=points)


def of_search(bisection: Bisection, versions: Sequence[str], case: CaseKey | None) -> Document:
    is_found = bisection.outcome is SearchOutcome.FOUND
    search = document.Search(
        outcome=bisection.outcome,
        versions=list(versions),
        last_fast=versions[bisection.fast] if is_found or bisection.fast else None,
        first_slow=versions[bisection.slow] if is_found else None,
        case=document.OfCase(**_of_key(case)) if case else None,
        tried=[_tried(probe, versions) for probe in sorted(bisection.probes, key=lambda probe: probe.index)],
    )
    return Document(command=BISECT, search=search)


def _like(kind: type[T], source: object, **more: Any) -> T:
    """Return a record whose other fields are those of a source that have the same names."""
    names = [name for name in kind.__dataclass_fields__ if name not in more and hasattr(source, name)]  # type: ignore[attr-defined]
    return kind(**{name: getattr(source, name) for name in names}, **more)


def _command(findings: Findings) -> str:
    config = findings.record.config
    kinds = {EXPLAIN: config.explain, VERSUS: config.versus, FASTEST: config.race, SOAK: config.soak}
    is_swept = bool(findings.sized.rows) and not findings.plain.rows
    return next((command for command, is_one in kinds.items() if is_one), SWEEP if is_swept else RUN)


def _configuration(column: Column) -> Configuration:
    options = vars(column.options.unsized)
    differing = {name: value for name, value in options.items() if value != getattr(DEFAULT, name)}
    return Configuration(column.backend, column.device, differing)


def _of_key(case: CaseKey) -> dict[str, Any]:
    return {
        "scenario": case.scenario,
        "workload": case.workload,
        "batch_size": case.size.batch if case.size else None,
        "width": case.size.width if case.size else None,
        "configuration": _configuration(case.column),
    }


def _result(case: Mapping[str, Any], metric: str, estimate: Estimate | Interval, **more: Any) -> Result:
    unit = BY_NAME[metric].unit if metric in BY_NAME else UNITS[metric]
    return _like(Result, estimate, **case, **({"metric": metric, "unit": unit, "sessions": None} | more))


def _results(summary: Summary, side: str = "") -> Iterator[Result]:
    for row, column, case in summary.cases:
        key = _of_key(row.key(column))
        versions = case.trials[0][1].resolved.versions if case.trials else {}
        more = {
            "sessions": len({trial.sitting for trial, _ in case.trials}),
            "side": side,
            "keras": versions.get("keras", ""),
            "backend_version": versions.get(column.backend, ""),
        }
        for metric in METRICS:
            estimate = case.estimate(metric.name)
            if estimate is not None and math.isfinite(estimate.value):  # a loss may be none
                yield _result(key, metric.name, estimate, **more)


FIXED, PER_SAMPLE = "fixed_step_ms", "per_sample_ms"  # of a sweep over batches
# What an explanation measures besides, the parts of a step; and what a sweep does.
PARTS = {
    "input_pipeline_ms": "feeding_ms",
    "framework_ms": "framework_ms",
    "computation_ms": "computation_ms",
    "warm_up_ms": "warming_ms",
    "flops_per_s": "rate",
    "peak_flops_per_s": "peak",
}
UNITS = dict.fromkeys((*PARTS, FIXED, PER_SAMPLE), "ms") | dict.fromkeys(("flops_per_s", "peak_flops_per_s"), "FLOP/s")


def _parts(findings: Findings) -> Iterator[Result]:
    for breakdown in findings.breakdowns:
        for metric, name in PARTS.items():
            amount: Estimate | None = getattr(breakdown, name)
            if amount is not None:
                yield _result(_of_key(breakdown.row.key(breakdown.column)), metric, amount)


def _costs(findings: Findings) -> Iterator[Result]:
    """Yield what a step costs whatever its batch, and for each sample, where a line explains a series."""
    for series in findings.sweeps:
        row = next(iter(series.rows.values()))
        for column, cost in series.costs.items():
            case = _of_key(row.key(column)) | {"batch_size": None}
            trials = sum(step.trials for _, step in series.steps_ms(column))
            for metric, estimate in ((FIXED, cost.overhead), (PER_SAMPLE, cost.per_sample)) if cost.fits else ():
                yield _result(case, metric, estimate, trials=trials)


def _ratio(contrast: Contrast, **more: Any) -> Ratio:
    ratio = contrast.ratio
    return _like(
        Ratio,
        ratio,
        **_of_key(contrast.over.key),
        over=_configuration(contrast.under.column),
        metric=contrast.metric,
        takes_times_as_much=ratio.value,
        verdict=contrast.verdict,
        rounds=ratio.trials,
        **more,
    )


def _ratios(findings: Findings) -> list[Ratio]:
    """Return each pair once: with its verdict, where it has one."""
    ratios: dict[tuple[CaseKey, Column, str], Ratio] = {}
    for contrast, more in _contrasts(findings):
        key = (contrast.over.key, contrast.under.column, contrast.metric)
        if key not in ratios or ratios[key].verdict is None:
            ratios[key] = _ratio(contrast, **more)
    return list(ratios.values())


Told = Iterator[tuple[Contrast, dict[str, bool]]]  # with what else is said of it


def _contrasts(findings: Findings) -> Told:
    for race in findings.races:
        for column, contrast in race.contrasts.items():
            yield contrast, {"dropped": column in race.left}
    yield from _over_fastest(findings)
    for contrast in (*findings.speed_ups, *findings.prices, *findings.warm_caches):
        yield contrast, {}
    yield from _of_versions(findings)
    for ranking in findings.summary.rankings:
        if ranking.control is not None:
            yield ranking.control, {"is_control": True}


def _over_fastest(findings: Findings) -> Told:
    for row, ranking, fastest in _ranked(findings):
        for column in row.cases:
            for metric in METRICS if column != fastest else ():
                contrast = ranking.over_fastest(column) if metric.name == row.headline else None
                if contrast is None and metric.unit and not metric.difference:
                    contrast = between(row, column, fastest, metric.name)
                if contrast is not None:
                    yield contrast, {}


def _of_versions(findings: Findings) -> Told:
    for versus in findings.versus:
        for contrast in (*versus.contrasts, *versus.untouched):
            yield contrast, {"is_control": contrast.metric == UNTOUCHED}
            if contrast.again is not None:
                base = contrast.under
                again = Place(base.row, base.column.with_options(control=True))
                yield Contrast(again, base, contrast.metric, contrast.again), {"is_control": True}


def _ranked(findings: Findings) -> Iterator[tuple[Row, Ranking, Column]]:
    """Yield the rows in which columns compete, with the fastest."""
    for row, ranking in [] if findings.races or findings.soaks else findings.summary.ranked:
        if ranking.fastest is not None and not row.origin.in_pairs:
            yield row, ranking, ranking.fastest


def _fastest(findings: Findings) -> Iterator[document.Winner]:
    for row, ranking, fastest in _ranked(findings):
        clearly = ranking.proven and ranking.first is not None
        yield document.Winner(**_of_key(row.key(fastest)), metric=row.headline, clearly=clearly)
    for race in findings.races:
        yield document.Winner(
            **_of_key(race.row.key(race.leader)),
            metric=race.metric,
            clearly=race.is_over,
            to_use_it=to_write(race.leader, race),
            without_settings=_configuration(race.baseline) if race.baseline else None,
        )


def _failures(summary: Summary) -> list[Failed]:
    return [_like(Failed, failure, **_of_key(row.key(column))) for row, column, failure in summary.failures]


def _warnings(findings: Findings) -> Iterator[document.Warned]:
    """Yield every warning, then each signal of noise once: of the machine, and of each row's trials the worst."""
    rows = {row.label: row for row in findings.summary.rows}
    record = findings.record
    for concern in findings.concerns:
        yield _warned(concern.what, rows.get(concern.row), concern.columns, concern.detail)
    yield from (_warned(signal.name, None, [], signal.reason) for signal in record.noise)
    for row in rows.values():
        workload = (row.scenario.name, row.workload.name, row.size)
        trials = [trial for trial in record.trials if (trial.scenario, trial.workload, trial.options.size) == workload]
        by_name: dict[str, list[tuple[Trial, Signal]]] = {}
        for trial in trials:
            for signal in trial.noise:
                by_name.setdefault(signal.name, []).append((trial, signal))
        for name, had in by_name.items():
            worst = max((signal for _, signal in had), key=lambda signal: signal.invalidates)
            detail = f"{worst.reason}; in {len({id(trial) for trial, _ in had})} of {count(len(trials), 'trial')}"
            yield _warned(name, row, dict.fromkeys(trial.column for trial, _ in had), detail)


def _warned(kind: str, row: Row | None, columns: Iterable[Column], detail: str) -> document.Warned:
    known = WarningKind(kind) if kind in set(WarningKind) else None  # none in a file that another version wrote
    return document.Warned(
        kind=kind,
        scenario=row.scenario.name if row else None,
        workload=row.workload.name if row else None,
        batch_size=row.size.batch if row and row.size else None,
        width=row.size.width if row and row.size else None,
        configurations=[_configuration(column) for column in columns],
        meaning=known.meaning if known else kind,
        detail=detail,
        remedy=known.remedy if known else "",
    )


def _crossovers(findings: Findings) -> Iterator[document.Overtaking]:
    for series in findings.sweeps:
        row = next(iter(series.rows.values()))
        for crossing in (crossing for duel in series.duels for crossing in duel.crossings):
            low, high = crossing.interval or (None, None)
            yield document.Overtaking(
                scenario=row.scenario.name,
                workload=row.workload.name,
                axis=series.axis,
                faster_above=_configuration(crossing.winner),
                faster_below=_configuration(crossing.loser),
                at=crossing.at,
                low=low,
                high=high,
            )


def _advice(findings: Findings) -> Iterator[document.Advised]:
    for breakdown in findings.breakdowns:
        for advice in breakdown.advice:
            over, ratio = advice.contrast.over, advice.contrast.ratio
            yield document.Advised(
                **_of_key(breakdown.row.key(breakdown.column)),
                what=advice.what,
                instead=_configuration(over.column),
                instead_batch_size=over.key.options.batch,
                takes_times_as_much=ratio.value,
                low=ratio.low,
                high=ratio.high,
            )


def _trends(findings: Findings) -> Iterator[document.Trend]:
    for soak in findings.soaks:
        yield _like(
            document.Trend,
            soak,
            **_of_key(soak.row.key(soak.column)),
            unit_ms=soak.unit_ns / 1e6,
            memory_grows=soak.grows,
            memory_bytes_per_unit=soak.memory,
            device_memory_bytes_per_unit=soak.device_memory,
            becomes_slower=soak.slows,
            slower_share=soak.slower,
        )


def _tried(probe: Probe, versions: Sequence[str]) -> document.Tried:
    contrast, ratio = probe.contrast, probe.ratio
    again = contrast.again if contrast else None
    control = None
    if again is not None and again.low is not None and again.high is not None:
        control = Interval(again.value, again.low, again.high)
    return document.Tried(
        version=versions[probe.index],
        takes_times_as_much=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        verdict=(contrast and contrast.verdict) or Verdict.INCONCLUSIVE,
        why_no_verdict=probe.why,
        control=control,
    )
