"""A block while it is measured: a line for each column, and who is ahead so far."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerasbench import variants
from kerasbench.analysis.ratios import divide_slices
from kerasbench.plan.cases import Case
from kerasbench.protocol.measurement import Samples, Slice
from kerasbench.protocol.messages import FIRST_STEP, Phase
from kerasbench.protocol.requests import counts_epochs
from kerasbench.protocol.stages import STAGES, TRAIN
from kerasbench.report.words import duration, listed, multiple, names
from kerasbench.text import blanked, count

MOST_NAMED = 4  # of those that are behind
SHOWN = {  # what a column does, in a reader's words
    "import": "importing the backend",
    "device": "looking for the device",
    "scenario": "reading the scenario",
    "script": "running the script",
    "load": "loading the model",
    "look": "looking at the model",
    "data": "making the data",
    "build": "building the model",
    "learn": "training the first steps",
    "train": "warming up",
    "published": "training all epochs",
    "epoch": "training short epochs",
    "predict": "predicting",
    "calls": "predicting",
    "generate": "generating tokens",
    "builds": "building the model again and again",
    "parts": "taking a step apart",
    "parity": "comparing results",
    "finish": "making the last checks",
    "ready": "waiting for the others",
}
FIRST_CYCLES = 3  # the median of fewer is no better than any of them

LogRatios = Mapping[tuple[str, str], float]


def log_ratios(slices: Mapping[str, Sequence[Slice]], samples: Mapping[str, int]) -> LogRatios:
    """Return the logarithm of the ratio of each two columns' times for a sample; ``samples`` are those of a step.

    There is none while other programs leave too few slices that count.
    """
    logs = {}
    columns = {label: Samples.of(of_column) for label, of_column in slices.items()}
    for over, under in itertools.combinations(columns, 2):
        ratio = divide_slices(columns[over], columns[under])
        if ratio is not None and min(len(columns[over]), len(columns[under])) >= FIRST_CYCLES:
            if ratio.disturbed:
                return {}
            log = ratio.log - math.log(samples[over] / samples[under])
            logs[over, under], logs[under, over] = log, -log
    return logs


def standing(blocks: Sequence[LogRatios]) -> dict[str, float]:
    """Return how many times as long as the fastest each column of the last block takes by all blocks, nearest first."""
    logs = {pair: statistics.fmean(block[pair] for block in blocks if pair in block) for pair in blocks[-1]}
    labels = list(dict.fromkeys(over for over, _ in logs))
    if not labels:
        return {}
    fastest = min(labels, key=lambda label: sum(logs[label, rival] for rival in labels if rival != label))
    labels.remove(fastest)
    ratios = {label: math.exp(logs[label, fastest]) for label in labels}
    return {fastest: 1.0} | dict(sorted(ratios.items(), key=lambda ratio: ratio[1]))


@dataclass
class LiveColumn:
    name: str
    doing: str = "not started yet"  # empty: it measures slices
    times: dict[str, str] = field(default_factory=dict)  # of the first step, and the median of each stage's slices
    slices: int = 0  # of the last of these stages


class LiveBlock:
    def __init__(
        self, cases: Sequence[Case], is_first: bool, effect: float, earlier: Sequence[LogRatios], stage: str = TRAIN
    ) -> None:
        called, workload = names(case.column for case in cases), cases[0].selected.workload
        self.columns = {case.label: LiveColumn(called[case.column]) for case in cases}
        self.row, self.is_first = cases[0].row_label, is_first
        self.ratios: LogRatios = {}  # of this block; before it came the earlier ones
        self._is_disturbed = False  # by other programs, so that nothing of this block can be compared
        self._effect, self._earlier = effect, earlier
        self._lasts = cases[0].plan.fixed_time  # its columns are one case, and differ by nothing that is ahead
        ahead = [case for case in cases if not variants.has(case.options, "explains")]
        self._samples = {case.label: variants.batch(case.options) or workload.batch for case in ahead}
        self.headline = stage  # by whose slices the columns are told apart
        self._counts = {FIRST_STEP: FIRST_STEP} | {stage.name: stage.counts for stage in STAGES.values()}
        if counts_epochs(workload.steps):
            self._counts[TRAIN] = "epoch"

    def begin(self, label: str, doing: str) -> str:
        self.columns[label].doing = SHOWN.get(doing, doing)
        return blanked(f"{self.row} on {self.columns[label].name}: {doing}")

    def end_phase(self, label: str, phase: Phase) -> str:
        if phase.name != FIRST_STEP:
            return ""
        self.columns[label].times[FIRST_STEP] = duration(phase.duration_ns)
        return blanked(f"{self.row} on {self.columns[label].name}: {FIRST_STEP} {duration(phase.duration_ns)}")

    def end_cycle(self, stage: str, slices: Mapping[str, Sequence[Slice]]) -> None:
        for label, of_column in slices.items():
            column = self.columns[label]
            column.times[stage] = duration(statistics.median(slice_.unit_ns for slice_ in of_column))
            column.slices, column.doing = len(of_column), ""
        if stage == self.headline and slices and not self._lasts:
            compared = {label: slices[label] for label in self._samples if label in slices}
            self.ratios = log_ratios(compared, self._samples)
            has_marked = any(slice_.disturbed for of_column in compared.values() for slice_ in of_column)
            self._is_disturbed = has_marked and len(compared) > 1 and not self.ratios

    def lines(self) -> list[str]:
        lines = [self.answer() or self.row]
        for column in self.columns.values():
            last = next(reversed(column.times), "")
            shown = {self.headline, last, FIRST_STEP if last == TRAIN else ""}
            parts = [f"{self._counts[stage]} {time}" for stage, time in column.times.items() if stage in shown]
            parts.append(column.doing or f"measured in {count(column.slices, 'turn')}")
            lines.append(blanked(f"  {column.name}: {', '.join(parts)}"))
        return lines

    def stage(self, stage: str) -> str:
        measured = [column for column in self.columns.values() if stage in column.times]
        medians = ", ".join(f"{column.name} {column.times[stage]}" for column in measured)
        turns = count(max((column.slices for column in measured), default=0), "turn")
        return blanked(f"{self.row}: {self._counts[stage]}: {medians} ({turns})")

    def answer(self) -> str:
        """Return who is ahead in the row so far; empty while nothing can be compared."""
        if self._is_disturbed:
            return blanked(f"{self.row}: undecided so far, because other programs use the CPU")
        ratios = standing([*self._earlier, self.ratios])
        if not ratios:
            return ""
        equal = [self.columns[label].name for label, ratio in ratios.items() if ratio < 1 + self._effect]
        behind = [(self.columns[label].name, ratio) for label, ratio in ratios.items() if ratio >= 1 + self._effect]
        ahead = f"{equal[0]} leads so far" if len(equal) == 1 else f"undecided so far between {listed(equal)}"
        words = f"{self.row}: {ahead}"
        if behind:
            words += f"; {behind[0][0]} takes {multiple(behind[0][1])} as long"
        slower = [f"{name} {multiple(ratio)}" for name, ratio in behind[1:MOST_NAMED]]
        slower += [f"and {len(behind) - MOST_NAMED} more"] if len(behind) > MOST_NAMED else []
        return blanked(", ".join([words, *slower]))

    def interrupted(self) -> list[str]:
        if not self.is_first:
            return []
        return [
            "interrupted in the first round of a workload. This is known so far, but it is not saved:",
            *self.lines(),
            "It is undecided. --resume measures this round again from its start.",
        ]
