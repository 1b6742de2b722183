"""Two or more sets of results, as markdown."""

from collections.abc import Sequence

from tabulate import tabulate

from kerasbench.analysis.cells import HEADLINE
from kerasbench.analysis.changes import Change, Comparison, cell_label
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.verdicts import Verdict
from kerasbench.report.markdown import NOTHING, escape
from kerasbench.report.number import with_interval
from kerasbench.results.keys import Column
from kerasbench.text import count

UNIT = BY_NAME[HEADLINE].unit
WORDS = {Verdict.FASTER: "**faster**", Verdict.SLOWER: "**slower**"}


def changes(found: Comparison, old: str, new: str) -> str:
    """Return what became of every cell between two sets of results."""
    parts = ["## Training step, new against old"]
    if not found.changes:
        return "\n\n".join([*parts, "No cell was measured on both sides.", *_lists(found)]) + "\n"
    parts.append(_table(["cell", old, new, "new / old", "verdict"], found))
    if found.overall is not None:
        cells = count(len(found.changes), "cell")
        parts.append(f"Geometric mean of new / old over {cells}: {found.overall:.3f}.")
    if found.incomparable:
        parts.append(f"{found.incomparable}: there descriptive only, without verdicts.")
    if not found.incomparable or any(change.verdict for change in found.changes):
        parts.append("new / old with Welch's 95 % interval on logarithms; a verdict needs three trials on both sides.")
    if any(change.source_changed for change in found.changes):
        parts.append("†: the scenario's source has changed.")
    parts += _lists(found)
    return "\n\n".join(parts) + "\n"


def side_by_side(summaries: Sequence[tuple[str, Summary]]) -> str:
    """Return the training step of several machines as columns of one table; descriptive only."""
    columns = [(name, summary, column) for name, summary in summaries for column in summary.columns]
    labels = list(dict.fromkeys(row.label for _, summary in summaries for row in summary.rows))
    rows = [[escape(label), *(_step(summary, label, column) for _, summary, column in columns)] for label in labels]
    headers = ["scenario", *(escape(" ".join([name, *filter(None, column)])) for name, _, column in columns)]
    table = tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    return f"## Training step\n\n{table}\n\nDifferent machines side by side: descriptive only, without verdicts.\n"


def _step(summary: Summary, label: str, column: Column) -> str:
    row = next((row for row in summary.rows if row.label == label), None)
    cell = row.cells.get(column) if row else None
    if row is None or cell is None:
        return NOTHING
    found = cell.estimate(row.headline)
    if found is not None:
        return with_interval(found, UNIT)
    return f"*{cell.failure.code}*" if cell.failure else NOTHING


def _table(headers: list[str], found: Comparison) -> str:
    rows = [_row(change) for change in found.changes]
    return tabulate(rows, [escape(header) for header in headers], tablefmt="github", disable_numparse=True)


def _row(change: Change) -> list[str]:
    verdict = NOTHING if change.verdict is None else WORDS.get(change.verdict, str(change.verdict))
    return [
        escape(cell_label(change.cell)) + (" †" if change.source_changed else ""),
        with_interval(change.old, UNIT),
        with_interval(change.new, UNIT),
        with_interval(change.ratio),
        verdict,
    ]


def _lists(found: Comparison) -> list[str]:
    named = (("New", found.added), ("No longer measured", found.vanished))
    lists = [f"{title}: {', '.join(escape(cell_label(cell)) for cell in cells)}." for title, cells in named if cells]
    lost = [f"- {escape(cell_label(cell))}: {failure.code}: {escape(failure.cause)}" for cell, failure in found.failed]
    return [*lists, *(["Measured before, failing now:\n\n" + "\n".join(lost)] if lost else [])]
