"""The cases of a table, row by row."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kerasbench.analysis import movement, parity
from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE, PREDICTS, STEADY, Measured
from kerasbench.analysis.ratios import RowRatios
from kerasbench.protocol.columns import CaseKey, Column, Size
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Origin
from kerasbench.text import label


@dataclass(frozen=True)
class Row:
    """One workload of one scenario, at one size where it was swept, over all columns."""

    scenario: Description
    workload: WorkloadDescription
    cases: dict[Column, Measured]
    ratios: RowRatios[Column] = field(compare=False, repr=False)
    origin: Origin  # its run
    size: Size | None = None
    of_user: bool = False  # the scenario is the user's own, not a built-in one of the same name

    @property
    def run(self) -> str:
        return self.origin.started

    @property
    def name(self) -> str:
        return label(self.scenario.name, self.workload.name) + (PREDICTS if self.workload.predicts_only else "")

    @property
    def label(self) -> str:
        return f"{self.name} {self.size.label}" if self.size else self.name

    @property
    def headline(self) -> str:
        if self.workload.predicts_only:
            return PREDICTED if self.workload.predicts_batches else PREDICTED_ONE
        return HEADLINE if self.size is None else STEADY

    def key(self, column: Column) -> CaseKey:
        return CaseKey(self.scenario.name, self.workload.name, column, self.size)

    @property
    def in_turn(self) -> bool:
        blocks = Counter(trial.block for case in self.cases.values() for trial, _ in case.trials if trial.block)
        return any(columns > 1 for columns in blocks.values())

    @property
    def rounds(self) -> int:
        """How many rounds it had: its own number where columns took turns, else that of its run."""
        if not self.in_turn:
            return self.origin.rounds
        return len({trial.round for case in self.cases.values() for trial, _ in case.trials})

    @cached_property
    def deviating(self) -> dict[Column, parity.Deviation]:
        return parity.deviations(_first_trials(self.cases, "parity"))

    @cached_property
    def standstills(self) -> dict[Column, movement.Standstill]:
        return movement.standstills(_first_trials(self.cases, "movement"))


def judge_cases(cases: Mapping[Column, Measured]) -> dict[Column, Failure]:
    """Return those that compute, or train, something else than the others: by the first trial, which alone tells."""
    moved = movement.judge_movement(_first_trials(cases, "movement"))
    return moved | parity.judge_parity(_first_trials(cases, "parity"))


def _first_trials(cases: Mapping[Column, Measured], fact: str) -> dict[Column, tuple[str, Measurement]]:
    """Return the first trial of each case that has this fact of a ``Measurement``."""
    compared: dict[Column, tuple[str, Measurement]] = {}
    for column, case in cases.items():
        if case.failure is None or case.failure.code is Code.PARITY:  # judged again, so that the verdict stays the same
            for trial, measurement in case.trials:
                if getattr(measurement, fact) is not None:
                    compared.setdefault(column, (trial.device.kind, measurement))
    return compared
