"""What a step is made of: fed from arrays or a stream, from a batch that lies ready on the device, and by itself."""

import dataclasses
from dataclasses import dataclass

from kerasbench.protocol.measurement import Samples, Slice, Turn
from kerasbench.protocol.stages import PARTS_OF_STEP
from kerasbench.runners.feed import Fed
from kerasbench.runners.trainer import Trainer
from kerasbench.worker.clock import Ask, Pace, SliceClock, WarmUpClock, granted, measure_slices
from kerasbench.worker.train import ENDLESS, StepWindow


@dataclass(frozen=True)
class Parts:
    samples: dict[str, Samples]  # by PARTS_OF_STEP
    peak_flops: float


def measure_parts(runner: Trainer, pace: Pace, ask: Ask) -> Parts | None:
    """Measure a slice of the pace's steps in each way in each turn: a machine which drifts hits them alike."""
    steps, feed = pace.plan.steps_per_slice or 1, runner.feed
    full_steps = len(feed.train) // feed.batch
    fed: Fed = feed.train[: full_steps * feed.batch]
    if feed.stream is not None:  # beside the first of its batches from memory: what it takes longer, a step waits for
        fed, full_steps, pace = feed.stream, feed.workload.steps, dataclasses.replace(pace, queued=feed.queue)
    batch = runner.place(feed.stepped(feed.first_batch))
    bare = runner.bare_steps(batch)
    if bare is None:
        return None

    def by_itself(turn: Turn) -> Slice:
        with bare() as run:
            run(steps)  # warms up
            began = pace.meter.read()
            run(steps)
            return pace.meter.with_card(pace.meter.read().since(began, steps, turn))

    ways = (
        lambda turn: fit_slice(runner, fed, full_steps, pace, turn),
        lambda turn: fit_slice(runner, runner.backend.ready(batch, full_steps), full_steps, pace, turn),
        by_itself,
    )
    slices = (list[Slice](), list[Slice](), list[Slice]())

    def measure(turn: Turn) -> Slice:
        for place in range(len(ways)):
            way = (turn.cycle + place) % len(ways)
            slices[way].append(ways[way](turn))
        return _sum([of_way[-1] for of_way in slices], turn)

    with bare() as run:
        run(1)  # traced and compiled before it is timed
    measure_slices(ask, measure)
    return Parts(dict(zip(PARTS_OF_STEP, map(Samples.of, slices), strict=True)), runner.peak_flops())


def fit_slice(runner: Trainer, rows: Fed, full_steps: int, pace: Pace, turn: Turn) -> Slice:
    """Return a slice of the pace's steps, of a `fit` of its own."""
    warmed = dataclasses.replace(pace.plan, warmup_slices=1)
    warmup = WarmUpClock(warmed, full_steps, 0, executed=runner.steps_per_execution)
    clock = SliceClock(warmup, pace, alone=True)
    runner.fit(rows, StepWindow(runner, clock, pace, granted(1, turn)), ENDLESS, whole=bool(runner.callbacks))
    (slice_,) = clock.slices
    return slice_


def _sum(slices: list[Slice], turn: Turn) -> Slice:
    def total(field: str) -> int | None:
        told = [value for slice_ in slices if (value := getattr(slice_, field)) is not None]  # not every system tells
        return sum(told) if told else None

    count, ns = sum(slice_.count for slice_ in slices), sum(slice_.ns for slice_ in slices)
    cpu_ns, others_ns, steal_ns = map(total, ("cpu_ns", "others_ns", "steal_ns"))
    disturbed = any(slice_.disturbed for slice_ in slices)
    return Slice(count, ns, turn.cycle, turn.position, cpu_ns, others_ns, steal_ns, disturbed=disturbed)
