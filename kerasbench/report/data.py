"""The records of ``--json``: of a run, of two sets of results, of a history, of a search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kerasbench.analysis.bisect import Bisection, Ending, Probe
from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.cases import Row
from kerasbench.analysis.contrasts import Contrast, Place, between
from kerasbench.analysis.estimates import Estimate, Interval, Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.history import Series
from kerasbench.analysis.metrics import BY_NAME, METRICS
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.series import SizeSeries
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.versus import RunComparison
from kerasbench.host.noise import WarningKind
from kerasbench.names import EXPLAIN, FASTEST, RUN, SOAK, SWEEP, VERSUS
from kerasbench.protocol.columns import DEFAULT, CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.report.document import (
    Advised,
    Configuration,
    Document,
    Failed,
    HistoricRatio,
    MachineFacts,
    OfCase,
    Overtaking,
    Ratio,
    Result,
    RunFacts,
    Search,
    Trend,
    Tried,
    Warned,
    Winner,
)
from kerasbench.report.race import to_write
from kerasbench.results.run import Run, Trial
from kerasbench.text import count

COMPARE, HISTORY, BISECT = "compare", "history", "bisect"


def of_run(findings: Findings, records: Sequence[Run], file: Path | None = None) -> Document:
    """Return what was measured, and what follows from it."""
    here = findings.record.machine
    runs = [
        RunFacts(
            started=record.started,
            finished=record.finished,
            rounds=record.rounds_completed,
            stopped_because=record.stopped_because,
            kerasbench=record.kerasbench,
            commit=record.commit,
            result_file=str(file) if file else None,
        )
        for record in records
    ]
    return Document(
        command=_command(findings),
        machine=MachineFacts(
            chip=here.chip,
            cores=here.cores,
            memory_bytes=here.memory_bytes,
            gpus=here.gpus,
            system=here.system,
            identifier=here.identifier,
        ),
        runs=runs,
        fastest=list(_fastest(findings)),
        results=[*_results(findings.summary), *_parts(findings.breakdowns), *_costs(findings.sweeps)],
        ratios=_ratios(findings),
        failures=_failures(findings.summary),
        warnings=list(_warnings(findings)),
        crossovers=list(_crossovers(findings)),
        advice=list(_advice(findings.breakdowns)),
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
    failures = [_failed(_of_key(case), failure) for case, failure in comparison.failed]
    return Document(command=COMPARE, results=results, ratios=ratios, failures=failures)


def of_sides(summaries: Sequence[tuple[str, Summary]]) -> Document:
    """Return several sets of results, each with its name."""
    results = [result for name, summary in summaries for result in _results(summary, name)]
    failures = [failure for _, summary in summaries for failure in _failures(summary)]
    return Document(command=COMPARE, results=results, failures=failures)


def of_history(history: Sequence[Series]) -> Document:
    """Return every ratio in every run."""
    points = [
        HistoricRatio(
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
    """Return how a search for a version ended."""
    is_found = bisection.outcome is Ending.FOUND
    search = Search(
        outcome=bisection.outcome,
        versions=list(versions),
        last_fast=versions[bisection.fast] if is_found or bisection.fast else None,
        first_slow=versions[bisection.slow] if is_found else None,
        case=OfCase(**_of_key(case)) if case else None,
        tried=[
            _tried(probe, versions[probe.index]) for probe in sorted(bisection.probes, key=lambda probe: probe.index)
        ],
    )
    return Document(command=BISECT, search=search)


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


def _result(case: Mapping[str, Any], metric: str, estimate: Estimate, **more: Any) -> Result:
    unit = BY_NAME[metric].unit if metric in BY_NAME else UNITS[metric]
    counts = {"trials": estimate.trials, "sessions": None} | more
    return Result(
        **case, metric=metric, unit=unit, value=estimate.value, low=estimate.low, high=estimate.high, **counts
    )


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


# What an explanation measures besides: the parts of a step.
UNITS = {
    "input_pipeline_ms": "ms",
    "framework_ms": "ms",
    "computation_ms": "ms",
    "warm_up_ms": "ms",
    "flops_per_s": "FLOP/s",
    "peak_flops_per_s": "FLOP/s",
}
FIXED, PER_SAMPLE = "fixed_step_ms", "per_sample_ms"  # of a sweep over batches


def _parts(breakdowns: Sequence[StepBreakdown]) -> Iterator[Result]:
    for breakdown in breakdowns:
        case = _of_key(breakdown.row.key(breakdown.column))
        amounts = (
            breakdown.feeding_ms,
            breakdown.framework_ms,
            breakdown.computation_ms,
            breakdown.warming_ms,
            breakdown.rate,
            breakdown.peak,
        )
        for metric, amount in zip(UNITS, amounts, strict=True):
            if amount is not None:
                yield _result(case, metric, amount)


def _costs(sweeps: Sequence[SizeSeries]) -> Iterator[Result]:
    """Yield what a step costs whatever its batch, and for each sample, where a line explains a series."""
    for series in sweeps:
        row = next(iter(series.rows.values()))
        for column, cost in series.costs.items():
            case = _of_key(row.key(column)) | {"batch_size": None}
            more: dict[str, Any] = {
                "unit": "ms",
                "trials": sum(step.trials for _, step in series.steps_ms(column)),
                "sessions": None,
            }
            for metric, estimate in ((FIXED, cost.overhead), (PER_SAMPLE, cost.per_sample)) if cost.fits else ():
                yield Result(**case, metric=metric, value=estimate.value, low=estimate.low, high=estimate.high, **more)


def _ratio(contrast: Contrast, **more: Any) -> Ratio:
    """Return a contrast as data."""
    return Ratio(
        **_of_key(contrast.over.key),
        over=_configuration(contrast.under.column),
        metric=contrast.metric,
        takes_times_as_much=contrast.ratio.value,
        low=contrast.ratio.low,
        high=contrast.ratio.high,
        verdict=contrast.verdict,
        disturbed=contrast.ratio.disturbed,
        rounds=contrast.ratio.trials,
        **more,
    )


def _ratios(findings: Findings) -> list[Ratio]:
    """Return each pair once: with its verdict, where it has one."""
    ratios: dict[tuple[CaseKey, Column, str], Ratio] = {}
    for contrast, more in (
        *_of_races(findings),
        *_over_fastest(findings),
        *((contrast, {}) for contrast in (*findings.speed_ups, *findings.prices, *findings.warm_caches)),
        *_of_versions(findings),
        *_of_controls(findings),
    ):
        key = (contrast.over.key, contrast.under.column, contrast.metric)
        if key not in ratios or ratios[key].verdict is None:
            ratios[key] = _ratio(contrast, **more)
    return list(ratios.values())


Told = tuple[Contrast, dict[str, Any]]  # with what else is said of it


def _of_races(findings: Findings) -> Iterator[Told]:
    for race in findings.races:
        for column, contrast in race.contrasts.items():
            yield contrast, {"dropped": column in race.left}


def _ranked(findings: Findings) -> Iterator[tuple[Row, Ranking, Column]]:
    """Yield the rows in which columns compete, with the fastest."""
    for row, ranking in [] if findings.races or findings.soaks else findings.summary.ranked:
        if ranking.fastest is not None and not row.origin.in_pairs:
            yield row, ranking, ranking.fastest


def _over_fastest(findings: Findings) -> Iterator[Told]:
    for row, ranking, fastest in _ranked(findings):
        for column in row.cases:
            for metric in METRICS if column != fastest else ():
                contrast = ranking.over_fastest(column) if metric.name == row.headline else None
                if contrast is None and metric.unit and not metric.difference:
                    contrast = between(row, column, fastest, metric.name)
                if contrast is not None:
                    yield contrast, {}


def _of_versions(findings: Findings) -> Iterator[Told]:
    for versus in findings.versus:
        numbers = [(contrast, False) for contrast in versus.contrasts]
        numbers += [(contrast, True) for contrast in versus.untouched]
        for contrast, is_untouched in numbers:
            yield contrast, {"is_control": is_untouched}
            if contrast.again is not None:
                base = contrast.under
                again = Place(base.row, base.column.with_options(control=True))
                yield Contrast(again, base, contrast.metric, contrast.again), {"is_control": True}


def _of_controls(findings: Findings) -> Iterator[Told]:
    for ranking in findings.summary.rankings:
        if ranking.control is not None:
            yield ranking.control, {"is_control": True}


def _fastest(findings: Findings) -> Iterator[Winner]:
    for row, ranking, fastest in _ranked(findings):
        clearly = ranking.proven and ranking.first is not None
        yield Winner(**_of_key(row.key(fastest)), metric=row.headline, clearly=clearly)
    for race in findings.races:
        yield Winner(
            **_of_key(race.row.key(race.leader)),
            metric=race.metric,
            clearly=race.is_over,
            to_use_it=to_write(race.leader, race),
            without_settings=_configuration(race.baseline) if race.baseline else None,
        )


def _failed(case: Mapping[str, Any], failure: Failure) -> Failed:
    return Failed(**case, code=failure.code, cause=failure.cause, remedy=failure.remedy, phase=failure.phase)


def _failures(summary: Summary) -> list[Failed]:
    return [_failed(_of_key(row.key(column)), failure) for row, column, failure in summary.failures]


def _warnings(findings: Findings) -> Iterator[Warned]:
    summary = findings.summary
    rows = {row.label: row for row in summary.rows}
    for concern in findings.concerns:
        yield _warned(concern.what, rows.get(concern.row), concern.columns, concern.detail)
    yield from (_warned(signal.name, None, [], signal.reason) for signal in summary.record.noise)
    for row in summary.rows:
        workload = (row.scenario.name, row.workload.name, row.size)
        trials = [
            trial for trial in summary.record.trials if workload == (trial.scenario, trial.workload, trial.options.size)
        ]
        yield from _signals(row, trials)


def _signals(row: Row, trials: Sequence[Trial]) -> Iterator[Warned]:
    """Yield what disturbed a row's trials: each signal once, with the reason of one that had it worst."""
    for name in dict.fromkeys(signal.name for trial in trials for signal in trial.noise):
        had = [(trial, signal) for trial in trials for signal in trial.noise if signal.name == name]
        worst = max((signal for _, signal in had), key=lambda signal: signal.invalidates)
        of_trials = f"{len({id(trial) for trial, _ in had})} of {count(len(trials), 'trial')}"
        yield _warned(
            name, row, list(dict.fromkeys(trial.column for trial, _ in had)), f"{worst.reason}; in {of_trials}"
        )


