"""Runs without children: a worker that answers at once, a machine that does nothing else, an observer that counts."""

from collections.abc import Callable, Sequence

from kerasbench.children.limits import Limits
from kerasbench.children.trial import Outcome
from kerasbench.exchange.devices import Device
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.requests import TrialRequest
from kerasbench.plan import cells
from kerasbench.plan.cells import Cell
from kerasbench.quiet.signals import Surroundings
from kerasbench.results.record import Record, TrialRecord
from kerasbench.results.store import Store
from kerasbench.runs import rounds
from tests import made


class Silent:
    """An observer that only counts."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def run_began(self, planned: cells.Plan, record: Record) -> None: ...
    def gate_closed(self, cell: Cell, reason: str) -> None: ...
    def trial_began(self, cell: Cell, round_index: int) -> None: ...
    def phase_began(self, phase: str) -> None: ...
    def tick(self) -> None: ...
    def round_ended(self, record: Record) -> None: ...
    def run_ended(self) -> None: ...

    def trial_ended(self, cell: Cell, trial: TrialRecord) -> None:
        self.ended.append(cell.backend)


class Quiet:
    """A machine that does nothing else; ``disturbed`` trials, counted from 1, have a busy neighbour."""

    def __init__(self, *disturbed: int) -> None:
        self.disturbed = disturbed
        self.trials = 0

    def __call__(
        self, device: Device, trial: Callable[[], Outcome], on_wait: Callable[[str], None], /
    ) -> tuple[Outcome, Surroundings]:
        self.trials += 1
        busy_s = 10 * (rounds.processors() - 0.5) if self.trials in self.disturbed else 1.0
        return trial(), made.surroundings(after=made.state(10.0, busy_s), child_cpu_s=1.0)


def execute(
    planned: cells.Plan,
    store: Store,
    launch: rounds.Launch,
    observer: Silent,
    watch: Quiet | None = None,
    carried: Sequence[TrialRecord] = (),
) -> Record:
    earlier = made.record(*carried) if carried else None
    return rounds.Run(planned, store, launch, watch or Quiet(), observer, made.state(), earlier).execute()


class FakeWorker:
    """Answers every request at once, by backend: a list of measurements and failures, the last one over again."""

    def __init__(self, **answers: list[Measurement | Failure]) -> None:
        self.answers = answers
        self.requests: list[TrialRequest] = []
        self.limits: list[Limits] = []

    def __call__(
        self, request: TrialRequest, limits: Limits, on_phase: Callable[[str], None], on_tick: Callable[[], None], /
    ) -> Outcome:
        self.requests.append(request)
        self.limits.append(limits)
        asked = sum(one.backend == request.backend for one in self.requests)
        answers = self.answers[request.backend]
        answer = answers[min(asked, len(answers)) - 1]
        if isinstance(answer, Measurement):
            return Outcome([], 10**9, measurement=answer)
        return Outcome([], 10**9, failure=answer)


CELLS = [made.cell(backend="torch"), made.cell(backend="jax")]


def noisy(*steps_ms: float) -> list[Measurement | Failure]:
    return [made.measurement(step_ms=step) for step in steps_ms]
