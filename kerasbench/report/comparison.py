"""Two or more sets of results as a page."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.cells import HEADLINE
from kerasbench.analysis.changes import Beside, Change, Comparison, cell_label
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.machines import MachineColumn, abreast
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.verdicts import Verdict
from kerasbench.exchange.messages import Failure
from kerasbench.report.cells import column_name, estimated
from kerasbench.report.number import significant
from kerasbench.report.sections import EMPTY, NOTHING, Cell, Page, Section, Table
from kerasbench.text import count

UNIT = BY_NAME[HEADLINE].unit
BESIDE = "beside"
DECIDED = (Verdict.FASTER, Verdict.SLOWER)


def changes(found: Comparison, old: str, new: str) -> Page:
    """Return what became of every cell between two sets of results."""
    title = "Training step, new against old"
    if not found.changes:
        return Page("", [Section(title, ["No cell was measured on both sides."], lines=list(_lists(found)))])
    table = Table(["cell", old, new, "new / old", BESIDE, "verdict"], [_row(change) for change in found.changes])
    return Page("", [Section(title, table=table, lines=list(_lists(found)), notes=list(_notes(found)))])


def _notes(found: Comparison) -> Iterator[str]:
    if found.overall is not None:
        cells = count(len(found.changes), "cell")
        yield f"Geometric mean of new / old over {cells}: {found.overall:.3f}."
    for why, number in found.unjudged.items():
        yield f"Descriptive only, without verdicts: {count(number, 'cell')}: {why}."
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
        times = [_abreast(row.cells.get(column), column in row.firsts, row.ratios.get(column)) for column in columns]
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
        Cell(cell_label(change.cell), warned=change.source_changed),
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
            yield f"{title}: {', '.join(cell_label(cell) for cell in cells)}."
    for cell, failure in found.failed:
        yield f"Measured before, failing now: {cell_label(cell)}: {failure.code}: {failure.cause}"
