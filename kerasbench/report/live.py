"""A block while it is measured: a line for each column, and who is ahead so far."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import by_slices
from kerasbench.plan.cases import Case
from kerasbench.protocol.measurement import BUILD, CALLS, GENERATIONS, STAGES, Slice, Slices
from kerasbench.protocol.messages import FIRST_STEP, Phase
from kerasbench.protocol.requests import counts_epochs
from kerasbench.report.figures import duration, listed, names, times
from kerasbench.results.record import RaceConfig
from kerasbench.text import blanked, count

TRAIN, EPOCH, ONE, BATCH, ALL, PARTS = STAGES
UNITS = {  # what a slice counts
    TRAIN: "step",
    EPOCH: "short epoch",
    ONE: "single prediction",
    BATCH: "prediction of a batch",
    ALL: "pass of predict",
    PARTS: "step in three ways",
    **{stage: stage.replace("_", " ") for stage in CALLS},
    **dict.fromkeys(GENERATIONS, "new token"),
    BUILD: "build",
}
MOST_NAMED = 4  # of those that are behind
SHOWN = {"train": "warm-up"}  # what a phase is until its slices are measured


FIRST_CYCLES = 3  # the median of fewer is no better than any of them

LogRatios = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Lead:
    """Columns by their labels."""

    fastest: str
    times: dict[str, LogEstimate]  # how many times as long each of the others takes, the nearest first; no intervals


def log_ratios(slices: Mapping[str, Sequence[Slice]], samples: Mapping[str, int]) -> LogRatios:
    """Return the logarithm of the ratio of each two columns in a block; none of those with too few cycles so far.

    Of their times for a sample: ``samples`` are those of a step, by column.
    """
    logs = {}
    columns = {label: Slices.of(own) for label, own in slices.items()}
    for one, other in itertools.combinations(columns, 2):
        ratio = by_slices(columns[one], columns[other])
        if ratio is not None and min(len(columns[one]), len(columns[other])) >= FIRST_CYCLES:
            log = ratio.log - math.log(samples[one] / samples[other])
            logs[one, other], logs[other, one] = log, -log
    return logs


def standing(blocks: Sequence[LogRatios]) -> Lead | None:
    """Return how the columns of the last block stand, by the mean over all blocks; None if they cannot be compared."""
    labels = dict.fromkeys(one for one, _ in blocks[-1]) if blocks else {}
    if not labels:
        return None
    logs = {pair: statistics.fmean(block[pair] for block in blocks if pair in block) for pair in blocks[-1]}
    fastest = min(labels, key=lambda one: sum(logs[one, other] for other in labels if other != one))
    others = sorted((one for one in labels if one != fastest), key=lambda one: logs[one, fastest])
    return Lead(fastest, {one: LogEstimate(logs[one, fastest], None, 0, len(blocks)) for one in others})


@dataclass
class LiveColumn:
    """What is known of a column in its block."""

    name: str
    doing: str = "not started yet"  # empty: it measures slices
    first_step: str = ""
    medians: dict[str, str] = field(default_factory=dict)  # of what a slice counts, by stage
    slices: int = 0  # of the last of these stages


class LiveBlock:
    """What is known of a block, event by event."""

    def __init__(
        self,
        cases: Sequence[Case],
        is_first: bool,
        effect: float,
        earlier: Sequence[LogRatios],
        race: RaceConfig | None = None,
    ) -> None:
        called, workload = names(case.column for case in cases), cases[0].selected.workload
        self.columns = {case.label: LiveColumn(called[case.column]) for case in cases}
        self.row, self.is_first = cases[0].row_label, is_first
        self.ratios: LogRatios = {}  # of this block; before it came the earlier ones
        self._effect, self._earlier = effect, earlier
        self._is_soak = cases[0].protocol.soaks  # its columns are one case, and differ by nothing that is ahead
        self._samples = {case.label: case.options.batch_size or workload.batch for case in cases}
        # By whose slices the columns are told apart.
        purpose = race.purpose if race else "train"
        one_by_one = purpose == "predict-one" or not workload.predicts_batches
        self.headline = TRAIN
        if workload.predicts_only or purpose != "train":
            self.headline = ONE if one_by_one else BATCH
        self._units = UNITS | ({TRAIN: "epoch"} if counts_epochs(workload.steps) else {})

    def begin(self, label: str, doing: str) -> None:
        self.columns[label].doing = SHOWN.get(doing, doing)

    def end_phase(self, label: str, phase: Phase) -> str:
        """Return what to say of a phase that is over: how long the first step took; else nothing."""
        if phase.name != FIRST_STEP:
            return ""
        self.columns[label].first_step = f"{FIRST_STEP} {duration(phase.duration_ns)}"
        return f"{label}: {self.columns[label].first_step}"

    def end_cycle(self, stage: str, slices: Mapping[str, Sequence[Slice]]) -> None:
        """Take in what all have measured of a stage so far."""
        for label, own in slices.items():
            column = self.columns[label]
            column.medians[stage] = duration(statistics.median(slice_.unit_ns for slice_ in own))
            column.slices, column.doing = len(own), ""
        if stage == self.headline and slices and not self._is_soak:
            self.ratios = log_ratios(slices, self._samples)

    def lines(self) -> list[str]:
        """Return who is ahead, and a line for each column: what is known of it, and what it does."""
        columns = [blanked(f"  {one.name}: {', '.join(self._known(one))}") for one in self.columns.values()]
        return [self.answer() or self.row, *columns]

    def _known(self, column: LiveColumn) -> list[str]:
        last = next(reversed(column.medians), "")
        shown = [stage for stage in column.medians if stage in (self.headline, last)]
        known = [f"{self._units[stage]} {column.medians[stage]}" for stage in shown]
        if column.first_step and last in ("", TRAIN):
            known.insert(0, column.first_step)
        return [*known, column.doing or count(column.slices, "slice")]

    def stage(self, stage: str) -> str:
        """Return what has been measured of a stage, in one line: its time in each column."""
        own = [column for column in self.columns.values() if stage in column.medians]
        found = ", ".join(f"{column.name} {column.medians[stage]}" for column in own)
        cycles = max((column.slices for column in own), default=0)
        return blanked(f"{self.row}: {self._units[stage]}: {found} ({count(cycles, 'cycle')})")

    def answer(self) -> str:
        """Return who is ahead in the row so far; empty while nothing can be compared."""
        found = standing([*self._earlier, self.ratios]) if self.ratios else None
        if found is None:
            return ""
        called = {label: column.name for label, column in self.columns.items()}
        level = [label for label, ratio in found.times.items() if ratio.value < 1 + self._effect]
        behind = [label for label in found.times if label not in level]
        beaten = [f"{times(found.times[label])} than {called[label]}" for label in behind[:MOST_NAMED]]
        if len(behind) > MOST_NAMED:
            beaten.append(f"and {count(len(behind) - MOST_NAMED, 'other')}")
        words = listed([called[label] for label in (found.fastest, *level)])
        if level:
            words += " about equal" + (", " if beaten else "")
        ahead = ", ".join(beaten).replace("× than", "× faster than", 1)
        return blanked(f"{self.row}: {words}{'' if level else ' '}{ahead} so far")

    def interrupted(self) -> list[str]:
        """Return what to say of a row's first block that was interrupted; nothing of later ones."""
        if not self.is_first:
            return []
        return [
            "interrupted in the first block of a row. So much is known, and not saved:",
            *self.lines(),
            "There is no verdict. --resume measures this block again from its start.",
        ]
