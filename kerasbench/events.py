"""What happens during a run, as one stream of values: progress draws them, tests compare them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kerasbench.analysis.cases import Measured
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import History
from kerasbench.processes.block import BlockEvent, CycleEnded, PhaseEnded, PhaseStarted, Tick, TrialStarted
from kerasbench.protocol.columns import CaseKey
from kerasbench.results.run import Run, Trial

__all__ = ["CycleEnded", "PhaseEnded", "PhaseStarted", "Tick", "TrialStarted"]  # of a block, and told on


@dataclass(frozen=True)
class Notice:
    text: str


@dataclass(frozen=True)
class StepStarted:
    text: str


@dataclass(frozen=True)
class StepEnded:
    pass


@dataclass(frozen=True)
class RunStarted:
    """The first trial is about to start. A sweep that goes on with more sizes starts once more."""

    plan: Plan
    record: Run
    history: History


@dataclass(frozen=True)
class BlockStarted:
    cases: Sequence[Case]
    is_first: bool  # of its row in this run
    stage: str  # by which its columns are told apart
    left: Sequence[Case] = ()  # of its row: they are measured no more


@dataclass(frozen=True)
class Waiting:
    row: str
    reason: str


@dataclass(frozen=True)
class StepsKnown:
    steps_ns: Sequence[tuple[Case, int]]
    spent_s: float  # by the block so far
    left_s: float  # until it ends, about


@dataclass(frozen=True)
class TrialEnded:
    case: Case
    trial: Trial


@dataclass(frozen=True)
class RowEnded:
    cases: Sequence[Case]
    reason: str


@dataclass(frozen=True)
class RoundEnded:
    record: Run
    measured: Mapping[CaseKey, Measured] = field(default_factory=dict, compare=False)  # what cases amount to so far


@dataclass(frozen=True)
class RunEnded:
    interrupted: bool = False  # by Ctrl-C: the block in flight is lost, except a long one, which keeps what it has


Preparing = Notice | StepStarted | StepEnded
Measuring = RunStarted | BlockStarted | Waiting | BlockEvent | StepsKnown | TrialEnded
Event = Preparing | Measuring | RowEnded | RoundEnded | RunEnded
OnEvent = Callable[[Event], None]


@contextmanager
def step(on_event: OnEvent, text: str) -> Iterator[None]:
    """Announce a step of the preparation while the block runs."""
    on_event(StepStarted(text))
    try:
        yield
    finally:
        on_event(StepEnded())


def asking(names: Sequence[str]) -> str:
    return f"asking {', '.join(names)} what {'they see' if len(names) > 1 else 'it sees'}"
