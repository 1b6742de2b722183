"""What Python shows: the answer in a few lines, and in a notebook also a table, with the details folded."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from kerasbench.analysis.anatomy import Anatomy
from kerasbench.analysis.changes import Comparison, cell_label
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.verdicts import Verdict
from kerasbench.report import answer, explanation, html, versus
from kerasbench.report.cells import column_name
from kerasbench.report.sections import Page, Section
from kerasbench.text import blanked, count

LINES = 15  # more would push what was before them off the screen
NOTHING = "Nothing was measured."


def of_results(found: Findings) -> list[str]:
    """Return a sentence for each row; where there are many, first one for all of them."""
    if found.is_versus:
        return [line for one in found.versus for line in versus.sentences(one)]
    rows = len(found.plain.rows)
    return [*([answer.overall(found)] if rows > 1 else []), *answer.sentences(found)]


def of_explanation(found: Sequence[Anatomy]) -> list[str]:
    """Return for each cell how long an epoch takes, and what would help."""
    return [_explained(one) for one in found]


def _explained(one: Anatomy) -> str:
    first, *others = explanation.sentences(one)
    advice = others[-max(1, len(one.advice)) :]  # the last ones: advice, or that there is none
    return blanked(" ".join([f"{one.row.label}, {column_name(one.column)}:", first, *advice]))


def of_comparison(found: Comparison) -> list[str]:
    """Return how many cells became faster or slower, and which became slower or fail now."""
    counts = Counter(one.verdict for one in found.changes)
    faster, slower = counts[Verdict.FASTER], counts[Verdict.SLOWER]
    shared = f"{count(len(found.changes), 'cell')} measured on both sides"
    judged = len(found.changes) - found.unjudged.total()
    lines = [f"{shared}, {judged} judged: {slower} slower, {faster} faster, {judged - slower - faster} neither."]
    lines += [f"Not judged: {count(cells, 'cell')}: {why}." for why, cells in found.unjudged.items()]
    slow = [one for one in found.changes if one.verdict is Verdict.SLOWER]
    lines += [f"{cell_label(one.cell)} takes {one.ratio.value:.2f} times as long as before." for one in slow]
    lines += [f"{cell_label(cell)} fails now: {failure.cause}" for cell, failure in found.failed]
    return [blanked(line) for line in lines]


def text(lines: Sequence[str]) -> str:
    """Return what ``repr`` shows: the first lines, and how to see all."""
    if len(lines) <= LINES:
        return "\n".join(lines) or NOTHING
    return "\n".join([*lines[: LINES - 1], f"... and {len(lines) - LINES + 1} more: print() shows all."])


def notebook(page: Page, answers: Sequence[str] = ()) -> str:
    """Return a page as HTML: answers, where the page has none itself, what follows up to a table, the rest folded."""
    sections = [*([Section("Answer", lines=answers)] if answers else []), *page.sections]
    tables = [index for index, one in enumerate(sections) if one.table is not None]
    shown = tables[0] + 1 if tables else 1
    folded = [dataclasses.replace(one, folded=True) for one in sections[shown:]]
    return html.rendered(Page("", [*sections[:shown], *folded]))
