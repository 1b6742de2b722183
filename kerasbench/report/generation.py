"""How fast models generate tokens: the table of new tokens, and which configuration generates others."""

from collections.abc import Iterator

from kerasbench.analysis.cases import Row
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.generation import Tokens, Writer, divergences, written
from kerasbench.analysis.metrics import BY_NAME, RATE, WRITES
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


def new_tokens(findings: Findings) -> Section | None:
    wrote = [(row, tokens) for row in findings.plain.rows if (tokens := _wrote(row))]
    ways = {way for _, tokens in wrote for _, way in tokens}
    notes: list[Words] = [NOTE, *([BY_ITS_OWN] if "own" in ways else []), *([BY_CALLS] if ways - {"own"} else [])]
    lines = [line for row, _ in wrote for line in _lines(row, findings.plain.columns)]
    table = Table(["workload", "metric", *names(findings.plain.columns).values()], lines)
    compared = [f"{row.label}: {sentence}" for row, tokens in wrote for sentence in _compared(tokens)]
    return Section("How fast are tokens generated?", table=table, lines=compared, notes=notes) if wrote else None


def _wrote(row: Row) -> dict[Writer, Tokens]:
    cases = {column: case for column, case in row.cases.items() if not case.failure}
    return written({column: [measurement for _, measurement in case.trials] for column, case in cases.items()})


def _lines(row: Row, columns: list[Column]) -> Iterator[list[Cell]]:
    for way in WRITES:
        for name in METRICS:
            metric = BY_NAME[f"generate_{way}_{name}"]
            cells = [value(row, column, metric.name) for column in columns]
            for index, cell in enumerate(cells if name == RESIDUAL else ()):
                if cell.value is not None and cell.value > NO_LINE:
                    cells[index] = Cell(f"{cell.text} ⚠", cell.value)
            if any(cell != EMPTY for cell in cells):
                unit = metric.unit if metric.unit == RATE else f" ({metric.unit})"
                yield [*texts(row.label, metric.title + unit), *cells]


def _compared(wrote: dict[Writer, Tokens]) -> list[str]:
    tokens = next(iter(wrote.values()))
    size = f"{count(len(tokens[0]), 'new token')} of {count(len(tokens), 'sequence')}"
    apart = []
    for writer, reference, token, text in divergences(wrote):
        ours, theirs = (f"{column.label} by {WRITES[way]}" for column, way in (writer, reference))
        apart.append(f"{ours} differs from {theirs}, first at token {token} of sequence {text}.")
    return apart or ([f"all generated the same {size}."] if len(wrote) > 1 else [])
