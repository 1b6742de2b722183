"""What to know before a number is used: for each kind of warning who it is about, what it means, and what to type."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kerasbench.analysis.rankings import longer_by_means
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import CaseWarning, concerns, programs_in
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import DEFAULT, Column, Options
from kerasbench.report.command import command, rounds_of
from kerasbench.report.kinds import grouped
from kerasbench.report.sections import Inline, Section, Strong, Typed, Words, mark
from kerasbench.report.words import LIMITATIONS, Names, listed, multiple, names, percent, span
from kerasbench.text import count

TITLE = "Before you use these numbers"
MOST = 5  # kinds of warnings above the fold
MOST_PLACES = 3  # cases that a warning names; of more it has the number
IN_DATA_ALONE = (WarningKind.SCATTERED, WarningKind.WAITED)  # an interval shows the one, a median leaves the other out

OF_OTHERS = (WarningKind.UNDECIDED, WarningKind.DISTURBED)  # with the same advice, which is given once

UNTRAINED = ", so it is not trained"  # how the description of a saved model ends
Case = tuple[str, Column]  # by the label of its row
Marks = dict[Case, list[int]]  # the numbers of the warnings that are about it
Caution = tuple[list[Inline], Sequence[Case]]  # one kind of warning, and the cases that its number marks in tables


def cautions(summary: Summary) -> tuple[list[Words], Marks]:
    """Return all warnings by how much they matter, those numbered that are about cases of a table."""
    kinds = grouped((concern.what, concern) for concern in concerns(summary))
    alone = kinds.keys() - {*IN_DATA_ALONE, *OF_OTHERS}
    of_kinds = (_caution(kind, kinds[kind], summary) for kind in WarningKind if kind in alone)
    lines: list[Words] = []
    marks: Marks = {}
    number = 0
    for words, cases in (
        *_failures(summary),
        *_untrained(summary),
        *_other_programs(summary, kinds),
        *of_kinds,
        *_means(summary),
        *_machine(summary),
    ):
        if cases and summary.is_ranked:  # else no cell of its tables is marked
            number += 1
            words.insert(0, f"{mark([number])} ")
            for case in cases:
                marks.setdefault(case, []).append(number)
        lines.append(words)
    return lines, marks


def section(cautions: Sequence[Words], advice: Sequence[Words], end: Words) -> Section:
    """Return the list above the fold. ``advice``: what a mode itself has to say before its answer is used."""
    here = "These numbers hold for this machine in this session; another machine has other ratios: "
    limits: Words = [here, LIMITATIONS, "."]
    return Section(TITLE, lines=[*advice, *cautions[:MOST], limits], end=end)


def more(cautions: Sequence[Words]) -> Section | None:
    lines = cautions[MOST:]
    return Section(f"{count(len(lines), 'more warning')}", lines=lines, folded=True) if lines else None


def _failures(summary: Summary) -> Iterator[Caution]:
    called = names(summary.columns)
    cases = [(row.label, column) for row, column, _ in summary.failures]
    if cases:
        places = [f"{label} on {called.get(column, column.label)}" for label, column in cases]
        who = f": {listed(places)}" if len(places) <= MOST_PLACES else ""
        failed = Strong(f"{count(len(cases), 'case')} failed")
        yield ([failed, f"{who}. Causes and what to do stand above."], cases)


def _untrained(summary: Summary) -> Iterator[Caution]:
    """Say of saved models why they are not trained, as their file's description has it."""
    reasons = {
        row.scenario.name: row.scenario.title.rpartition("; ")[2].rstrip(".")
        for row in summary.rows
        if row.workload.predicts_only and row.scenario.title.endswith(f"{UNTRAINED}.")
    }
    if reasons:
        many = f" ({len(reasons) - MOST_PLACES} more in the data)" if len(reasons) > MOST_PLACES else ""
        places = "; ".join(f"{name}: {reason}" for name, reason in [*reasons.items()][:MOST_PLACES])
        yield ([Strong("Predictions alone were measured."), f" {places}{many}."], [])


def _other_programs(summary: Summary, kinds: Mapping[WarningKind, Sequence[CaseWarning]]) -> Iterator[Caution]:
    """Say in one line what other programs did, and which they were where that is known."""
    rows = {row.label: row for row in summary.rows}
    undecided = [concern.row for concern in kinds.get(WarningKind.UNDECIDED, ())]
    interrupted = [concern for concern in kinds.get(WarningKind.DISTURBED, ()) if concern.row not in undecided]
    if not undecided and not interrupted:
        return
    who = programs_in(row for label, row in rows.items() if label in {*undecided, *(of.row for of in interrupted)})
    cases = [(label, column) for label in undecided for column, case in rows[label].cases.items() if case.trials]
    cases += [(concern.row, column) for concern in interrupted for column in concern.columns]
    parts = [f"undecided: {_shortened(undecided, 'workload')}"] if undecided else []
    by_row = grouped((concern.row, concern) for concern in interrupted)
    if by_row:
        parts.append(f"in at least one round of {_shortened([*by_row], 'workload')}")
    parts += [concern.detail for concern in interrupted if concern.detail][:1]
    parts += [f"{signal.reason} before the run" for signal in summary.record.noise if signal.name == WarningKind.LOAD]
    bold = f"Other programs{f' ({listed(who)})' if who else ''} used the CPU"
    yield [Strong(bold), f": {'; '.join(parts)}. {_sentence(WarningKind.UNDECIDED.remedy)}."], cases


