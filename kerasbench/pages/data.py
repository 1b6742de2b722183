"""What ``--json`` prints: of a run, of two sets of results, of a history."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kerasbench.analysis.compare import RunComparison
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.modes import registry
from kerasbench.pages.series import Series, versions_at
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.report import document
from kerasbench.report.data import (
    case_facts,
    configuration,
    difference,
    failed_case,
    failures,
    of_key,
    of_row,
    ratio,
    result,
    results,
)
from kerasbench.report.kinds import grouped
from kerasbench.results.run import Run
from kerasbench.text import count

COMPARE, HISTORY = "compare", "history"


def of_run(summary: Summary, records: Sequence[Run], file: Path | None = None) -> document.Document:
    machine = summary.record.machine
    whole = document.Document(
        command=summary.mode,
        machine=document.MachineData(
            chip=machine.chip,
            cores=machine.cores,
            memory_bytes=machine.memory_bytes,
            gpus=machine.gpus,
            system=machine.system,
            identifier=machine.identifier,
        ),
        runs=[_run_facts(run, file) for run in records],
        facts=list(case_facts(summary)),
        results=list(results(summary)),
        ratios=_ratios(summary),
        failures=failures(summary),
        warnings=list(_warnings(summary)),
    )
    for report in registry.mode_reports(summary):
        whole.add(report.data(summary))
    return whole


def _run_facts(run: Run, file: Path | None) -> document.RunFacts:
    return document.RunFacts(
        started=run.started,
        finished=run.finished,
        rounds=run.rounds_completed,
        stopped_because=run.stopped_because,
        kerasbench=run.kerasbench,
        commit=run.commit,
        result_file=str(file) if file else None,
    )


def _ratios(summary: Summary) -> list[document.Ratio]:
    """Return each pair once: with its verdict, where it has one."""
    ratios: dict[tuple[CaseKey, Column, str], document.Ratio] = {}
    for contrast, more in (pair for report in registry.mode_reports(summary) for pair in report.contrasts(summary)):
        key = (contrast.over.key, contrast.under.column, contrast.metric)
        if key not in ratios or ratios[key].verdict is None:
            ratios[key] = ratio(contrast, **more)
    return list(ratios.values())


def of_comparison(comparison: RunComparison, old: str, new: str) -> document.Document:
    sides, ratios = [], []
    for change in (*comparison.changes, *comparison.memory):
        contrast = change.contrast
        for side, value in ((old, change.old), (new, change.new)):
            sides.append(result(of_key(change.case), contrast.metric, value, side=side))
        ratios.append(ratio(contrast, why_no_verdict=contrast.why))
    failed = [failed_case(case, failure) for case, failure in comparison.failed]
    different = list(map(difference, comparison.differences))
    return document.Document(command=COMPARE, results=sides, differences=different, ratios=ratios, failures=failed)


def of_sides(summaries: Sequence[tuple[str, Summary]]) -> document.Document:
    numbers = [number for name, summary in summaries for number in results(summary, name)]
    failed = [failure for _, summary in summaries for failure in failures(summary)]
    return document.Document(command=COMPARE, results=numbers, failures=failed)


def of_history(history: Sequence[Series]) -> document.Document:
    points = []
    for series in history:
        for contrast in series.points:
            row = contrast.over.row
            point = document.HistoricRatio(
                **msgspec.structs.asdict(ratio(contrast)),
                started=row.run,
                commit=row.origin.commit,
                versions=versions_at(contrast),
                machine=series.machine,
            )
            points.append(point)
    return document.Document(command=HISTORY, history=points)


def _warnings(summary: Summary) -> Iterator[document.UsageWarning]:
    """Yield every warning, then each signal of noise once: of the machine, and of each row's trials the worst."""
    rows = {row.label: row for row in summary.rows}
    record = summary.record
    for concern in concerns(summary):
        yield _warned(concern.what, rows.get(concern.row), concern.columns, concern.detail)
    yield from (_warned(signal.name, None, [], signal.reason) for signal in record.noise)
    for row in rows.values():
        workload = (row.scenario.name, row.workload.name, row.size)
        trials = [trial for trial in record.trials if (trial.scenario, trial.workload, trial.options.size) == workload]
        by_name = grouped((signal.name, (trial, signal)) for trial in trials for signal in trial.noise)
        for name, of_name in by_name.items():
            worst = max((signal for _, signal in of_name), key=lambda signal: signal.invalidates)
            disturbed = {(trial.case, trial.round, trial.block) for trial, _ in of_name}
            detail = f"{worst.reason}; in {len(disturbed)} of {count(len(trials), 'trial')}"
            yield _warned(name, row, dict.fromkeys(trial.column for trial, _ in of_name), detail)


def _warned(kind: str, row: Row | None, columns: Iterable[Column], detail: str) -> document.UsageWarning:
    warning = WarningKind(kind) if kind in set(WarningKind) else None  # none in a file that another version wrote
    meaning, remedy = (warning.meaning, warning.remedy) if warning else (kind, "")
    of_all = dict.fromkeys(("scenario", "workload", "batch_size", "width"))
    place = of_row(row.scenario.name, row.workload.name, row.size) if row else of_all
    on = [configuration(column) for column in columns]
    return document.UsageWarning(**place, kind=kind, configurations=on, meaning=meaning, detail=detail, remedy=remedy)
