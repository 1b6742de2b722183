"""What follows from a run beyond its summary; several machines in one table; and what others have published."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec

from kerasbench.analysis import race
from kerasbench.analysis.breakdown import StepBreakdown, breakdowns
from kerasbench.analysis.cases import Measured
from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.rankings import of_keras, of_warm_cache, speed_ups
from kerasbench.analysis.series import SizeSeries, swept
from kerasbench.analysis.soak import Soak, soaks_of
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.versus import Versus, versus
from kerasbench.analysis.warnings import Concern, concerns
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.results.run import Run

PACKAGE_FOLDER = Path(__file__).parents[1]
MS_PER_S = 1000
OTHER_FIGURES = (
    ("predict in s, CPU / GPU:", "predict_s"),
    ("accuracy", "accuracy"),
    ("validation accuracy", "val_accuracy"),
    ("test accuracy", "test_accuracy"),
)


@dataclass(frozen=True)
class Side:
    """One device's figures, each as it was published: ``[low, high]`` where the author gave a range."""

    total_s: tuple[float, float] | None = None
    epochs: int | None = None
    epoch_s: tuple[float, float] | None = None
    step_ms: tuple[float, float] | None = None
    predict_s: float | None = None
    accuracy: float | None = None
    val_accuracy: float | None = None
    test_accuracy: float | None = None
    flag: str = ""  # why a figure must not be believed

    def ms_per_step(self, steps_per_epoch: int) -> tuple[float, float] | None:
        """Return the time of a step, in ms, from the most exact figure that was published: total, epoch, step."""
        if self.total_s is not None and self.epochs is not None:
            return _times(self.total_s, MS_PER_S / self.epochs / steps_per_epoch)
        if self.epoch_s is not None:
            return _times(self.epoch_s, MS_PER_S / steps_per_epoch)
        return self.step_ms


@dataclass(frozen=True)
class Figure:
    """What one publication said of one workload on one machine; a side is None where it gave no figure."""

    scenario: str
    workload: str
    hardware: str
    software: str
    source: str
    cpu: Side | None
    gpu: Side | None
    note: str = ""
    batch: int | None = None  # None: the workload's
    precision: str = ""  # empty: float32

    @property
    def sides(self) -> list[tuple[str, Side]]:
        """The devices of which something was published."""
        return [(name, side) for name, side in (("CPU", self.cpu), ("GPU", self.gpu)) if side is not None]

    @property
    def remarks(self) -> list[str]:
        """What else was published: other figures, what must not be believed, notes."""
        others = [f"{what} {' / '.join(found)}" for what, field in OTHER_FIGURES if (found := self._pair(field))]
        flags = [f"the {name} run {side.flag}" for name, side in self.sides if side.flag]
        return [*others, *flags, *([self.note] if self.note else [])]

    def _pair(self, field: str) -> list[str]:
        """Return one figure of the CPU and of the GPU, nothing where neither was published."""
        values = [getattr(side, field) if side else None for side in (self.cpu, self.gpu)]
        if values == [None, None]:
            return []
        return [f"{value:.4g}" if value is not None else "–" for value in values]

    def gpu_over_cpu(self, steps_per_epoch: int) -> float | None:
        """Return the published ratio of GPU to CPU time for a step, of the middles of ranges."""
        cpu = self.cpu.ms_per_step(steps_per_epoch) if self.cpu else None
        gpu = self.gpu.ms_per_step(steps_per_epoch) if self.gpu else None
        return sum(gpu) / sum(cpu) if cpu and gpu else None


def figures() -> dict[tuple[str, str], list[Figure]]:
    """Return all figures by scenario and workload: inside the package in a wheel, in results/ in a checkout."""
    inside = PACKAGE_FOLDER / "published" / "figures.json"
    file = inside if inside.is_file() else PACKAGE_FOLDER.parent / "results" / "published" / "figures.json"
    known: dict[tuple[str, str], list[Figure]] = {}
    for figure in msgspec.json.decode(file.read_bytes(), type=list[Figure]):
        known.setdefault((figure.scenario, figure.workload), []).append(figure)
    return known


def _times(span: tuple[float, float], factor: float) -> tuple[float, float]:
    return span[0] * factor, span[1] * factor


MachineColumn = tuple[str, Column]  # the machine's name, and one of its columns


@dataclass(frozen=True)
class MachineRow:
    """One row over machines: its cases, the fastest column of each machine, and that of all.

    ``ratios`` are times over that of the fastest of all. Native baselines have one, but are never the fastest.
    """

    label: str
    cases: Mapping[MachineColumn, Estimate | Failure]
    firsts: frozenset[MachineColumn]
    fastest: MachineColumn | None
    ratios: Mapping[MachineColumn, float]


