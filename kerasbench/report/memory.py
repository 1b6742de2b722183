"""Memory by phase: what each configuration holds after it, and the most that it held in it."""

from kerasbench.analysis.metrics import MEMORY_PHASES
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.protocol.stages import TRAIN
from kerasbench.report.kinds import ordered
from kerasbench.report.sections import EMPTY, Cell, Section, Table, Words
from kerasbench.report.words import names, span

PROCESS = "rss"
KINDS = {PROCESS: "", "device": " on the device"}
TITLED = ("build", TRAIN)  # of which the heading has the span


def by_phase(summary: Summary) -> Section | None:
    columns = summary.plain.columns
    rows, held_mib = list[list[Cell]](), dict[str, list[float]]()
    for row, _ in ordered(summary.plain):
        for phase, title in MEMORY_PHASES.items():
            for kind, where in KINDS.items():
                cells = [_cell(row, column, kind, phase) for column in columns]
                values = [cell.value for cell in cells if cell.value is not None]
                if values:
                    rows.append([Cell(row.label), Cell(f"{title}{where}"), *cells])
                if kind == PROCESS:
                    held_mib.setdefault(phase, []).extend(values)
    if not rows:
        return None
    spans = [
        f"{span(held_mib[phase], '{:,.0f}'.format, 'MiB')} after {MEMORY_PHASES[phase]}"
        for phase in TITLED
        if held_mib.get(phase)
    ]
    notes: list[Words] = ["MiB held at the end of each phase; in brackets the most in it, where the system tells."]
    table = Table(["workload", "phase", *names(columns).values()], rows)
    title = ": ".join(filter(None, ["Memory by phase", ", ".join(spans)]))
    return Section(title, table=table, notes=notes, folded=True)


def _cell(row: Row, column: Column, kind: str, phase: str) -> Cell:
    case = row.cases.get(column)
    held, most = (case.estimate(f"{kind}_{what}_{phase}_mib") if case else None for what in ("held", "most"))
    if held is None:
        return EMPTY
    return Cell(f"{held.value:,.0f} ({most.value:,.0f})" if most else f"{held.value:,.0f}", held.value)
