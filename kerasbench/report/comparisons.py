"""Two or more sets of results as a page.

Two versions side by side: a sentence for all, what became worse, then a table for each kind of figure.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from kerasbench.analysis.cases import HEADLINE
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate, Verdict
from kerasbench.analysis.findings import Findings, MachineColumn, abreast
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.rankings import CONTROL_BOUND
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.versus import (
    DEVICE_MEMORY,
    FIRST_STEP,
    MEMORY,
    ONE,
    THROUGHPUT,
    Beside,
    Change,
    Comparison,
    Difference,
    Pair,
    Versus,
)
from kerasbench.protocol.columns import AT
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report.figures import (
    case_name,
    column_name,
    estimated,
    first_step,
    paired,
    significant,
    times,
    with_interval,
)
from kerasbench.report.sections import EMPTY, NOTHING, Cell, Page, Section, Table, texts
from kerasbench.text import blanked, count

UNIT = BY_NAME[HEADLINE].unit
BESIDE = "beside"
DECIDED = (Verdict.FASTER, Verdict.SLOWER)


def changes(found: Comparison, old: str, new: str) -> Page:
    """Return what became of every cell between two sets of results."""
    title = "Training step, new against old"
    if not found.changes:
        return Page("", [Section(title, ["No case was measured on both sides."], lines=list(_lists(found)))])
    table = Table(["case", old, new, "new / old", BESIDE, "verdict"], [_row(change) for change in found.changes])
    return Page("", [Section(title, table=table, lines=list(_lists(found)), notes=list(_change_notes(found)))])


def _change_notes(found: Comparison) -> Iterator[str]:
    if found.overall is not None:
        cases = count(len(found.changes), "case")
        yield f"Geometric mean of new / old over {cases}: {found.overall:.3f}."
    for why, number in found.unjudged.items():
        yield f"Descriptive only, without verdicts: {count(number, 'case')}: {why}."
    if found.unjudged:
        yield "Without a verdict a ratio is that of two hours of the machine as much as that of two versions."
    if len(found.changes) > found.unjudged.total():
        yield "Verdicts: Welch's 95 % interval on logarithms, over the runs of each side, which were measured by turns."
    if any(change.beside for change in found.changes):
        yield f"{BESIDE}: the ratio to another column of the same run, new over old. The two shared the machine's hour."
    if any(change.source_changed for change in found.changes):
        yield "⚠: the scenario's source has changed."


def side_by_side(summaries: Sequence[tuple[str, Summary]]) -> Section:
    """Return the training step of several machines, or sets of results, as columns of one table; descriptive only.

    Each has a name of its own.
    """
    columns, rows = abreast(summaries)
    body = []
    for row in rows:
        times = [_abreast(row.cases.get(column), column in row.firsts, row.ratios.get(column)) for column in columns]
        winner = Cell(_machine_column(row.fastest) if row.fastest else NOTHING)
        body.append([Cell(row.label), winner, *times])
    headers = ["scenario", "fastest measured", *(_machine_column(column) for column in columns)]
    notes = [
        "Bold: the fastest measured in each set of results. ×: the time over that of the fastest of all.",
        "These ratios are descriptive: machines and days differ in too many ways for a verdict.",
    ]
    return Section("Training step, side by side", table=Table(headers, body), notes=notes)


def _machine_column(column: MachineColumn) -> str:
    return f"{column[0]}: {column_name(column[1])}"


def _abreast(found: Estimate | Failure | None, first: bool, ratio: float | None) -> Cell:
    if found is None:
        return EMPTY
    if isinstance(found, Failure):
        return Cell(found.code, failed=True)
    text = estimated(found, UNIT).text
    over = f", {significant(ratio)}×" if ratio is not None and ratio != 1 else ""
    return Cell(f"{text}{over}", found.value, strong=first)


def _row(change: Change) -> list[Cell]:
    verdict = NOTHING if change.verdict is None else str(change.verdict)
    return [
        Cell(case_name(change.case), warned=change.source_changed),
        estimated(change.old, UNIT),
        estimated(change.new, UNIT),
        estimated(change.ratio),
        _beside(change.beside),
        Cell(verdict, strong=change.verdict in DECIDED),
    ]


def _beside(found: Beside | None) -> Cell:
    return EMPTY if found is None else Cell(f"{significant(found.ratio)} ({column_name(found.column)})", found.ratio)


def _lists(found: Comparison) -> Iterator[str]:
    for title, cells in (("New", found.added), ("No longer measured", found.vanished)):
        if cells:
            yield f"{title}: {', '.join(case_name(cell) for cell in cells)}."
    for cell, failure in found.failed:
        yield f"Measured before, failing now: {case_name(cell)}: {failure.code}: {failure.cause}"


DECIDED = (Verdict.FASTER, Verdict.SLOWER)
OTHERS = (FIRST_STEP, ONE, THROUGHPUT, MEMORY, DEVICE_MEMORY)
MANY = 12  # figures: more are too many for a terminal
FIGURE = "figure"
AMOUNTS = {Verdict.SLOWER: "more", Verdict.FASTER: "less"}  # of memory, which is neither slow nor fast
SAYING = {
    HEADLINE: "a training step takes {} as long",
    FIRST_STEP: "the first step takes {} as long",
    ONE: "predicting one sample takes {} as long",
    THROUGHPUT: "predict does {} as many samples a second",
    MEMORY: "the process takes {} the memory",
    DEVICE_MEMORY: "the device holds {} as much",
}


COLUMNS = (
    "scenario", "workload", "backend", "device", "options", "figure", "unit", "base", "head", "ratio", "low", "high",
    "verdict",
)  # fmt: skip


def rows(found: Versus) -> Iterator[list[str | float | None]]:
    """Yield each figure of base and head as data, in the order of COLUMNS."""
    for one in found.differences:
        row, metric = one.pair.row, BY_NAME[one.metric]
        column = one.pair.base.paired
        cell = [row.scenario.name, row.workload.name, column.backend, column.device, column.options.label]
        figures = [one.base.value, one.head.value, one.ratio.value, one.ratio.low, one.ratio.high]
        yield [*cell, metric.name, metric.unit, *figures, str(one.verdict)]


def versions(found: Findings, briefly: bool = False) -> Section | None:
    """Return the answer and the training step, and as a part what else differs.

    ``briefly``: of many figures only those that differ significantly.
    """
    sections = [_versions(one, found.summary, briefly) for one in found.versus]
    if not sections:
        return None
    first, *others = sections
    return dataclasses.replace(first, parts=[*first.parts, *others])


def _versions(found: Versus, summary: Summary, briefly: bool) -> Section:
    steps = _table(found.of(HEADLINE), found)
    others = _others(found, summary, briefly)
    return Section(
        f"{found.head} against {found.base}",
        [blanked(_overall(found))],
        table=steps,
        lines=[blanked(one) for one in _details(found)],
        notes=list(_notes(found)) if steps else [],
        parts=[others] if others else [],
    )


def versions_in_brief(found: Findings) -> Section | None:
    return versions(found, briefly=True)


def sentences(found: Versus) -> list[str]:
    """Return one sentence for all, then one for each figure that is worse or cannot be had."""
    return [blanked(one) for one in (_overall(found), *_details(found))]


def _details(found: Versus) -> list[str]:
    return [*worse(found), *_itself(found), *_not_compared(found)]


def worse(found: Versus) -> list[str]:
    """Return a sentence for each figure of the head that is worse, and for each cell that it has no figure of."""
    said = [f"{_where(one.pair)}: {SAYING[one.metric].format(times(one.ratio))}." for one in found.regressions]
    return [*said, *(f"{_where(pair)}: {_broken(found, failure)}" for pair, failure in found.broken)]


def _overall(found: Versus) -> str:
    steps = found.of(HEADLINE)
    if not steps:
        return "No training step was measured with both versions."
    counted = Counter(one.verdict for one in steps)
    parts = [
        f"{said} in {counted[verdict]}"
        for verdict, said in (
            (Verdict.SLOWER, "slower"),
            (Verdict.FASTER, "faster"),
            (Verdict.SAME, "the same"),
            (Verdict.INCONCLUSIVE, "undecided"),
        )
        if counted[verdict]
    ]
    mean = _mean(found) if len(steps) > 1 else ""
    return f"Training step of {found.head} against {found.base}, {count(len(steps), 'row')}: {', '.join(parts)}{mean}."


def _mean(found: Versus) -> str:
    """Return what all ratios are on average, and those of each backend where there are several."""
    each = ", ".join(f"{name} {mean:.3f}" for name, mean in found.means.items())
    return f"; geometric mean of the ratios {found.overall:.3f}{f' ({each})' if len(found.means) > 1 else ''}"


def _where(pair: Pair) -> str:
    return f"{pair.row.label} {pair.name}"


def _itself(found: Versus) -> Iterator[str]:
    """Say where the base differs from itself, so that nothing can be said of the head."""
    for one in found.of(HEADLINE):
        if one.withheld and one.control is not None:
            ratio = with_interval(one.control.ratio)
            yield f"{_where(one.pair)}: no verdict, {found.base} differs from itself: {ratio}."


def _broken(found: Versus, failure: Failure) -> str:
    """Say why the head has no figure where the base has one."""
    if failure.code is Code.PARITY:
        return f"{found.head} computes something else than {found.base}: {failure.cause}."
    return f"{found.head} fails, {found.base} does not: {failure.code}: {failure.cause}."


def _not_compared(found: Versus) -> Iterator[str]:
    """Say where the base has no figure, so that there is nothing to compare the head with."""
    for pair in found.pairs:
        failure = pair.failure(pair.base)
        if failure is not None:
            yield f"{_where(pair)}: not compared, {found.base} has no figure: {failure.code}: {failure.cause}."


def _notes(found: Versus) -> Iterator[str]:
    steps = found.of(HEADLINE)
    yield (
        f"head / base: the time with {AT}{found.head} over that with {AT}{found.base}, "
        f"{paired([one.pair.row for one in steps])}, with its 95 % interval."
    )
    least = f"{100 * found.effect:.3g} %"
    many = f" ({len(steps)} verdicts corrected by Holm's method)" if len(steps) > 1 else ""
    yield (f"Slower or faster: significantly, by more than {least}. Same: significantly within {least}{many}.")
    yield (
        f"base / base: {AT}{found.base} was measured twice in every block. The ratio should be 1; smaller differences "
        f"than its interval cannot be distinguished. If it lies wholly outside ±{CONTROL_BOUND:.0%}, there is no "
        "verdict."
    )
    if any(one.ratio.trials < MIN_TRIALS_FOR_INTERVAL for one in steps):
        yield "Fewer than three rounds: intervals come from each round's slices, widened by what base / base shows."


def _others(found: Versus, summary: Summary, briefly: bool) -> Section | None:
    every = [one for metric in OTHERS for one in found.of(metric)]
    shown = [one for one in every if one.verdict in DECIDED] if briefly and len(every) > MANY else every
    table = _table(shown, found, [FIGURE])
    left = len(every) - len(shown)
    if table is None and not left:
        return None
    notes = [
        *([f"Not shown: {count(left, 'figure')} without a significant difference. The page has them."] if left else []),
        *first_step(summary),
        "Verdicts on each kind of figure are corrected together. A first step and memory have no slices: they need "
        "three rounds.",
    ]
    return Section("First step, prediction and memory", table=table, notes=notes, folded=True)


def _table(shown: Sequence[Difference], found: Versus, named: Sequence[str] = ()) -> Table | None:
    """Return a table of figures; ``named`` is the column of their names, where they are of several kinds."""
    rows = [
        [
            *texts(one.pair.row.label, one.pair.name, *(BY_NAME[one.metric].title for _ in named)),
            estimated(one.base, BY_NAME[one.metric].unit),
            estimated(one.head, BY_NAME[one.metric].unit),
            estimated(one.ratio),
            EMPTY if one.control is None else estimated(one.control.ratio),
            _verdict(one),
        ]
        for one in shown
    ]
    if not rows:
        return None
    labels = [f"{AT}{label}" for label in (found.base, found.head)]
    return Table(["scenario", "column", *named, *labels, "head / base", "base / base", "verdict"], rows)


def _verdict(one: Difference) -> Cell:
    if one.withheld:
        return Cell(NOTHING)
    words = AMOUNTS if one.metric in (MEMORY, DEVICE_MEMORY) else {}
    return Cell(words.get(one.verdict, str(one.verdict)), strong=one.verdict in DECIDED)
