"""Runs without children: a worker that answers at once, and a machine that does nothing else."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from unittest.mock import patch

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import RowRatios, divide_rounds
from kerasbench.events import Event, OnEvent
from kerasbench.host.noise import MachineState
from kerasbench.modes import registry
from kerasbench.plan.cases import Case
from kerasbench.processes.block import BlockMember, BlockPolicy, OnBlockEvent, PhaseStarted, Tick, TrialStarted
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import TrialRequest
from kerasbench.results.run import Effort, Run, Trial, exactly
from kerasbench.results.store import Store
from kerasbench.runs import rounds, schedule
from kerasbench.runs.launcher import BlockLauncher, Launch
from kerasbench.runs.machine import MachineMonitor
from tests import made

EventT = TypeVar("EventT", bound=Event)


class Events(list[Event]):
    def of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self if isinstance(event, kind)]

    def __call__(self, event: Event) -> None:
        self.append(event)


def quiet(*heavy: int, hot: bool = False) -> MachineMonitor:
    """A machine that does nothing else; it gets hot in blocks that are ``heavy``, counted from 1."""
    looks = itertools.count()  # before and after each block

    def look(sample_s: float) -> MachineState:
        block, is_after = divmod(next(looks), 2)
        return made.state(thermal_level=2 if is_after and block + 1 in heavy else None)

    def cool(on_wait: Callable[[str], None]) -> float:
        if hot:
            on_wait("hot")
        return 0.0

    return MachineMonitor(look, cool)


def by_round(ratios: RowRatios[Column], a: Column, b: Column, metric: str) -> LogEstimate | None:
    """In place of RowRatios.estimate_within_sessions, for trials without slices."""
    return divide_rounds(ratios.cases[a].by_round(metric), ratios.cases[b].by_round(metric), {})


def run(
    store: Store,
    launch: Launch,
    *planned: Case,
    effort: Effort | None = None,
    config: dict[str, Any] | None = None,
    events: OnEvent | None = None,
    monitor: MachineMonitor | None = None,
    carried: Sequence[Trial] = (),
    absent: tuple[tuple[Case, Failure], ...] = (),
    **different: Any,
) -> Run:
    """Measure these cases, or a scenario on two backends, in two rounds unless there is another effort.

    ``config`` are fields of the plan's configuration; ``different`` are further fields of the run.
    """
    plan = made.changed(made.plan(*(planned or CASES), effort=effort or exactly(2), absent=absent), config=config or {})
    if carried:
        different["earlier"] = made.record(*carried)
    planner = different.pop("planner", None) or registry.planner(plan.config)
    in_order = different.pop("in_order", lambda cases, *drawn: list(cases))  # as they stand in a test
    state = different.pop("state", None) or made.state()
    interpreter = [different.pop("interpreter")] if "interpreter" in different else []
    heard = Events() if events is None else events
    with patch.object(schedule, "order_cases", in_order), patch.object(RowRatios, "estimate_within_sessions", by_round):
        launcher = BlockLauncher(plan, planner, launch, monitor or quiet(), heard, state, *interpreter)
        return rounds.Rounds(plan, planner, store, launcher, heard, state, **different).execute()


def noisy(*steps_ms: float) -> list[Measurement]:
    return [made.measurement(step_ms=step) for step in steps_ms]


CASES = [made.case(backend="torch"), made.case(backend="jax")]
THREE = [*CASES, made.case(backend="tensorflow")]
ANSWERS: dict[str, Sequence[Measurement | Failure]] = {
    "torch": noisy(1),
    "jax": noisy(2),
    "tensorflow": noisy(3),
    "native": noisy(4),
}


class FakeWorker:
    """Answers a block at once, by backend: a list of measurements and failures, the last one over again.

    ``blocks`` are the backends of each, in their order, ``alone`` whether they were started so. Of a block no more than
    ``room`` are started, and the ``large`` backend beside no other. ``fails`` has a request fail that has an answer.
    """

    def __init__(
        self,
        room: int = 9,
        large: str = "",
        fails: Callable[[TrialRequest], Failure | None] = lambda request: None,
        **answers: Sequence[Measurement | Failure],
    ) -> None:
        self.room, self.large, self.fails = room, large, fails
        self.answers = ANSWERS | answers
        self.requests: list[TrialRequest] = []
        self.limits: list[Limits] = []
        self.blocks: list[list[str]] = []
        self.alone: list[bool] = []

    def __call__(
        self, entrants: Sequence[BlockMember], rules: BlockPolicy, on_event: OnBlockEvent, at_once: int, /
    ) -> list[Outcome | None]:
        backends = [entrant.request.backend for entrant in entrants]
        fitting = [not place or (place < self.room and name != self.large) for place, name in enumerate(backends)]
        started = [entrant for entrant, fits in zip(entrants, fitting, strict=True) if fits]
        self.blocks.append([entrant.request.backend for entrant in started])
        self.alone.append(at_once == 1)
        self.entrants, self.rules = entrants, rules
        self.meanwhile(on_event)
        for entrant in started:
            on_event(TrialStarted(entrant.label))
            on_event(PhaseStarted(entrant.label, "train"))
        on_event(Tick())
        return [
            dataclasses.replace(self.answer(entrant), started_alone=at_once == 1) if fits else None
            for entrant, fits in zip(entrants, fitting, strict=True)
        ]

    def meanwhile(self, on_event: OnBlockEvent) -> None:
        """Do what a test wants to happen in a block of these ``entrants``, which goes by these ``rules``."""

    def answer(self, entrant: BlockMember) -> Outcome:
        self.requests.append(entrant.request)
        self.limits.append(entrant.limits)
        backend = entrant.request.backend
        asked = sum(request.backend == backend for request in self.requests)
        answers = self.answers[backend]
        answer = self.fails(entrant.request) or answers[min(asked, len(answers)) - 1]
        if isinstance(answer, Measurement):
            return Outcome([], 10**9, measurement=answer)
        return Outcome([], 10**9, failure=answer)
