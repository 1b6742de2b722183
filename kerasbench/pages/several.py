"""Runs side by side (``compare``), and machines side by side: what became of every case, where each is fastest."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kerasbench.analysis.abreast import MachineColumn, MachineRow, abreast, light
from kerasbench.analysis.cases import HEADLINE
from kerasbench.analysis.compare import RunComparison
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.names import name_of
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.messages import Failure
from kerasbench.report.answer import sentences as answers
from kerasbench.report.contrasts import takes
from kerasbench.report.details import INSECURE, versions_of
from kerasbench.report.sections import EMPTY, Cell, Page, Section, Table, Words, texts
from kerasbench.report.words import case_title, change_of, multiple, names, timed_in, took
from kerasbench.text import NOTHING, blanked, count


def changes(comparison: RunComparison, old: str, new: str) -> Page:
    others = (("New", comparison.added), ("No longer measured", comparison.vanished))
    lines = [f"{title}: {', '.join(map(case_title, cases))}." for title, cases in others if cases]
    lines += differing_facts(comparison)
    for case, failure in comparison.failed:
        lines.append(f"Measured before, failing now: {case_title(case)}: {failure.code}: {failure.cause}")
    if not comparison.changes:
        return Page("No case was measured on both sides", [Section("", lines=lines)])
    rows = []
    for change in comparison.changes:
        row, meanwhile = change.contrast.under.row, EMPTY
        name = case_title(change.case, row.workload.predicts_only) + (" ⚠" if change.source_changed else "")
        if change.beside is not None:
            column, ratio = change.beside
            meanwhile = Cell(f"{multiple(ratio)} ({name_of(column)})", ratio)
        before = Cell(took(change.old, row.headline), change.old.value)
        rows.append([Cell(name), before, takes(change.contrast), meanwhile])
    judged = len(comparison.changes) - comparison.unjudged.total()
    slower, faster = comparison.verdicts[Verdict.SLOWER], comparison.verdicts[Verdict.FASTER]
    title = f"{new}: {slower} of {count(judged, 'case')} clearly slower, {faster} clearly faster"
    if not judged:
        title = f"{count(len(comparison.changes), 'case')}, all undecided"
    table = Table(["case", old, f"{new} takes", "meanwhile"], rows)
    sections = [Section("", table=table, lines=lines, notes=list(_notes(comparison)))]
    return Page(title, [*sections, *filter(None, [_memory(comparison, old, new)])])


def _memory(comparison: RunComparison, old: str, new: str) -> Section | None:
    rows = []
    for change in comparison.memory:
        metric = change.contrast.metric
        before = Cell(took(change.old, metric), change.old.value)
        rows.append([*texts(case_title(change.case), BY_NAME[metric].title), before, takes(change.contrast)])
    clear = count(sum(change.contrast.is_decided for change in comparison.memory), "clear difference")
    table = Table(["case", "metric", old, f"{new} takes"], rows)
    return Section(f"Memory by phase: {clear} in {len(rows)} numbers", table=table, folded=True) if rows else None


def differing_facts(comparison: RunComparison) -> list[str]:
    return [f"{case_title(fact.over.key)}: {change_of(fact)}." for fact in comparison.differences]


def _notes(comparison: RunComparison) -> Iterator[Words]:
    changes = comparison.changes
    if comparison.overall is not None:
        yield f"Geometric mean over {count(len(changes), 'case')}: {multiple(comparison.overall)}."
    for why, number in comparison.unjudged.items():
        yield f"Undecided: {count(number, 'case')}: {why}. The machine itself may have been slower in one of the runs."
    if any(change.beside for change in changes):
        yield "Meanwhile: how the time relative to another configuration of the same run has changed."
    if any(change.source_changed for change in changes):
        yield "⚠: the scenario's source has changed."


def sentences(comparison: RunComparison) -> list[str]:
    judged = len(comparison.changes) - comparison.unjudged.total()
    slower, faster = comparison.verdicts[Verdict.SLOWER], comparison.verdicts[Verdict.FASTER]
    shared = f"{count(len(comparison.changes), 'case')} measured on both sides"
    tied = comparison.verdicts[Verdict.SAME]
    counts = f"{slower} slower, {faster} faster, {tied} tied, {judged - slower - faster - tied} undecided"
    lines = [*differing_facts(comparison), f"{shared}: {counts}."]
    lines += [f"Undecided besides: {count(cases, 'case')}: {why}." for why, cases in comparison.unjudged.items()]
    for change in comparison.changes:
        if change.contrast.verdict is Verdict.SLOWER:
            lines.append(f"{case_title(change.case)} takes {multiple(change.contrast.ratio.value)} as long as before.")
    for change in comparison.memory:
        if change.contrast.verdict is Verdict.SLOWER:
            title, ratio = BY_NAME[change.contrast.metric].title, multiple(change.contrast.ratio.value)
            lines.append(f"{case_title(change.case)}: {title[0].lower()}{title[1:]}: {ratio} as much as before.")
    return [*lines, *(f"{case_title(case)} fails now: {failure.cause}" for case, failure in comparison.failed)]


def side_by_side(summaries: Sequence[tuple[str, Summary]]) -> Section:
    columns, rows = abreast(summaries)
    several = len({column for _, column in columns}) > 1
    body = [[Cell(row.label), *(_abreast(row, column) for column in columns)] for row in rows]
    called = names(column for _, column in columns)
    headers = ["workload", *(f"{name}: {called[column]}" if several else name for name, column in columns)]
    timed = timed_in([row for _, summary in summaries for row in summary.rows])
    notes: list[Words] = [
        f"Time per {timed}: the shortest of all in ms, the others relative to it.",
        "These were not measured side by side, so what differs between them is undecided.",
    ]
    return Section("Side by side", table=Table(headers, body), notes=notes)


def _abreast(row: MachineRow, column: MachineColumn) -> Cell:
    outcome, ratio = row.cases.get(column), row.ratios.get(column)
    if outcome is None:
        return EMPTY
    if isinstance(outcome, Failure):
        return Cell(outcome.code, failed=True)
    text = multiple(ratio) if ratio is not None and ratio != 1 else took(outcome, HEADLINE)
    return Cell(text, outcome.value, ratio=ratio)


class MachineSummary(NamedTuple):
    """What a page of several machines says of one: little, so that a hundred of them fit into memory."""

    name: str
    summary: Summary  # without its trials
    answers: Sequence[str]
    versions: dict[str, str]  # of each package that its children ran

    @classmethod
    def of(cls, name: str, summary: Summary) -> "MachineSummary":
        versions = {package: " and ".join(sorted(numbers)) for package, numbers in versions_of(summary.record).items()}
        versions = {"kerasbench": summary.record.kerasbench} | versions
        return cls(name, light(summary), answers(summary), versions)


def of_machines(machines: Sequence[MachineSummary], failed: Mapping[str, str]) -> Page:
    """Return the page of several machines. ``failed``: those that were not done, and why."""
    summaries = [(machine.name, machine.summary) for machine in machines]
    sections = [_over_machines(summaries), side_by_side(summaries)] if len(machines) > 1 else []
    if failed:
        rows = [texts(name, cause) for name, cause in failed.items()]
        sections.append(Section("Machines without results", table=Table(["machine", "why"], rows)))
    sections += [Section(machine.name, lines=machine.answers) for machine in machines if machine.answers]
    packages = dict.fromkeys(package for machine in machines for package in machine.versions)
    versions = {package: [machine.versions.get(package, NOTHING) for machine in machines] for package in packages}
    different = [texts(package, *by_machine) for package, by_machine in versions.items() if len(set(by_machine)) > 1]
    if different:
        table = Table(["package", *(machine.name for machine in machines)], different)
        sections.append(Section("Versions that differ", table=table))
    carried = [machine.summary.record.carried for machine in machines]
    insecure = f" ({INSECURE})" if any(carrier is not None and carrier.insecure for carrier in carried) else ""
    return Page(f"{count(len(machines) + len(failed.keys() - {*dict(summaries)}), 'machine')}{insecure}", sections)


def _over_machines(summaries: Sequence[tuple[str, Summary]]) -> Section:
    lines = []
    for row in abreast(summaries)[1]:
        if row.fastest is not None:
            (name, column), called = row.fastest, names([column for _, column in row.cases])
            others = [
                f"{called[other]} on {machine} takes {multiple(row.ratios[machine, other])} as long"
                for machine, other in sorted(row.firsts - {row.fastest}, key=row.ratios.__getitem__)
            ]
            rest = "; ".join(others) or "no other machine measured it"
            lines.append(blanked(f"{row.label}: {called[column]} on {name} has the shortest time; {rest}."))
    return Section("", lines=lines)
