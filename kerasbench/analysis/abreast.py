"""Several machines in one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kerasbench import variants
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.ratios import RowRatios
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import Failure

MachineColumn = tuple[str, Column]  # the machine's name, and one of its columns


@dataclass(frozen=True)
class MachineRow:
    label: str
    cases: Mapping[MachineColumn, Estimate | Failure]
    firsts: frozenset[MachineColumn]  # the fastest column of each machine
    fastest: MachineColumn | None  # of all
    ratios: Mapping[MachineColumn, float]  # to that; native baselines have one, but are never the fastest


def abreast(summaries: Sequence[tuple[str, Summary]]) -> tuple[list[MachineColumn], list[MachineRow]]:
    """Return the columns of all machines, and a row for each workload and size that one of them measured."""
    columns = [(name, column) for name, summary in summaries for column in summary.columns]
    labels = dict.fromkeys(row.label for _, summary in summaries for row in summary.rows)
    return columns, [_row(label, summaries) for label in labels]


def light(summary: Summary) -> Summary:
    """Return a summary that ``abreast`` can use, without the trials: those of a hundred machines do not fit."""
    rows = []
    for row in summary.rows:
        cases = {}
        for column, case in row.cases.items():
            case.estimate(row.headline)  # it remembers that
            cases[column] = replace(case, trials=[], was_ranked=case.is_ranked)
        rows.append(replace(row, cases=cases, ratios=RowRatios(cases)))
    return replace(summary, record=replace(summary.record, trials=[]), rows=rows, rankings=[])


def _row(label: str, summaries: Sequence[tuple[str, Summary]]) -> MachineRow:
    cases: dict[MachineColumn, Estimate | Failure] = {}
    firsts: set[MachineColumn] = set()
    times: dict[MachineColumn, float] = {}
    for name, summary in summaries:
        of_machine: dict[MachineColumn, float] = {}
        rows = [row for row in summary.rows if row.label == label]
        for row, column in ((row, column) for row in rows for column in summary.columns if column in row.cases):
            case, estimate = row.cases[column], row.cases[column].estimate(row.headline)
            if outcome := estimate or case.failure:
                cases[name, column] = outcome
            if estimate is not None and case.is_ranked:
                of_machine[name, column] = estimate.value
        firsts.update(filter(None, [_fastest(of_machine)]))
        times |= of_machine
    fastest = _fastest(times)
    ratios = {column: value / times[fastest] for column, value in times.items()} if fastest else {}
    return MachineRow(label, cases, frozenset(firsts), fastest, ratios)


def _fastest(times: Mapping[MachineColumn, float]) -> MachineColumn | None:
    return min((place for place in times if variants.competes(place[1])), key=times.__getitem__, default=None)
