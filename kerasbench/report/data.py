"""The records of ``--json``: of a run, of two sets of results, of a history, of a search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kerasbench.analysis.bisect import Bisection, Outcome, Probe
from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import Estimate, Interval, LogEstimate, Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.history import Series
from kerasbench.analysis.metrics import BY_NAME, METRICS, RATE
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.ratios import in_row
from kerasbench.analysis.series import SizeSeries
from kerasbench.analysis.summary import Summary, concerns
from kerasbench.analysis.versus import RunComparison
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import DEFAULT, CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.report.document import (
    Advice,
    Case,
    Configuration,
    Crossover,
    Document,
    Failed,
    Fastest,
    Machine,
    Point,
    Ratio,
    Result,
    Run,
    Search,
    Trend,
    Tried,
    Warned,
)
from kerasbench.report.race import to_write
from kerasbench.results.record import Record, TrialRecord
from kerasbench.settings import EXPLAIN, FASTEST, RUN, SOAK, SWEEP, VERSUS
from kerasbench.text import count

COMPARE, HISTORY, BISECT = "compare", "history", "bisect"


def of_run(found: Findings, records: Sequence[Record], file: Path | None = None) -> Document:
    """Return what was measured, and what follows from it."""
    here = found.record.machine
    runs = [
        Run(
            started=one.started,
            finished=one.finished,
            rounds=one.rounds_completed,
            stopped_because=one.stopped_because,
            kerasbench=one.kerasbench,
            commit=one.commit,
            result_file=str(file) if file else None,
        )
        for one in records
    ]
    return Document(
        command=_command(found),
        machine=Machine(
            chip=here.chip,
            cores=here.cores,
            memory_bytes=here.memory_bytes,
            gpus=here.gpus,
            system=here.system,
            identifier=here.identifier,
        ),
        runs=runs,
        fastest=list(_fastest(found)),
        results=[*_results(found.summary), *_parts(found.breakdowns), *_costs(found.sweeps)],
        ratios=_ratios(found),
        failures=_failures(found.summary),
        warnings=list(_warnings(found.summary)),
        crossovers=list(_crossovers(found)),
        advice=list(_advice(found.breakdowns)),
        trends=list(_trends(found)),
    )


def of_comparison(found: RunComparison, old: str, new: str) -> Document:
    """Return what became of every case between two sets of results."""
    results, ratios = [], []
    for one in found.changes:
        case, metric = _of_key(one.case), one.row.headline
        for side, value in ((old, one.old), (new, one.new)):
            results.append(_result(case, metric, value, side=side))
        pair = {"over": case["configuration"], "metric": metric, "why_no_verdict": one.why}
        ratios.append(Ratio(**case, **pair, **_ratio(one.ratio, one.verdict)))
    failures = [_failed(_of_key(case), failure) for case, failure in found.failed]
    return Document(command=COMPARE, results=results, ratios=ratios, failures=failures)


def of_sides(summaries: Sequence[tuple[str, Summary]]) -> Document:
    """Return several sets of results, each with its name."""
    results = [one for name, summary in summaries for one in _results(summary, name)]
    failures = [one for _, summary in summaries for one in _failures(summary)]
    return Document(command=COMPARE, results=results, failures=failures)


def of_history(found: Sequence[Series]) -> Document:
    """Return every ratio in every run."""
    points = [
        Point(
            **_of_key(point.case),
            over=_configuration(point.over),
            metric=point.metric,
            started=point.started,
            commit=point.commit,
            versions=point.versions,
            machine=one.machine,
            **_ratio(point.ratio),
        )
        for one in found
        for point in one.points
    ]
    return Document(command=HISTORY, history=points)


def of_search(found: Bisection, versions: Sequence[str], case: CaseKey | None) -> Document:
    """Return how a search for a version ended."""
    is_found = found.outcome is Outcome.FOUND
    search = Search(
        outcome=found.outcome,
        versions=list(versions),
        last_fast=versions[found.fast] if is_found or found.fast else None,
        first_slow=versions[found.slow] if is_found else None,
        case=Case(**_of_key(case)) if case else None,
        tried=[_tried(one, versions[one.index]) for one in sorted(found.probes, key=lambda one: one.index)],
    )
    return Document(command=BISECT, search=search)


def _command(found: Findings) -> str:
    config = found.record.config
    kinds = {EXPLAIN: config.explain, VERSUS: config.versus, FASTEST: config.race, SOAK: config.soak}
    is_swept = bool(found.sized.rows) and not found.plain.rows
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


def _result(case: Mapping[str, Any], metric: str, found: Estimate, **more: Any) -> Result:
    unit = BY_NAME[metric].unit if metric in BY_NAME else UNITS[metric]
    counts = {"trials": found.trials, "sessions": None} | more
    return Result(**case, metric=metric, unit=unit, value=found.value, low=found.low, high=found.high, **counts)


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
            found = case.estimate(metric.name)
            if found is not None and math.isfinite(found.value):  # a loss may be none
                yield _result(key, metric.name, found, **more)


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


def _parts(found: Sequence[StepBreakdown]) -> Iterator[Result]:
    for one in found:
        case = _of_key(one.row.key(one.column))
        amounts = (one.feeding_ms, one.framework_ms, one.computation_ms, one.warming_ms, one.rate, one.peak)
        for metric, amount in zip(UNITS, amounts, strict=True):
            if amount is not None:
                yield _result(case, metric, amount)


def _costs(found: Sequence[SizeSeries]) -> Iterator[Result]:
    """Yield what a step costs whatever its batch, and for each sample, where a line explains a series."""
    for series in found:
        row = next(iter(series.rows.values()))
        for column, cost in series.costs.items():
            case = _of_key(row.key(column)) | {"batch_size": None}
            more: dict[str, Any] = {
                "unit": "ms",
                "trials": sum(step.trials for _, step in series.steps_ms(column)),
                "sessions": None,
            }
            for metric, one in ((FIXED, cost.overhead), (PER_SAMPLE, cost.per_sample)) if cost.fits else ():
                yield Result(**case, metric=metric, value=one.value, low=one.low, high=one.high, **more)


def _ratio(found: LogEstimate, verdict: Verdict | None = None) -> dict[str, Any]:
    return {
        "takes_times_as_much": found.value,
        "low": found.low,
        "high": found.high,
        "verdict": verdict,
        "disturbed": found.disturbed,
        "rounds": found.trials,
    }


class _Pair(NamedTuple):
    """Two columns of a row, and how many times as much the first takes."""

    case: CaseKey
    over: Column
    metric: str
    ratio: LogEstimate
    verdict: Verdict | None = None
    is_control: bool = False
    dropped: bool = False


def _ratios(found: Findings) -> list[Ratio]:
    """Return each pair once: with its verdict, where it has one."""
    pairs: dict[tuple[CaseKey, Column, str], _Pair] = {}
    for one in (
        *_of_races(found),
        *_over_fastest(found),
        *_of_contrasts(found),
        *_of_versions(found),
        *_of_controls(found),
    ):
        known = pairs.get(one[:3])
        if known is None or known.verdict is None:
            pairs[one[:3]] = one
    return [
        Ratio(
            **_of_key(one.case),
            over=_configuration(one.over),
            metric=one.metric,
            is_control=one.is_control,
            dropped=one.dropped,
            **_ratio(one.ratio, one.verdict),
        )
        for one in pairs.values()
    ]


def _of_races(found: Findings) -> Iterator[_Pair]:
    for race in found.races:
        for one in race.standings:
            if one.ratio is not None:
                yield _Pair(race.row.key(one.column), race.leader, race.metric, one.ratio, dropped=one.has_left)


OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


def _ranked(found: Findings) -> Iterator[tuple[Row, Ranking, Column]]:
    """Yield the rows in which columns compete, with the fastest."""
    for row, ranking in [] if found.races or found.soaks else found.summary.ranked:
        if ranking.fastest is not None and not row.origin.in_pairs:
            yield row, ranking, ranking.fastest


def _over_fastest(found: Findings) -> Iterator[_Pair]:
    for row, ranking, fastest in _ranked(found):
        judged = {one.rival: one for one in ranking.comparisons}
        for column in row.cases:
            for metric in METRICS if column != fastest else ():
                if metric.name == row.headline and column in judged:
                    one = judged[column]
                    verdict = OPPOSITE.get(one.verdict, one.verdict)
                    yield _Pair(row.key(column), fastest, metric.name, one.ratio.inverse, verdict)
                elif metric.unit and not metric.difference and (ratio := in_row(row, column, fastest, metric.name)):
                    yield _Pair(row.key(column), fastest, metric.name, _cost(ratio, metric.name))


def _cost(ratio: LogEstimate, metric: str) -> LogEstimate:
    """Return a ratio so that more is worse: of a rate its inverse."""
    return ratio.inverse if BY_NAME[metric].unit == RATE else ratio


def _of_contrasts(found: Findings) -> Iterator[_Pair]:
    for one in (*found.speed_ups, *found.prices, *found.warm_caches):
        yield _Pair(one.row.key(one.column), one.other, one.metric, _cost(one.ratio, one.metric), one.verdict)


def _of_versions(found: Findings) -> Iterator[_Pair]:
    for versus in found.versus:
        figures = [*((one, False) for one in versus.differences), *((one, True) for one in versus.untouched)]
        for one, is_untouched in figures:
            row, ratio = one.pair.row, _cost(one.ratio, one.metric)
            yield _Pair(row.key(one.pair.head), one.pair.base, one.metric, ratio, one.verdict, is_untouched)
            if one.control is not None:
                again = _cost(one.control.ratio, one.metric)
                yield _Pair(row.key(one.pair.again), one.pair.base, one.metric, again, is_control=True)


def _of_controls(found: Findings) -> Iterator[_Pair]:
    for row, ranking in found.summary.ranked:
        if ranking.control is not None:
            again = row.key(ranking.control.column.with_options(control=True))
            yield _Pair(again, ranking.control.column, row.headline, ranking.control.ratio, is_control=True)


def _fastest(found: Findings) -> Iterator[Fastest]:
    for row, ranking, fastest in _ranked(found):
        clearly = ranking.proven and ranking.first is not None
        yield Fastest(**_of_key(row.key(fastest)), metric=row.headline, clearly=clearly)
    for race in found.races:
        yield Fastest(
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


def _warnings(summary: Summary) -> Iterator[Warned]:
    rows = {row.label: row for row in summary.rows}
    for one in concerns(summary):
        yield _warned(one.what, rows.get(one.row), one.columns, one.detail)
    yield from (_warned(signal.name, None, [], signal.reason) for signal in summary.record.noise)
    for row in summary.rows:
        own = (row.scenario.name, row.workload.name, row.size)
        trials = [one for one in summary.record.trials if own == (one.scenario, one.workload, one.options.size)]
        yield from _signals(row, trials)


def _signals(row: Row, trials: Sequence[TrialRecord]) -> Iterator[Warned]:
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


def _crossovers(found: Findings) -> Iterator[Crossover]:
    for series in found.sweeps:
        row = next(iter(series.rows.values()))
        for one in (crossing for duel in series.duels for crossing in duel.crossings):
            low, high = one.interval or (None, None)
            yield Crossover(
                scenario=row.scenario.name,
                workload=row.workload.name,
                axis=series.axis,
                faster_above=_configuration(one.winner),
                faster_below=_configuration(one.loser),
                at=one.at,
                low=low,
                high=high,
            )


def _advice(found: Sequence[StepBreakdown]) -> Iterator[Advice]:
    for case in found:
        for one in case.advice:
            yield Advice(
                **_of_key(case.row.key(case.column)),
                what=one.what,
                instead=_configuration(one.column),
                instead_batch_size=one.column.options.batch,
                takes_times_as_much=one.left.value,
                low=one.left.low,
                high=one.left.high,
            )


def _trends(found: Findings) -> Iterator[Trend]:
    for one in found.soaks:
        yield Trend(
            **_of_key(one.row.key(one.column)),
            minutes=one.minutes,
            unit=one.unit,
            units=one.units,
            unit_ms=one.unit_ns / 1e6,
            memory_grows=one.grows,
            memory_bytes_per_unit=one.memory,
            device_memory_bytes_per_unit=one.device_memory,
            becomes_slower=one.slows,
            slower_share=one.slower,
        )


def _tried(one: Probe, version: str) -> Tried:
    ratio, again = one.ratio, one.control
    control = None
    if again is not None and again.low is not None and again.high is not None:
        control = Interval(again.value, again.low, again.high)
    return Tried(
        version=version,
        takes_times_as_much=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        verdict=one.verdict,
        why_no_verdict=one.why,
        control=control,
    )
