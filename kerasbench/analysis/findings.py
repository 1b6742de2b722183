"""What follows from a run beyond its summary, and several machines in one table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Self, TypeVar

from kerasbench import variants
from kerasbench.analysis.cases import Measured
from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.rankings import beside, speed_ups
from kerasbench.analysis.ratios import RowRatios
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.warnings import CaseWarning, concerns
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.results.run import Run, RunConfig
from kerasbench.settings import RUN

T = TypeVar("T")
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


@dataclass(frozen=True)
class Findings:
    """A summary with what follows from it, computed when it is first asked for."""

    summary: Summary
    cache: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)  # see ``derived``

    @classmethod
    def of(cls, run: Run, cases: Mapping[CaseKey, Measured] | None = None) -> Self:
        return cls(summarize(run, cases))

    @cached_property
    def plain(self) -> Summary:
        return self.summary.only(is_sized=False)

    @cached_property
    def sized(self) -> Summary:
        return self.summary.only(is_sized=True)

    @cached_property
    def concerns(self) -> list[CaseWarning]:
        return concerns(self.summary)

    @cached_property
    def mode(self) -> str:
        """In which all of its rows were measured; ``run`` where they are of several."""
        modes = {config.mode for config in self._configs}
        return modes.pop() if len(modes) == 1 else RUN

    @cached_property
    def is_ranked(self) -> bool:
        """Whether it says who is fastest on some of its rows, column against column."""
        return any(config.ranks for config in self._configs)

    @property
    def _configs(self) -> list[RunConfig]:
        return [row.origin.config for row in self.summary.rows] or [self.record.config]

    @cached_property
    def speed_ups(self) -> list[Contrast]:
        return speed_ups(self.plain.rows, self.effect)

    @cached_property
    def besides(self) -> dict[str, list[Contrast]]:
        """By the name of a variant, the cases with it beside the same without."""
        return {
            variant.name: beside(variant, self.plain.rows, self.effect) for variant in variants.ALL if variant.beside
        }

    @property
    def record(self) -> Run:
        return self.summary.record

    @property
    def effect(self) -> float:
        return self.record.minimal_effect


def derived(compute: Callable[[Findings], T]) -> Callable[[Findings], T]:
    """Have what a mode works out of findings computed when it is first asked for, and kept with them."""

    @wraps(compute)
    def derive(findings: Findings) -> T:
        if compute not in findings.cache:
            findings.cache[compute] = compute(findings)
        result: T = findings.cache[compute]
        return result

    return derive
