"""Runs side by side (``compare``), machines side by side, and two versions that one run compared (``versus``)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerasbench.analysis.cases import FIRST_STEP, HEADLINE, PREDICTED, PREDICTED_ONE, PREDICTED_RATE
from kerasbench.analysis.estimates import LogEstimate, Verdict
from kerasbench.analysis.findings import Findings, MachineColumn, MachineRow, abreast, light
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.versus import DEVICE_MEMORY, MEMORY, Change, Difference, RunComparison, VersionPair, Versus
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import charts
from kerasbench.report.answer import sentences as answers
from kerasbench.report.details import INSECURE
from kerasbench.report.sections import (
    EMPTY,
    Bar,
    BarChart,
    Cell,
    Page,
    Section,
    Strong,
    Table,
    Words,
    texts,
)
from kerasbench.report.words import (
    Names,
    as_given,
    case_name,
    could_have_seen,
    listed,
    multiple,
    names,
    timed_in,
    times,
    took,
)
from kerasbench.results.run import Run
from kerasbench.text import NOTHING, blanked, count

DECIDED = (Verdict.FASTER, Verdict.SLOWER)
OPEN = {Verdict.SAME: ", tie", Verdict.INCONCLUSIVE: ", undecided"}


def changes(found: RunComparison, old: str, new: str) -> Page:
    """Return what became of every case between two sets of results."""
    lines: list[Words] = []
    for title, cases in (("New", found.added), ("No longer measured", found.vanished)):
        if cases:
            lines.append(f"{title}: {', '.join(case_name(case) for case in cases)}.")
    for case, failure in found.failed:
        lines.append(f"Measured before, failing now: {case_name(case)}: {failure.code}: {failure.cause}")
    if not found.changes:
        return Page("No case was measured on both sides", [Section("", lines=lines)])
    table = Table(["case", old, f"{new} takes", "meanwhile"], [_change(change) for change in found.changes])
    return Page(_of_changes(found, new), [Section("", table=table, lines=lines, notes=list(_change_notes(found)))])


def _of_changes(found: RunComparison, new: str) -> str:
    """Return how many cases became faster and slower."""
    counts = Counter(change.verdict for change in found.changes)
    judged = len(found.changes) - found.unjudged.total()
    if not judged:
        return f"Nothing between the two is decided ({count(len(found.changes), 'case')})"
    slower, faster = counts[Verdict.SLOWER], counts[Verdict.FASTER]
    return f"{new}: {slower} of {count(judged, 'case')} clearly slower, {faster} clearly faster"


def _change(change: Change) -> list[Cell]:
    beside = change.beside
    doubt = "" if change.verdict in DECIDED else OPEN.get(change.verdict, "") if change.verdict else ", not judged"
    name = case_name(change.case, change.row.workload.predicts_only) + (" ⚠" if change.source_changed else "")
    return [
        Cell(name),
        Cell(took(change.old, change.row.headline), change.old.value),
        Cell(f"{times(change.ratio)}{doubt}", change.ratio.value, strong=change.verdict in DECIDED),
        Cell(f"{multiple(beside.ratio)} ({beside.column.label})", beside.ratio) if beside else EMPTY,
    ]


def _change_notes(found: RunComparison) -> Iterator[Words]:
    if found.overall is not None:
        yield f"Geometric mean over {count(len(found.changes), 'case')}: {multiple(found.overall)}."
    for why, number in found.unjudged.items():
        yield f"Not judged: {count(number, 'case')}: {why}. The machine itself may have been slower in one of the runs."
    if any(change.beside for change in found.changes):
        yield "Meanwhile: how the time relative to another configuration of the same run has changed."
    if any(change.source_changed for change in found.changes):
        yield "⚠: the scenario's source has changed."


def side_by_side(summaries: Sequence[tuple[str, Summary]]) -> Section:
    """Return the times of several machines or sets of results, each with its name."""
    columns, rows = abreast(summaries)
    several = len({column for _, column in columns}) > 1
    body = [[Cell(row.label), *(_abreast(row, column) for column in columns)] for row in rows]
    called = names(column for _, column in columns)
    headers = ["workload", *(f"{name}: {called[column]}" if several else name for name, column in columns)]
    timed = timed_in([row for _, summary in summaries for row in summary.rows])
    notes: list[Words] = [
        f"Time per {timed}: the shortest of all in ms, the others relative to it.",
        "These were not measured side by side, so nothing between them is decided.",
    ]
    return Section("Side by side", table=Table(headers, body), notes=notes)


def _abreast(row: MachineRow, column: MachineColumn) -> Cell:
    known, ratio = row.cases.get(column), row.ratios.get(column)
    if known is None:
        return EMPTY
    if isinstance(known, Failure):
        return Cell(known.code, failed=True)
    text = multiple(ratio) if ratio is not None and ratio != 1 else took(known, HEADLINE)
    return Cell(text, known.value, ratio=ratio)


@dataclass(frozen=True)
class MachineBrief:
    """What a page of several machines says of one: little, so that a hundred of them fit into memory."""

    name: str
    summary: Summary  # without its trials
    answers: Sequence[str]
    versions: dict[str, str]  # of each package that its children ran


def brief(name: str, found: Findings) -> MachineBrief:
    versions: dict[str, set[str]] = {"kerasbench": {found.record.kerasbench}}
    for trial in found.record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            versions.setdefault(package, set()).add(version)
    named = {package: " and ".join(sorted(own)) for package, own in versions.items()}
    return MachineBrief(name, light(found.summary), answers(found), named)


def of_machines(found: Sequence[MachineBrief], failed: Mapping[str, str]) -> Page:
    """Return the page of several machines. ``failed``: those that were not done, and why."""
    summaries = [(machine.name, machine.summary) for machine in found]
    sections = [_over_machines(summaries), side_by_side(summaries)] if len(found) > 1 else []
    if failed:
        rows = [texts(name, cause) for name, cause in failed.items()]
        sections.append(Section("Machines that were not done", table=Table(["machine", "why"], rows)))
    sections += [Section(machine.name, lines=machine.answers) for machine in found if machine.answers]
    sections += filter(None, [_different(found)])
    carried = [machine.summary.record.carried for machine in found]
    insecure = f" ({INSECURE})" if any(one is not None and one.insecure for one in carried) else ""
    return Page(f"{count(len(found) + len(failed.keys() - {*dict(summaries)}), 'machine')}{insecure}", sections)


def _over_machines(summaries: Sequence[tuple[str, Summary]]) -> Section:
    """Return for each workload where its shortest time is, and how long the fastest of each other machine takes."""
    _, rows = abreast(summaries)
    lines = []
    for row in rows:
        if row.fastest is None:
            continue
        name, column = row.fastest
        called = names([column for _, column in row.cases])
        others = [
            f"{called[own]} on {other} takes {multiple(row.ratios[other, own])} as long"
            for other, own in sorted(row.firsts - {row.fastest}, key=row.ratios.__getitem__)
        ]
        rest = "; ".join(others) or "no other machine measured it"
        lines.append(blanked(f"{row.label}: {called[column]} on {name} has the shortest time; {rest}."))
    return Section("", lines=lines)


def _different(found: Sequence[MachineBrief]) -> Section | None:
    body = []
    for package in dict.fromkeys(package for machine in found for package in machine.versions):
        versions = [machine.versions.get(package, NOTHING) for machine in found]
        if len(set(versions)) > 1:
            body.append(texts(package, *versions))
    table = Table(["package", *(machine.name for machine in found)], body)
    return Section("Versions that differ", table=table) if body else None


# Two versions of one run.

SAYING = {
    HEADLINE: "a training step takes {} as long",
    PREDICTED: "predicting a batch takes {} as long",
    FIRST_STEP: "the first step takes {} as long",
    PREDICTED_ONE: "predicting one sample takes {} as long",
    PREDICTED_RATE: "predict takes {} as long for a sample",
    MEMORY: "the process takes {} the memory",
    DEVICE_MEMORY: "the device holds {} as much",
}
COLUMNS = (
    "scenario", "workload", "backend", "device", "options", "metric", "unit", "base", "head", "ratio", "low", "high",
    "verdict",
)  # fmt: skip


def rows(found: Versus) -> Iterator[list[str | float | None]]:
    """Yield each number of base and head as data, in the order of COLUMNS."""
    for one in found.differences:
        row, metric = one.pair.row, BY_NAME[one.metric]
        column = one.pair.base.paired
        case = [row.scenario.name, row.workload.name, column.backend, column.device, column.options.label]
        numbers = [one.base.value, one.head.value, one.ratio.value, one.ratio.low, one.ratio.high]
        yield [*case, metric.name, metric.unit, *numbers, str(one.verdict)]


def title(found: Findings) -> str:
    """Return how many cases take longer with the head, or of one case how long it takes."""
    return "; ".join(_overall(versus) for versus in found.versus)


def _overall(found: Versus) -> str:
    steps = found.headlines
    if not steps:
        return f"Nothing was timed with both {found.base} and {found.head}"
    if len(steps) == 1:
        (one,) = steps
        case = f"{one.pair.row.label} on {_called(steps)[one.pair.base.paired]}"
        doubt = " (undecided)" if one.withheld or one.verdict is Verdict.INCONCLUSIVE else ""
        return f"{case}: {found.head} takes {times(one.ratio)} as long as {found.base}{doubt}"
    counts = Counter(Verdict.INCONCLUSIVE if one.withheld else one.verdict for one in steps)
    words = ((Verdict.SLOWER, "longer"), (Verdict.FASTER, "less time"), (Verdict.SAME, "the same time"))
    parts = [f"{word} in {counts[verdict]}" for verdict, word in words if counts[verdict]]
    parts += [f"{counts[Verdict.INCONCLUSIVE]} undecided"] if counts[Verdict.INCONCLUSIVE] else []
    return f"{found.head} instead of {found.base} takes {listed(parts)} of {len(steps)} cases"


def _called(shown: Sequence[Difference]) -> Names:
    return names(dict.fromkeys(one.pair.base.paired for one in shown))


def versions(found: Findings) -> Iterator[Section]:
    """Yield for each pair of versions the answer and what stands for each case: its training step, or prediction."""
    for versus in found.versus:
        if found.is_versus or versus.headlines:
            lines = [*_unseen(versus), *_undecided(versus), *_unproven(versus)]
            table = _table(versus, versus.headlines)
            notes = list(_notes(versus)) if table else []
            chart = _chart(versus, found.record)
            yield Section(_overall(versus), chart=chart, table=table, notes=notes, lines=lines)


def _chart(found: Versus, record: Run) -> BarChart | None:
    """Return a bar for each case: the time with the head, relative to the base."""
    if not found.headlines:
        return None
    called = _called(found.headlines)
    seen = charts.looks(called)
    groups: dict[str, list[Bar]] = {}
    for one in found.headlines:
        column, interval = one.pair.base.paired, (one.ratio.low, one.ratio.high)
        own = groups.setdefault(one.pair.row.label, [])
        own.append(
            charts.bar(
                called[column],
                times(one.ratio),
                one.ratio.value,
                interval,
                seen[column],
                column.backend,
                one.ratio.trials,
                strong=one.verdict in DECIDED,
            )
        )
    caption = f"Time with {found.head}, relative to {found.base} (1×). {charts.where(record)}."
    return charts.bars(_overall(found), caption, list(groups.items()))


def sentences(found: Versus) -> list[str]:
    """Return one sentence for all, then one for each number that is worse or cannot be had."""
    lines = (f"{_overall(found)}.", *worse(found), *_undecided(found), *_unproven(found))
    return [blanked(line) for line in lines]


def worse(found: Versus) -> list[str]:
    """Return a sentence for each number of the head that is worse, and for each case that it has no number of."""
    return [*(_worse(one) for one in found.regressions if one.is_headline), *_unseen(found)]


def _worse(one: Difference) -> str:
    return f"{_case(one.pair)}: {SAYING[one.metric].format(times(_cost(one)))}."


def _cost(one: Difference) -> LogEstimate:
    """Return how many times as much the head takes: of a rate, the time for each sample."""
    return one.ratio.inverse if one.is_rate else one.ratio


def _unseen(found: Versus) -> list[str]:
    """Return what of that is not in the table of times: other numbers, and cases without any."""
    lines = [_worse(one) for one in found.regressions if not one.is_headline]
    for pair, failure in found.broken:
        what = f"{found.head} fails, {found.base} does not: {failure.code}: {failure.cause}"
        if failure.code is Code.PARITY:
            what = f"the results of {found.head} differ from those of {found.base}: {failure.cause}"
        lines.append(f"{_case(pair)}: {what}.")
    return lines


def _undecided(found: Versus) -> Iterator[str]:
    for one in found.headlines:
        if one.withheld and one.control is not None:
            ratio = times(one.control.ratio)
            yield f"{_case(one.pair)}: undecided, because {found.base} takes {ratio} as long as itself."
    for pair in found.pairs:
        failure = pair.failure(pair.base)
        if failure is not None:
            yield f"{_case(pair)}: not compared, because {found.base} failed: {failure.code}: {failure.cause}."


def _unproven(found: Versus) -> Iterator[str]:
    """Yield what moved that the head cannot have changed: a negative control."""
    for one in found.moved:
        yield (
            f"{_case(one.pair)}: do not rely on this run. Importing the backend takes {times(one.ratio)} as long with "
            f"{found.head}, though only Keras differs: something else is at work."
        )


def _case(pair: VersionPair) -> str:
    return f"{pair.row.label} {pair.name}"


def _notes(found: Versus) -> Iterator[Words]:
    steps = found.headlines
    what, effect = timed_in([one.pair.row for one in steps]), as_given(found.effect)
    yield [
        f"Time per {what} (median) with the base; the head takes N× as long (95 % interval). ",
        Strong("Bold"),
        f": clearly different, by more than {effect}. The base measured again should take 1×.",
    ]
    undecided = [
        one for one in steps if one.verdict is Verdict.INCONCLUSIVE and not one.withheld and not one.ratio.disturbed
    ]
    if undecided:
        worst = max(undecided, key=lambda one: one.ratio.half_width or 0.0)
        if seen := could_have_seen(worst.ratio, found.effect):
            yield f"Undecided: {seen[0].lower()}{seen[1:]}"


def _again(one: Difference) -> Cell:
    assert one.control is not None
    ratio = one.control.ratio.inverse if one.is_rate else one.control.ratio
    return Cell(times(ratio), ratio.value)


def besides(found: Findings) -> Iterator[Section]:
    """Yield the first step, prediction and memory of each pair of versions."""
    for versus in found.versus:
        others = [one for one in versus.differences if not one.is_headline]
        clear = count(sum(one.verdict in DECIDED for one in others), "clear difference")
        if others:
            heading = f"First step, prediction and memory: {clear} in {len(others)} numbers"
            yield Section(heading, table=_table(versus, others, kinds=True), folded=True)


def _table(found: Versus, shown: Sequence[Difference], kinds: bool = False) -> Table | None:
    """Return a table of numbers; ``kinds``: they are of several kinds, which a column names."""
    body, called = [], _called(shown)
    for one in shown:
        metric = BY_NAME[one.metric]
        decided = one.verdict in DECIDED
        doubt = ", undecided" if one.withheld else OPEN.get(one.verdict, "") if one.ratio.has_interval else ""
        body.append(
            [
                *texts(one.pair.row.label, called[one.pair.base.paired], *([metric.title] if kinds else [])),
                Cell(took(one.base, one.metric), one.base.value),
                Cell(f"{times(_cost(one))}{doubt}", _cost(one).value, strong=decided),
                EMPTY if one.control is None else _again(one),
            ]
        )
    if not body:
        return None
    headers = ["workload", "configuration", *(["metric"] if kinds else [])]
    return Table([*headers, found.base, f"{found.head} takes", f"{found.base} again takes"], body)