def _warned(kind: str, row: Row | None, columns: Sequence[Column], detail: str) -> Warned:
    known = WarningKind(kind) if kind in set(WarningKind) else None  # none in a file that another version wrote
    size = row.size if row else None
    return Warned(
        kind=kind,
        scenario=row.scenario.name if row else None,
        workload=row.workload.name if row else None,
        batch_size=size.batch if size else None,
        width=size.width if size else None,
        configurations=[_configuration(column) for column in columns],
        meaning=known.meaning if known else kind,
        detail=detail,
        remedy=known.remedy if known else "",
    )


def _crossovers(findings: Findings) -> Iterator[Overtaking]:
    for series in findings.sweeps:
        row = next(iter(series.rows.values()))
        for crossing in (crossing for duel in series.duels for crossing in duel.crossings):
            low, high = crossing.interval or (None, None)
            yield Overtaking(
                scenario=row.scenario.name,
                workload=row.workload.name,
                axis=series.axis,
                faster_above=_configuration(crossing.winner),
                faster_below=_configuration(crossing.loser),
                at=crossing.at,
                low=low,
                high=high,
            )


def _advice(breakdowns: Sequence[StepBreakdown]) -> Iterator[Advised]:
    for breakdown in breakdowns:
        for advice in breakdown.advice:
            yield Advised(
                **_of_key(breakdown.row.key(breakdown.column)),
                what=advice.what,
                instead=_configuration(advice.contrast.over.column),
                instead_batch_size=advice.contrast.over.key.options.batch,
                takes_times_as_much=advice.contrast.ratio.value,
                low=advice.contrast.ratio.low,
                high=advice.contrast.ratio.high,
            )


def _trends(findings: Findings) -> Iterator[Trend]:
    for soak in findings.soaks:
        yield Trend(
            **_of_key(soak.row.key(soak.column)),
            minutes=soak.minutes,
            unit=soak.unit,
            units=soak.units,
            unit_ms=soak.unit_ns / 1e6,
            memory_grows=soak.grows,
            memory_bytes_per_unit=soak.memory,
            device_memory_bytes_per_unit=soak.device_memory,
            becomes_slower=soak.slows,
            slower_share=soak.slower,
        )


def _tried(probe: Probe, version: str) -> Tried:
    ratio, again = probe.ratio, probe.contrast.again if probe.contrast else None
    control = None
    if again is not None and again.low is not None and again.high is not None:
        control = Interval(again.value, again.low, again.high)
    return Tried(
        version=version,
        takes_times_as_much=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        verdict=(probe.contrast and probe.contrast.verdict) or Verdict.INCONCLUSIVE,
        why_no_verdict=probe.why,
        control=control,
    )
