"""Does kerasbench read what a plain `fit` takes? Both in one process, interleaved, so that drift hits both.

    python validation/fidelity.py steps mnist_dense cifar10_cnn     a step against epochs without marks
    python validation/fidelity.py epochs mnist_dense iris_mlp       a + b * steps against real epochs as published
    python validation/fidelity.py steps-cuda mnist_dense            the same on the first CUDA device

steps: one `fit` whose epochs are marked and left alone in turn. The slices of a marked epoch, two of a tenth of a
second, are compared with the epoch without marks before or after it, less what marked epochs take besides slices.

epochs: readings as a trial makes them and real epochs of the published length, with the published rows and validation,
in turn. Each real epoch is compared with the readings before and after it.

Printed is reading / truth: the median over the pairs (a machine that changes its speed in the middle of a pair makes it
an outlier), its 95 % order-statistic interval and the quartiles.
"""

import dataclasses
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

import medians
from children import CPU, in_child, installed

from kerasbench import backends
from kerasbench.host.lock import machine_lock
from kerasbench.plan import catalog
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Samples, Slice
from kerasbench.protocol.requests import TrialPlan, TrialRequest, counts_epochs
from kerasbench.runners.failure import refuse_other_frameworks
from kerasbench.runners.feed import Feed, prepare
from kerasbench.runners.keras import KerasRunner
from kerasbench.scenario import Workload, load
from kerasbench.worker import train
from kerasbench.worker.build import prepare_model
from kerasbench.worker.clock import SETTLE_NS, Pace, SliceClock, WarmUpClock, granted

PAIRS, MIN_PAIRS, BUDGET_S = 25, 6, 60.0
MOST_PAIRS, STEPS_BUDGET_S, WARM_UP = 200, 80.0, 3  # of the steps study
SLICES_IN_EPOCH = 2  # few: an epoch is to be short beside the machine's changes
OUTSIDE_STEPS = 2  # of an epoch, in no slice: the first starts the input pipeline, at the last a slice ends
SLICES, SHORT_SLICES = 10, 5  # of a reading


def main(study: str, patterns: list[str]) -> None:
    mode, _, platform = study.partition("-")
    device = Device(platform or CPU.platform)
    for one in catalog.select(patterns, sys.executable, installed()[0]):
        for backend in installed():
            told = (device.platform, mode, str(one.entry.file), one.workload.name)
            found = in_child(backend, __file__, *told, device=device)
            ratios = sorted(found["ratios"])
            low, high = medians.interval(ratios)
            first, middle, third = statistics.quantiles(ratios, n=4)
            print(
                f"{one.label:<24} {backend:<10} {device.label} {mode}: {middle:.3f} [{low:.3f}, {high:.3f}], "
                f"quartiles {first:.3f} and {third:.3f}, {len(ratios)} pairs, "
                f"real epoch {found['epoch_s']:.4f} s of {found['steps']} steps",
                flush=True,
            )


def child(backend_name: str, platform: str, mode: str, file: str, workload_name: str) -> None:
    refuse_other_frameworks(backend_name)
    backend, device = backends.get(backend_name), Device(platform)
    backend.configure(device)
    scenario, _ = load(Path(file))
    request = TrialRequest("", file, "", workload_name, backend_name, device, 0, "synthetic", TrialPlan())
    runner = KerasRunner(backend, request)
    runner.load(lambda phase: nullcontext())
    runner.take_model(prepare_model(scenario, prepare(scenario, scenario.workload(workload_name), 0), request))
    study = steps_study if mode == "steps" else epochs_study
    study(runner, scenario.workload(workload_name))