def abreast(summaries: Sequence[tuple[str, Summary]]) -> tuple[list[MachineColumn], list[MachineRow]]:
    """Return the columns of all machines, and a row for each workload and size that one of them measured."""
    columns = [(name, column) for name, summary in summaries for column in summary.columns]
    labels = dict.fromkeys(row.label for _, summary in summaries for row in summary.rows)
    return columns, [_row(label, summaries) for label in labels]


def light(summary: Summary) -> Summary:
    """Return a summary that ``abreast`` can use, without the trials: those of a hundred machines do not fit."""
    rows = []
    for row in summary.rows:
        for case in row.cases.values():
            case.estimate(row.headline)  # it remembers that
        cases = {
            column: dataclasses.replace(case, trials=[], was_ranked=case.is_ranked)
            for column, case in row.cases.items()
        }
        rows.append(dataclasses.replace(row, cases=cases, priors=None))
    record = dataclasses.replace(summary.record, trials=[])
    return dataclasses.replace(summary, record=record, rows=rows, rankings=[])


def _row(label: str, summaries: Sequence[tuple[str, Summary]]) -> MachineRow:
    cases: dict[MachineColumn, Estimate | Failure] = {}
    firsts: list[MachineColumn] = []
    times: dict[MachineColumn, float] = {}
    for name, summary in summaries:
        own: dict[MachineColumn, float] = {}
        for row in (row for row in summary.rows if row.label == label):
            for column in (one for one in summary.columns if one in row.cases):
                estimate = row.cases[column].estimate(row.headline)
                known = estimate or row.cases[column].failure
                if known is not None:
                    cases[name, column] = known
                if estimate is not None and row.cases[column].is_ranked:
                    own[name, column] = estimate.value
        first = _fastest(own)
        firsts += [first] if first else []
        times |= own
    fastest = _fastest(times)
    ratios = {column: value / times[fastest] for column, value in times.items()} if fastest else {}
    return MachineRow(label, cases, frozenset(firsts), fastest, ratios)


def _fastest(times: Mapping[MachineColumn, float]) -> MachineColumn | None:
    competing = [(name, column) for name, column in times if column.competes]
    return min(competing, key=lambda place: times[place], default=None)


@dataclass(frozen=True)
class Findings:
    """A summary with what follows from it, computed when it is first asked for.

    ``plain`` is what was measured at its published size, ``sized`` what was at the sizes of a sweep.
    """

    summary: Summary

    @classmethod
    def of(cls, run: Run, known: Mapping[CaseKey, Measured] | None = None) -> Self:
        """``known``: what is summed up already, of a run that goes on."""
        return cls(summarize(run, known))

    @cached_property
    def plain(self) -> Summary:
        return self.summary.plain

    @cached_property
    def sized(self) -> Summary:
        return self.summary.swept

    @cached_property
    def concerns(self) -> list[Concern]:
        """Every warning."""
        return concerns(self.summary)

    @cached_property
    def versus(self) -> list[Versus]:
        """Versions that were compared side by side."""
        return versus(self.summary)

    @property
    def is_versus(self) -> bool:
        """Whether it is of comparisons of versions, and of nothing else."""
        return all([row.origin.config.versus for row in self.summary.rows] or [self.record.config.versus])

    @cached_property
    def races(self) -> list[race.Race]:
        """How each workload's candidates came out, if it is of races and of nothing else: else they are plain rows."""
        rows = self.summary.rows
        raced = [race.race_of(row) for row in rows] if all(row.origin.config.race for row in rows) else []
        return [one for one in raced if one is not None]

    @cached_property
    def soaks(self) -> list[Soak]:
        """What became of each case that went on for minutes, if it is of soaks and of nothing else."""
        rows = self.summary.rows
        are_soaks = all(row.origin.config.soak for row in rows)
        return [one for row in rows for one in soaks_of(row)] if are_soaks else []

    @cached_property
    def sweeps(self) -> list[SizeSeries]:
        """Every workload and axis along which it was measured at several sizes, with who overtakes whom."""
        return swept(self.summary)

    @cached_property
    def speed_ups(self) -> list[Contrast]:
        """GPU against CPU."""
        return speed_ups(self.plain.rows, self.effect)

    @cached_property
    def prices(self) -> list[Contrast]:
        """Keras against its native baselines."""
        return of_keras(self.plain.rows, self.effect)

    @cached_property
    def warm_caches(self) -> list[Contrast]:
        """Columns that found a cache against the same without."""
        return of_warm_cache(self.plain.rows, self.effect)

    @cached_property
    def breakdowns(self) -> list[StepBreakdown]:
        """What the steps of explained cases are made of."""
        return breakdowns(self.summary)

    @property
    def record(self) -> Run:
        return self.summary.record

    @property
    def effect(self) -> float:
        """The smallest difference that is called one."""
        return self.summary.record.minimal_effect
