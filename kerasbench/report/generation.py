"""How fast models write texts: the table of new tokens, and who wrote something else than the others."""

import dataclasses
from collections.abc import Iterator

from kerasbench.analysis.cases import Row
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.generation import Divergence, Tokens, Writer, divergences, written
from kerasbench.analysis.metrics import BY_NAME, RATE, WRITES
from kerasbench.protocol.columns import Column
from kerasbench.report.figures import value
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.text import count

NO_LINE = 10  # % of what the line rises by; of times that grow with each token it is about 17
FIGURES = ("ttft_ms", "tpot_ms", "tokens_per_s", RESIDUAL := "residual")
NOTES = (
    "t(k): the time until each text of the batch has k new tokens. TTFT (time to first token) = t(1). TPOT (time per "
    "output token) = the slope of t(k) by least squares.",
    "tokens/s = batch / TPOT. Residual: the largest distance of a t(k) from that line, as a share of its rise.",
    f"⚠: a residual above {NO_LINE} %. Those times are no line, and TPOT is only its average slope.",
)
BY_CALLS = (
    "model(x): a call on the whole text for each token, without a cache. The likeliest word goes to its end, and the "
    "first one drops out. A token counts once the host knows it."
)
BY_ITS_OWN = "generate: the scenario's own function, called anew for some numbers of new tokens from one on."


def new_tokens(found: Findings) -> Section | None:
    rows = [row for row in found.plain.rows if _wrote(row)]
    if not rows:
        return None
    columns = found.plain.columns
    lines = [line for row in rows for line in _lines(row, columns)]
    wrote = {way for row in rows for _, way in _wrote(row)}
    ways = ([BY_ITS_OWN] if "own" in wrote else []) + ([BY_CALLS] if wrote - {"own"} else [])
    table = Table(["scenario", "figure", *(column.label for column in columns)], lines)
    said = [f"{row.label}: {sentence}" for row in rows for sentence in _compared(_wrote(row))]
    return Section("New tokens", table=table, lines=said, notes=[*NOTES, *ways])


def _wrote(row: Row) -> dict[Writer, Tokens]:
    trials = {column: [found for _, found in case.trials] for column, case in row.cases.items() if not case.failure}
    return written(trials)


def _lines(row: Row, columns: list[Column]) -> Iterator[list[Cell]]:
    for way in WRITES:
        for figure in FIGURES:
            metric = BY_NAME[f"generate_{way}_{figure}"]
            values = [value(row, column, metric.name) for column in columns]
            if figure == RESIDUAL:
                values = [dataclasses.replace(cell, warned=(cell.value or 0.0) > NO_LINE) for cell in values]
            if any(cell != EMPTY for cell in values):
                unit = metric.unit if metric.unit == RATE else f" ({metric.unit})"
                yield [*texts(row.label, metric.title + unit), *values]


def _compared(wrote: dict[Writer, Tokens]) -> list[str]:
    """Say whether all wrote the same, or where each of the others first differs."""
    some = next(iter(wrote.values()))
    size = f"{count(len(some[0]), 'new token')} of {count(len(some), 'text')}"
    apart = divergences(wrote)
    if not apart:
        return [f"all wrote the same {size}."] if len(wrote) > 1 else []
    return [f"{_diverges(one)}." for one in apart]


def _diverges(one: Divergence) -> str:
    ours, theirs = (f"{column.label} by {WRITES[way]}" for column, way in (one.writer, one.reference))
    return f"{ours} differs from {theirs}, first at token {one.token} of text {one.text}"