def steps_study(runner: KerasRunner, workload: Workload) -> None:
    workload = dataclasses.replace(workload, validation=0, test_each_epoch=False)
    runner.feed = feed = prepare(runner.scenario, workload, 0)
    runner.callbacks = []
    train.first_step(runner)
    step_ns = median_step_ns(steps_of(runner, TrialPlan()).slices)
    most_in_slice = (len(feed.train) // feed.batch - OUTSIDE_STEPS) // SLICES_IN_EPOCH
    in_slice = min(most_in_slice, math.ceil(TrialPlan().slice_ns / step_ns))
    steps = OUTSIDE_STEPS + SLICES_IN_EPOCH * in_slice
    pairs = max(MIN_PAIRS, min(MOST_PAIRS, int(STEPS_BUDGET_S * 1e9 / (2 * steps * step_ns))))
    clock = WarmUpClock(TrialPlan(steps_per_slice=in_slice, warmup_slices=10**9), steps, 0)
    window = EveryOther(clock, runner.wait)
    runner.fit(feed.train[: steps * feed.batch], window, epochs=2 * (WARM_UP + pairs) + 1)
    plain_ns, marked_ns = window.epochs_ns[2 * WARM_UP :: 2], window.epochs_ns[2 * WARM_UP + 1 :: 2]
    slices_ns = [sum(slice_.ns for slice_ in slices) for slices in window.by_epoch[WARM_UP:]]
    # One number for all: then nothing but the marks tells the two kinds of epochs apart.
    outside_ns = statistics.median(whole - inside for whole, inside in zip(marked_ns, slices_ns, strict=True))
    readings, truths = ([ns - outside_ns for ns in epochs_ns] for epochs_ns in (marked_ns, plain_ns[1:-1]))
    answer_pairs(readings, truths, steps)


class EveryOther(train.EpochSpans):
    """Marks every other epoch as a trial does; ``by_epoch`` has the slices of each of these."""

    def __init__(self, clock: WarmUpClock, wait: Callable[[], None]) -> None:
        super().__init__()
        self.clock, self.wait, self.marking = clock, wait, False
        self.by_epoch: list[list[Slice]] = []

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        super().on_epoch_begin(epoch)
        self.marking = epoch % 2 == 1
        self.clock.begin_epoch()
        if self.marking:
            self.clock.slices = []
            self.by_epoch.append(self.clock.slices)

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        if self.marking and self.clock.wants(batch):
            self.wait()
            self.clock.mark(batch, time.perf_counter_ns())


def steps_of(runner: KerasRunner, plan: TrialPlan) -> SliceClock:
    """Measure slices of steps as a trial by itself does, and return their clock."""
    return train.measure_steps(runner, Pace(plan, runner.wait, SETTLE_NS), granted(SLICES))


def short_epochs(runner: KerasRunner, plan: TrialPlan) -> Samples:
    """Measure slices of short epochs as a trial by itself does."""
    return Samples.of(train.measure_epochs(runner, Pace(plan, runner.wait, SETTLE_NS), granted(SHORT_SLICES)).slices)


def epochs_study(runner: KerasRunner, workload: Workload) -> None:
    pool, published = runner.feed, prepare(runner.scenario, workload, 0, whole=True)
    train.first_step(runner)
    in_slice = steps_of(runner, TrialPlan()).warmup.steps_per_slice
    frozen = TrialPlan(steps_per_slice=in_slice, warmup_slices=1)
    real_ns(runner, published)  # compiles the partial last batch and the validation pass
    readings, truths, began_s = [reading_ns(runner, pool, frozen)], list[float](), time.monotonic()
    while len(truths) < PAIRS and (len(truths) < MIN_PAIRS or time.monotonic() - began_s < BUDGET_S):
        truths.append(real_ns(runner, published))
        readings.append(reading_ns(runner, pool, frozen))
    answer_pairs(readings, truths, workload.steps)


def reading_ns(runner: KerasRunner, feed: Feed, plan: TrialPlan) -> float:
    """Return a + b * full steps in ns, as ``metrics.steady_epoch_ns`` makes it of a trial."""
    runner.feed = feed
    step_ns = median_step_ns(steps_of(runner, plan).slices)
    if counts_epochs(feed.workload.steps):
        return step_ns
    short_ns = median_step_ns(short_epochs(runner, plan))
    return short_ns + step_ns * (feed.workload.full_steps - train.SHORT_EPOCH_STEPS)


def real_ns(runner: KerasRunner, feed: Feed) -> float:
    """Return the mean duration of real epochs after the first, by hooks that only see epochs."""
    runner.feed, spans = feed, train.EpochSpans()
    epochs = 2 if feed.workload.steps > 100 else 6 if feed.workload.steps > 1 else 200
    runner.fit(feed.train, spans, epochs, whole=True)
    return statistics.fmean(spans.epochs_ns[1:])


def median_step_ns(slices: Iterable[Slice]) -> float:
    return statistics.median(slice_.unit_ns for slice_ in slices)


def answer_pairs(readings: list[float], truths: list[int] | list[float], steps: int) -> None:
    """Lay each truth beside the reading before it or after it, in turn, so that drift evens out.

    Not beside the mean of both: where some epochs take far longer, the median of means is above that of single ones.
    """
    neighbours = [readings[place + place % 2] for place in range(len(truths))]
    ratios = [reading / truth for reading, truth in zip(neighbours, truths, strict=True)]
    print(json.dumps({"ratios": ratios, "epoch_s": statistics.median(truths) / 1e9, "steps": steps}))


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(*sys.argv[2:])
    else:
        with machine_lock():
            main(sys.argv[1], sys.argv[2:])