def _shortened(labels: Sequence[str], what: str) -> str:
    return listed(labels) if len(labels) <= MOST_PLACES else count(len(labels), what)


def _caution(kind: WarningKind, concerns: Sequence[CaseWarning], summary: Summary) -> Caution:
    called = names(summary.columns)
    places: list[str] = []
    cases: list[Case] = []
    by_case = {concern.row for concern in concerns if concern.columns}
    measured = {row.label: [column for column, case in row.cases.items() if case.trials] for row in summary.rows}
    for concern in [concern for concern in concerns if concern.columns or concern.row not in by_case]:
        is_all = concern.row in measured and set(concern.columns) >= set(measured[concern.row])
        who = "" if is_all else listed([called[column] for column in concern.columns if column in called])
        detail = f" ({concern.detail})" if concern.detail and concern.share is None else ""
        places.append(f"{' on '.join(filter(None, [concern.row, who]))}{detail}")
        cases += [(concern.row, column) for column in concern.columns if concern.row]
        if kind is WarningKind.CONTROL:
            cases += [(concern.row, column) for column in measured[concern.row]]
    if kind is WarningKind.VERSIONS:  # a mark in each row, where another version than most columns have is compared
        usual = max(concerns, key=lambda concern: len(concern.columns)).columns
        others = {column for concern in concerns for column in concern.columns}.difference(usual)
        cases += [(label, column) for label, columns in measured.items() for column in columns if column in others]
    cases = list(dict.fromkeys(cases))
    shares = [concern.share for concern in concerns if concern.share is not None]
    estimated = f" (an estimated {span(shares, percent).replace(' % to', ' to')})" if shares else ""
    meaning = f"{_sentence(kind.meaning)}{estimated}"
    where = f": {_where(places, cases, called)}. " if any(places) else ". "
    return ([Strong(meaning), where, *_to_do(kind, concerns[0], summary)], cases)


def _where(places: Sequence[str], cases: Sequence[Case], called: Names) -> str:
    """Return the cases by name; of many how many there are, with their configuration if all have the same."""
    if len(places) <= MOST_PLACES:
        return listed(places)
    columns = [called.get(column, column.label) for column in dict.fromkeys(column for _, column in cases)]
    of_one = f", all on {columns[0]}" if len(columns) == 1 else ""
    return f"{count(len(cases), 'case')}{of_one}" if cases else count(len(places), "workload")


def _to_do(kind: WarningKind, example: CaseWarning, summary: Summary) -> list[Inline]:
    if kind is WarningKind.PAGES and example.columns:
        row = next(row for row in summary.rows if row.label == example.row)
        config, name = row.origin.config, row.scenario.name
        config = dataclasses.replace(
            config,
            scenarios=[word for word in config.scenarios if Path(word).stem == name] or [name],  # a file: as typed
            backends=[example.columns[0].backend],
            devices=[],
            options=[DEFAULT, Options(malloc="keep")],
            effort=dataclasses.replace(config.effort, budget_s=None),
        )
        return ["Try it: ", Typed(command(config, config.scenarios, [])), "."]
    if kind.is_command:
        return ["What to do: ", Typed(kind.remedy), "."]
    is_left = kind is WarningKind.SLOW and "--quick" not in rounds_of(summary.record.config)
    return [f"{_sentence(kind.remedy)}{'; --quick leaves out even more' if is_left else ''}."]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _means(summary: Summary) -> Iterator[Caution]:
    called = names(summary.columns)
    ranked = summary.plain.ranked if summary.is_ranked else []
    by_means = [
        f"{called[contrast.over.column]} takes {multiple(means)} on {row.label}"
        for row, ranking in ranked
        for contrast in ranking.others
        if not row.origin.config.paired and (means := longer_by_means(contrast)) is not None
    ]
    if by_means:
        rest = f" ({len(by_means) - MOST_PLACES} more in the data)" if len(by_means) > MOST_PLACES else ""
        text = f" With them {listed(by_means[:MOST_PLACES])}{rest}. Plan long trainings with these."
        yield ([Strong("Occasional slow steps are not in a median."), text], [])


def _machine(summary: Summary) -> Iterator[Caution]:
    had_others = any(concern.what in OF_OTHERS for concern in concerns(summary))  # their line has what was busy before
    for signal in summary.record.noise:
        if signal.name in set(WarningKind) and not (had_others and signal.name == WarningKind.LOAD):
            kind = WarningKind(signal.name)
            remedy = [" ", Typed(kind.remedy), "."] if kind.is_command else [f" {_sentence(kind.remedy)}."]
            yield ([Strong(f"Before the run: {signal.reason}."), *remedy], [])
