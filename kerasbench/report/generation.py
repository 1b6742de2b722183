"""How fast models generate tokens: the table of new tokens, and which configuration generates others."""

from collections.abc import Iterator

from kerasbench.analysis.generation import Tokens, Writer, divergences, written
from kerasbench.analysis.metrics import BY_NAME, RATE, WRITES
from kerasbench.analysis.names import name_of
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.report.details import value
from kerasbench.report.sections import EMPTY, Cell, Section, Table, Words, texts
from kerasbench.report.words import names
from kerasbench.text import count

NO_LINE = 10  # % of what the line rises by; of times that grow with each token it is about 17
METRICS = ("ttft_ms", "tpot_ms", "tokens_per_s", RESIDUAL := "residual")
NOTE = (
    "TTFT: time to the first token. TPOT: time per output token after it, as the slope of a line. Residual: the "
    f"largest distance from that line, as a share of its rise; above {NO_LINE} % (⚠) TPOT is only an average."
)
BY_CALLS = "model(x): a call on the whole sequence for each token, without a cache; the next token is chosen greedily."
BY_ITS_OWN = "generate: the scenario's own function."


def new_tokens(summary: Summary) -> Section | None:
    ways, rows, lines = set[str](), list[list[Cell]](), list[Words]()
    for row in summary.plain.rows:
        cases = {column: case for column, case in row.cases.items() if not case.failure}
        tokens = written({column: [measurement for _, measurement in case.trials] for column, case in cases.items()})
        if tokens:
            ways |= {way for _, way in tokens}
            rows += _rows(row, summary.plain.columns)
            lines += [f"{row.label}: {sentence}" for sentence in _compared(tokens)]
    notes: list[Words] = [NOTE, *([BY_ITS_OWN] if "own" in ways else []), *([BY_CALLS] if ways - {"own"} else [])]
    table = Table(["workload", "metric", *names(summary.plain.columns).values()], rows)
    return Section("How fast are tokens generated?", table=table, lines=lines, notes=notes) if ways else None


def _rows(row: Row, columns: list[Column]) -> Iterator[list[Cell]]:
    for metric in (BY_NAME[f"generate_{way}_{name}"] for way in WRITES for name in METRICS):
        cells = [value(row, column, metric.name) for column in columns]
        if metric.name.endswith(RESIDUAL):
            cells = [cell._replace(text=f"{cell.text} ⚠") if (cell.value or 0) > NO_LINE else cell for cell in cells]
        if any(cell != EMPTY for cell in cells):
            unit = metric.unit if metric.unit == RATE else f" ({metric.unit})"
            yield [*texts(row.label, metric.title + unit), *cells]


def _compared(wrote: dict[Writer, Tokens]) -> list[str]:
    tokens = next(iter(wrote.values()))
    size = f"{count(len(tokens[0]), 'new token')} of {count(len(tokens), 'sequence')}"
    apart = []
    for writer, reference, token, text in divergences(wrote):
        ours, theirs = (f"{name_of(column)} by {WRITES[way]}" for column, way in (writer, reference))
        apart.append(f"{ours} differs from {theirs}, first at token {token} of sequence {text}.")
    return apart or ([f"all generated the same {size}."] if len(wrote) > 1 else [])
