"""What the stages of a trial work with: its request, its model, its pipe, and what the parent has told it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kerasbench.protocol import measurement, stages
from kerasbench.protocol.columns import GPU
from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.protocol.messages import Message
from kerasbench.protocol.requests import Sizes, TrialPlan, TrialRequest
from kerasbench.runners import Predictor
from kerasbench.runners.failure import own_step
from kerasbench.runners.trainer import Trainer
from kerasbench.worker.build import explained
from kerasbench.worker.caches import CacheReads
from kerasbench.worker.clock import SETTLE_GPU_NS, SETTLE_NS, Ask, Pace
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.usage import Meter


@dataclass
class TrialContext:
    """What the stages of a trial work with, once the model is built."""

    request: TrialRequest
    pipe: Pipe
    runner: Predictor
    meter: Meter
    cache: CacheReads = field(default_factory=lambda: CacheReads("", ()))
    exported: measurement.Exported | None = None
    sizes: Sizes | None = None  # None: not told yet, or after published epochs
    programs: int = 0  # made by a compiler during slices
    slices: dict[str, list[Slice]] = field(default_factory=dict)  # by stage, those that the parent has

    def __post_init__(self) -> None:
        self.sizes = self.plan.sizes

    @property
    def plan(self) -> TrialPlan:
        return self.request.plan

    @property
    def trainer(self) -> Trainer:
        assert isinstance(self.runner, Trainer), "what only predicts is measured by other stages"
        return self.runner

    @property
    def pace(self) -> Pace:
        on_gpu = self.request.device.kind == GPU
        settle_ns = SETTLE_GPU_NS if on_gpu else SETTLE_NS
        return Pace(self.plan, self.runner.wait, settle_ns, self.meter, on_gpu)

    def measures(self, stage: str) -> bool:
        """Whether a stage is still to be measured: the row's first steps may have shown that it takes too long.

        The parent has not seen the model that a script gives to `fit`; this process knows whether it predicts.
        """
        can_be = self.runner.predicts or stage not in stages.PREDICTIONS
        return can_be and stage in self.plan.stages and not (self.sizes and stage in self.sizes.left_out)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report a phase in which the model's own steps may fail for the first time."""
        targets = self.runner.feed.train.y is not None
        own = own_step(self.runner.overrides, self.request.backend, name, targets)
        with self.pipe.phase(name), explained(self.request), own:
            yield

    def ask(self, stage: str) -> Ask:
        """Return what reports a slice of a stage to the parent, and waits for its next turn."""

        def ask(slice_: Slice | None) -> Turn | None:
            if slice_ is None:
                self.programs -= self._programs_so_far()
            else:
                self.slices.setdefault(stage, []).append(slice_)
            turn = self.pipe.ask(Message(ready=stage) if slice_ is None else Message(slice=slice_))
            if isinstance(turn, Sizes):  # it is not worth more
                self.sizes, turn = turn, None
            if turn is None:
                self.programs += self._programs_so_far()
                return None
            self.meter.look_for_helpers()  # each time: Keras makes a new pool for a feed in each epoch
            if turn.lead_ns:
                self.programs += self._programs_so_far()
                self.runner.keep_busy(turn.lead_ns)
                self.programs -= self._programs_so_far()  # its own product is a program, too
            return turn

        return ask

    def find_sizes(self, measure: Callable[[], int]) -> Sizes:
        """In a row's first block have steps measured, by which the parent finds them; ``measure`` returns ns."""
        sizes = self.sizes or self.pipe.ask(Message(ready=stages.PILOT))
        while not isinstance(sizes, Sizes):
            sizes = self.pipe.ask(Message(slice=Slice(1, measure())))
        self.sizes = sizes
        return sizes

    def _programs_so_far(self) -> int:
        compiler = self.runner.compiler()
        return compiler.made if compiler else 0
