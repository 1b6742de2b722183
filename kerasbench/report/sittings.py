"""Sittings of a run that was continued later: the ratios that each of them found."""

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.sittings import Sittings, sittings
from kerasbench.report.cells import column_name
from kerasbench.report.number import times
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.results.record import Record


def each_sitting(found: Findings) -> Section | None:
    """Return the ratios of each sitting, and by how much two of them differ; nothing for a run that had one."""
    summary = found.summary
    pairs = zip(summary.rows, summary.standings, strict=True)
    lines = [one for row, standing in pairs for one in sittings(row, standing)]
    if not lines:
        return None
    numbers = sorted({number for one in lines for number in one.ratios})
    headers = ["scenario", "column", "against", *(f"sitting {number}" for number in numbers), "apart"]
    notes = [
        "The run went on after more than an hour, or after the machine had been started again. The time over that of "
        "the fastest, in each sitting.",
        *(f"Sitting {number}: {_when(found.record, number)}." for number in numbers),
        "With three sittings or more the intervals of all tables are over sittings. With two they are over rounds, and "
        "know little of what two days differ by.",
    ]
    return Section("Sittings", table=Table(headers, [_line(one, numbers) for one in lines]), notes=notes)


def _line(one: Sittings, numbers: list[int]) -> list[Cell]:
    ratios = [one.ratios.get(number) for number in numbers]
    apart = EMPTY if one.apart is None else Cell(f"{one.apart.value - 1:.0%}", one.apart.value - 1, warned=one.differ)
    return [
        *texts(one.row.label, column_name(one.column), column_name(one.fastest)),
        *(EMPTY if ratio is None else Cell(times(ratio), ratio.value) for ratio in ratios),
        apart,
    ]


def _when(record: Record, sitting: int) -> str:
    ended = sorted(trial.ended for trial in record.trials if trial.sitting == sitting and trial.measurement)
    return f"its rounds ended from {ended[0]} to {ended[-1]}"
