"""Runs without children: a worker that answers at once, a machine that does nothing else, an observer that counts."""

import dataclasses
from collections.abc import Callable, Sequence

from kerasbench.analysis.cases import CaseSummary
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.ratios import by_rounds
from kerasbench.host.noise import Surroundings
from kerasbench.plan import cases
from kerasbench.plan.cases import Case
from kerasbench.processes.block import BlockMember, BlockPolicy, Ear
from kerasbench.processes.outcome import Limits, Outcome
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import TrialRequest
from kerasbench.results.record import Record, TrialRecord
from kerasbench.results.store import Store
from kerasbench.runs import rounds, rows
from kerasbench.runs.rounds import Launch
from tests import made


class Silent:
    """An observer that only counts."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.decided: list[tuple[str, str]] = []

    def run_began(self, planned: cases.Plan, record: Record) -> None: ...
    def gate_closed(self, row: str, reason: str) -> None: ...
    def trial_began(self, case: Case, round_index: int) -> None: ...
    def phase_began(self, case: Case, phase: str) -> None: ...
    def tick(self) -> None: ...
    def round_ended(self, record: Record) -> None: ...
    def run_ended(self) -> None: ...

    def trial_ended(self, case: Case, trial: TrialRecord) -> None:
        self.ended.append(case.backend)

    def row_ended(self, cases: Sequence[Case], why: str) -> None:
        self.decided.append((cases[0].row_label, why))


class Quiet:
    """A machine that does nothing else; ``disturbed`` blocks, counted from 1, have a busy neighbour."""

    def __init__(self, *disturbed: int) -> None:
        self.disturbed = disturbed
        self.blocks = 0

    def __call__(
        self,
        devices: Sequence[Device],
        block: Callable[[], Sequence[Outcome | None]],
        on_wait: Callable[[str], None],
        /,
    ) -> tuple[Sequence[Outcome | None], Sequence[Surroundings]]:
        self.blocks += 1
        busy_s = 10 * (rows.processors() - 0.5) if self.blocks in self.disturbed else 1.0
        return block(), [made.surroundings(after=made.state(10.0, busy_s), child_cpu_s=1.0)] * len(devices)


def by_round(a: CaseSummary, b: CaseSummary, metric: str, others: Sequence[CaseSummary] = ()) -> LogEstimate | None:
    """In place of analysis.ratios.between, for trials without slices."""
    return by_rounds(a.by_round(BY_NAME[metric]), b.by_round(BY_NAME[metric]))


def as_planned(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    """In place of plan.order.order, for rows and columns that come as they stand in a test."""
    return list(cases)


def execute(
    planned: cases.Plan,
    store: Store,
    launch: Launch,
    observer: Silent,
    watch: Quiet | None = None,
    carried: Sequence[TrialRecord] = (),
    in_order: Callable[[Sequence[Case], int, int], list[Case]] = as_planned,
) -> Record:
    earlier = made.record(*carried) if carried else None
    return rounds.Run(
        planned, store, launch, watch or Quiet(), observer, made.state(), earlier, in_order=in_order, between=by_round
    ).execute()


class FakeWorker:
    """Answers a block at once, by backend: a list of measurements and failures, the last one over again.

    ``blocks`` are the backends of each, in their order, ``alone`` whether they were started so. Of a block no more than
    ``room`` are started (see ``fitting``).
    """

    def __init__(self, room: int | None = None, **answers: list[Measurement | Failure]) -> None:
        self.answers = answers
        self.room = room
        self.requests: list[TrialRequest] = []
        self.limits: list[Limits] = []
        self.blocks: list[list[str]] = []
        self.alone: list[bool] = []

    def __call__(
        self, entrants: Sequence[BlockMember], rules: BlockPolicy, ear: Ear, alone: bool, /
    ) -> list[Outcome | None]:
        fitting = self.fitting([one.request.backend for one in entrants])
        started = [one for one, it in zip(entrants, fitting, strict=True) if it]
        self.blocks.append([one.request.backend for one in started])
        self.alone.append(alone)
        for index, it in enumerate(fitting):
            if it:
                ear.began(index)
                ear.phase(index, "train")
        ear.tick()
        return [
            dataclasses.replace(self.answer(one), started_alone=alone) if it else None
            for one, it in zip(entrants, fitting, strict=True)
        ]

    def fitting(self, backends: Sequence[str]) -> list[bool]:
        """Tell which of a block's entrants have room."""
        return [self.room is None or index < self.room for index in range(len(backends))]

    def answer(self, entrant: BlockMember) -> Outcome:
        self.requests.append(entrant.request)
        self.limits.append(entrant.limits)
        backend = entrant.request.backend
        asked = sum(one.backend == backend for one in self.requests)
        answers = self.answers[backend]
        answer = answers[min(asked, len(answers)) - 1]
        if isinstance(answer, Measurement):
            return Outcome([], 10**9, measurement=answer)
        return Outcome([], 10**9, failure=answer)


CASES = [made.case(backend="torch"), made.case(backend="jax")]


def noisy(*steps_ms: float) -> list[Measurement | Failure]:
    return [made.measurement(step_ms=step) for step in steps_ms]
