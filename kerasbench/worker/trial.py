"""One trial: ``begin`` makes the model; then come the phases that ``phases_of`` chooses, in the order given there."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NoReturn

from kerasbench import backends, private, sources, variants
from kerasbench.protocol import measurement, stages
from kerasbench.protocol.columns import GPU
from kerasbench.protocol.measurement import Batch, Measurement, Parity, Samples, Slice, Training, Turn, Usage
from kerasbench.protocol.messages import FIRST_CALL, FIRST_PREDICTION, FIRST_STEP, Code, Message, TrialFailure
from kerasbench.protocol.requests import Protocol, Sizes, TrialRequest, counts_epochs
from kerasbench.runners import Predictor
from kerasbench.runners.failure import leave_devices_to, own_step, refuse_other_frameworks
from kerasbench.runners.feed import Feed
from kerasbench.runners.inputs import describe
from kerasbench.runners.layers import can_be_silenced, random_layers, recurrent_code, sensitive_layers, silence
from kerasbench.runners.trainer import Trainer
from kerasbench.runtimes import Runtime
from kerasbench.worker import checks, predict, train
from kerasbench.worker.build import built, explained, started, untrained
from kerasbench.worker.caches import CacheReads
from kerasbench.worker.clock import SETTLE_GPU_NS, SETTLE_NS, UNHURRIED_NS, Ask, Pace, SliceClock
from kerasbench.worker.exported import loaded
from kerasbench.worker.movement import MovementMeter
from kerasbench.worker.parts import measure_parts
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.usage import Meter, card_share_reader, counters_reader, peak_rss_bytes

SLOW_TIMES = 2  # a step that is so many times as long as a slice is to be fills one by itself, whatever its hiccups


@dataclass
class Bench:
    """What the phases work with, once the model is built, and what they have found so far."""

    request: TrialRequest
    pipe: Pipe
    runner: Predictor
    meter: Meter
    cache: CacheReads = field(default_factory=lambda: CacheReads("", ()))
    made: int = 0  # programs, by a compiler during slices

    # Found so far, most of it by the names of ``Measurement`` and ``Training``.
    first_step_ns: int | None = None
    sizes: Sizes | None = None  # None: after published epochs
    batch: Batch = field(init=False)
    recurrent: dict[str, str] = field(default_factory=dict)  # by kind of layer, what computes it
    learning: measurement.Learning | None = None  # None: the model is not trained, or too slow for a quick look at it
    again_ns: list[int] = field(default_factory=list)
    step_ns: int | None = None  # the quickest of these, without its fit
    parity: Parity | None = None
    published: measurement.Published | None = None
    steps: SliceClock | None = None  # None: the model is not trained
    epochs: Samples = field(default_factory=lambda: Samples([], []))
    epoch_steps: int = 0
    epoch_ends: measurement.EpochEnds | None = None
    shuffle_ns: int | None = None
    prediction: list[measurement.Latency] = field(default_factory=list)
    throughput: measurement.Throughput | None = None
    generations: list[measurement.Generation] = field(default_factory=list)
    proof: measurement.Proof = field(init=False)
    resolved: measurement.Resolved = field(init=False)
    peak_rss_bytes: int = field(init=False)
    peak_device_bytes: int | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)
    parts: measurement.Parts | None = None
    compiler: measurement.Compiler | None = None
    builds: Samples | None = None
    vanishing: float | None = None
    exported: measurement.Exported | None = None
    movement: measurement.Movement | None = None
    moves: MovementMeter | None = None  # None: an earlier trial of this case has told how far its weights move

    def _programs(self) -> int:
        compiler = self.runner.compiler()
        return compiler.made if compiler else 0

    @property
    def trains(self) -> bool:
        return isinstance(self.runner, Trainer) and self.runner.scenario.trains

    @property
    def trainer(self) -> Trainer:
        assert isinstance(self.runner, Trainer), "what only predicts is measured by other phases"
        return self.runner

    @property
    def pace(self) -> Pace:
        on_gpu = self.request.device.kind == GPU
        settle_ns = SETTLE_GPU_NS if on_gpu else SETTLE_NS
        return Pace(self.request.protocol, self.runner.wait, settle_ns, self.meter, on_gpu)

    def leaves_out(self, stage: str) -> bool:
        by_size = self.sizes is not None and stage in self.sizes.left_out
        return by_size or self.request.protocol.leaves_out(stage, self.trains)

    def batches(self, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield those of these stages that are to be measured, and how many samples a prediction takes there."""
        batch = self.runner.feed.predict_batch
        for stage in names:
            facts = stages.STAGES[stage]
            if not self.leaves_out(stage) and self.request.protocol.agenda.predicts_in(facts, batch):
                yield stage, batch if facts.batched else 1

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report a phase in which the model's own steps may fail for the first time."""
        targets = self.runner.feed.train.y is not None
        own = own_step(self.runner.overrides, self.request.backend, name, targets)
        with self.pipe.phase(name), explained(self.request), own:
            yield

    def ask(self, stage: str) -> Ask:
        def ask(measured: Slice | None) -> Turn | None:
            if measured is None:
                self.made -= self._programs()
            turn = self.pipe.ask(Message(ready=stage) if measured is None else Message(slice=measured))
            if isinstance(turn, Sizes):  # it is not worth more
                self.sizes, turn = turn, None
            if turn is None:
                self.made += self._programs()
                return None
            self.meter.look_for_helpers()  # each time: Keras makes a new pool for a feed in each epoch
            if turn.lead_ns:
                self.made += self._programs()
                self.runner.keep_busy(turn.lead_ns)
                self.made -= self._programs()  # its own product is a program, too
            return turn

        return ask

    def sized(self, measure: Callable[[], int]) -> Sizes:
        """In a row's first block have steps measured, by which the parent finds them; ``measure`` returns ns."""
        sizes = self.sizes or self.pipe.ask(Message(ready=stages.PILOT))
        while not isinstance(sizes, Sizes):
            sizes = self.pipe.ask(Message(slice=Slice(1, measure())))
        return sizes


Respond = Callable[[Callable[[], Message]], NoReturn]  # sends what a function returns, or raises, and ends the process


def run_trial(request: TrialRequest, pipe: Pipe, respond: Respond) -> Message:
    """Raise TrialFailure (its cause is known), ScenarioError, or DataError where the rows cannot be had.

    A script is measured inside its ``fit``, from which ``respond`` ends the process.
    """
    for variant, value in variants.chosen(request.options):
        variant.before_import(value)
    lasts, on_device = request.protocol.lasts, None
    if lasts and request.device.kind == GPU:
        on_device = partial(backends.get(request.backend).device_bytes, request.device, peak=False)
    card = card_share_reader(request.card, request.neighbours)
    meter = Meter(counters_reader(), card=card, on_device=on_device, lasts=lasts)
    cache = CacheReads(request.caches, backends.get(request.backend).CACHED)
    kind, source = variants.runner(request.options), sources.of_request(request)
    if issubclass(kind, Runtime):
        refuse_other_frameworks(request.backend)
        runtime = loaded(kind, request, pipe)
        bench = Bench(request, pipe, runtime, meter, cache, sizes=request.protocol.sizes, exported=runtime.exported)
        return Message(measurement=measured(bench))
    if source.imports_frameworks:
        leave_devices_to(request.backend)
    else:
        refuse_other_frameworks(request.backend)
    assert issubclass(kind, Trainer)
    runner = started(kind, request, pipe)

    def measure() -> Message:
        built(runner, request, pipe)
        return Message(measurement=measured(Bench(request, pipe, runner, meter, cache, sizes=request.protocol.sizes)))

    return source.enter(request, pipe.phase, measure, respond)


def measured(trial: Bench) -> Measurement:
    for phase in phases_of(trial.request.protocol, trial.runner.feed, trial.trains, trial.runner.predicts):
        phase(trial)
    return measurement_of(trial)


def first_prediction(trial: Bench) -> None:
    """Note what a model that is not trained is given, what it predicts, and how long that takes."""
    with trial.pipe.phase(FIRST_PREDICTION):
        trial.batch = Batch(describe(trial.runner.feed.first_batch.x), "")
        if not trial.runner.feed.draws and trial.exported is None:  # which was held against Keras' as it was loaded
            outputs = checks.sample_outputs(trial.trainer)
            trial.parity = Parity([], [], outputs) if outputs else None
        trial.sizes = trial.sized(predict.pilot(trial.runner))


def first_steps(trial: Bench) -> None:
    """Train one step, and as many as the row's sizes say: the case's first trial tells what they teach and compute."""
    runner, protocol = trial.trainer, trial.request.protocol
    if protocol.steps_per_slice is None:
        trial.moves = MovementMeter(runner)
    with trial.phase(FIRST_STEP), recurrent_code(runner.layers) as trial.recurrent:
        trial.first_step_ns, first_loss, trial.batch = train.first_step(runner)
    if protocol.steps_per_slice is not None:  # found by an earlier trial of this case, whose losses were compared
        if protocol.repeats and protocol.sizes:
            with trial.phase("learn"):
                steps = range(1, protocol.sizes.parity_steps)
                trial.again_ns = [train.single_step(runner, index).fit_ns for index in steps]
        return
    is_random = runner.scenario.dataset(runner.feed.workload).random
    brief = protocol.agenda.sized or is_random or not protocol.repeats or runner.feed.is_of_script
    with trial.phase("learn"):
        trial.learning, following, trial.sizes = train.learn(runner, first_loss, trial.sized, brief)
        if trial.moves:
            trial.moves.begin_slices()
    trial.batch = dataclasses.replace(trial.batch, digest=runner.feed.digest)
    trial.again_ns = [step.fit_ns for step in following]
    trial.step_ns = min(step.ns for step in following)
    losses = [first_loss, *(step.loss for step in following)]
    # Keras shows 0 where a step of the model's own has not updated its tracker of the loss.
    hides_losses = not any(losses) and "train_step" in runner.overrides
    if not runner.feed.draws and not hides_losses and not random_layers(runner.layers):
        trial.parity = Parity(losses, [], sensitive=sensitive_layers(runner.layers))


def published_epochs(trial: Bench) -> None:
    with trial.phase("published"), recurrent_code(trial.trainer.layers) as trial.recurrent:
        trial.published, trial.learning, trial.batch = train.run_published(trial.trainer)


def steps(trial: Bench) -> None:
    """Measure slices of steps, or of whole epochs where these are too short."""
    runner = trial.trainer
    with trial.pipe.phase("train"):
        pace = trial.pace
        is_slow = trial.step_ns is not None and trial.step_ns >= SLOW_TIMES * pace.protocol.slice_ns
        # Nothing is left to calibrate, unless the step was slow because it waited for a feed's workers.
        if trial.step_ns is not None and is_slow and not runner.queued_batches:
            units = 1 if counts_epochs(runner.feed.workload.steps) else runner.steps_per_execution
            slow = dataclasses.replace(pace.protocol, steps_per_slice=units)
            if trial.step_ns >= max(slow.warmup_max_ns, UNHURRIED_NS):
                slow = dataclasses.replace(slow, warmup_slices=0)  # its first steps have warmed it up
            pace = dataclasses.replace(pace, protocol=slow)
        done = trial.meter.done
        trial.steps = train.measure_steps(runner, pace, trial.ask(stages.TRAIN))
        steps, by_epoch = trial.meter.done - done, counts_epochs(runner.feed.workload.steps)
        if by_epoch:
            steps *= runner.feed.workload.steps
        else:
            ends_ns = trial.steps.epoch_ends_ns
            trial.epoch_ends = measurement.EpochEnds(len(ends_ns), sum(ends_ns), steps)
        if trial.moves:
            trial.movement = trial.moves.movement(steps)


def short_epochs(trial: Bench) -> None:
    """Measure slices of short epochs, which tell what an epoch costs once."""
    if trial.leaves_out(stages.EPOCH):
        return
    workload = trial.runner.feed.workload
    with trial.pipe.phase("epoch"):
        epochs = train.measure_epochs(trial.trainer, trial.pace, trial.ask(stages.EPOCH))
        # A published epoch takes longer than a short one to draw the order of its rows. So these slices are longer in
        # the file than the parent saw them while it decided how many there are.
        few = train.short_rows(workload, workload.batch_size)
        trial.shuffle_ns = more_ns = trial.trainer.shuffle_ns(workload.train, few, workload.batch_size)
        with_order_ns = [ns + count * (more_ns or 0) for ns, count in zip(epochs.ns, epochs.count, strict=True)]
        trial.epochs = dataclasses.replace(epochs, ns=with_order_ns)
    trial.epoch_steps = train.SHORT_EPOCH_STEPS


def predictions(trial: Bench) -> None:
    """Measure slices of single predictions, of predictions of a batch, and of passes over the test samples."""
    runner, pace, sizes = trial.runner, trial.pace, trial.sizes
    calls = sizes.warmup_calls if sizes else predict.ROTATED_INPUTS
    with trial.pipe.phase("predict"):
        on_batch = (stages.ONE, stages.BATCH)
        for stage, batch in trial.batches(on_batch if runner.takes_batches() else ()):
            trial.prediction.append(predict.time_batches(runner, batch, pace, trial.ask(stage), calls))
        if not (trial.leaves_out(stages.ALL) or trial.request.protocol.agenda.sized):
            most_batches = sizes.pass_batches if sizes else None
            trial.throughput = predict.time_passes(runner, pace, trial.ask(stages.ALL), most_batches)


def calls(trial: Bench) -> None:
    sizes = trial.sizes
    assert sizes is not None  # the first prediction has found them
    for stage, batch in trial.batches(
        [stage for stage in stages.CALLS if stage in trial.request.protocol.agenda.shares]
    ):
        with trial.pipe.phase(FIRST_CALL):
            called = predict.first_call(stages.STAGES[stage].way, trial.runner, batch)
        if called is not None:
            with trial.pipe.phase("calls"):
                latency = predict.time_way(called, trial.pace, trial.ask(stage), sizes.warmup_calls)
            trial.prediction.append(latency)


def builds(trial: Bench) -> None:
    trial.batch = Batch(describe(trial.runner.feed.first_batch.x), "")
    with trial.pipe.phase("builds"):
        protocol = trial.request.protocol
        build = partial(trial.trainer.build_again, protocol.clears, protocol.fits)
        trial.builds = predict.time_builds(build, trial.pace, trial.ask(stages.BUILD))


def texts(trial: Bench) -> None:
    """Measure slices in which sequences are continued, where the scenario says that its model generates tokens."""
    runner = trial.runner
    if not runner.new_tokens:
        return
    with trial.pipe.phase("generate"):
        for stage in stages.GENERATIONS:
            way = stages.STAGES[stage].way
            if (way == stages.OWN) == (runner.generate is not None) and not trial.leaves_out(stage):
                generation = predict.time_texts(way, runner, trial.pace, trial.ask(stage))
                trial.generations += [generation] if generation else []


def finish(trial: Bench) -> None:
    """Prove what it ran on and with which configuration; read the peaks of memory."""
    request, runner = trial.request, trial.runner
    with trial.pipe.phase("finish"):
        compiler = runner.compiler()
        trial.compiler = compiler and dataclasses.replace(compiler, while_measured=trial.made)
        proof = runner.proof(runner.feed.inputs(runner.feed.train[:1]))
        trial.proof = dataclasses.replace(proof, cards=checks.visible_cards(request.device))
        checks.check_device(request.device, trial.proof)
        recurrent = [f"{kind}: {code}" for kind, code in trial.recurrent.items()]
        noted = checks.of_process() | {"recurrent": recurrent, "cached": trial.cache.count}
        trial.resolved = dataclasses.replace(runner.resolved(), **noted)
        if not request.fills_caches:
            checks.check_options(request.options, trial.resolved, _usage(trial))
        trial.peak_rss_bytes = peak_rss_bytes()
        trial.peak_device_bytes = runner.peak_device_bytes()
        trial.vanishing = runner.vanishing()  # takes memory, so after its peak is read
    if trial.trains and request.protocol.agenda.trains:
        trainer, fallbacks = trial.trainer, trial.trainer.backend.fallbacks
        trial.fallbacks = fallbacks(lambda: train.first_step(trainer)) if fallbacks else {}


def silenced_parity(trial: Bench) -> None:
    """Where the first model could not be compared; before that what weights of its own predict, untrained."""
    runner = trial.trainer
    predicts = trial.request.protocol.outputs or runner.scenario.keeps_weights
    steps = trial.sizes.silenced_steps if trial.sizes else 0
    silences = bool(steps) and trial.parity is None and can_be_silenced(runner.layers)
    if runner.feed.draws or not (predicts or silences):
        return
    with trial.pipe.phase("parity"):
        try:
            fresh = untrained(runner, trial.request)
            if fresh is None:
                return
            if runner.backend.LOSS_BY_LOGITS and checks.saturates(
                fresh, trial.sizes.parity_steps if trial.sizes else 1
            ):
                trial.parity = trial.parity and dataclasses.replace(trial.parity, losses=[])
                trial.movement, silences = None, False  # from another loss come other gradients
            outputs = checks.sample_outputs(fresh) if predicts else []
            if silences:
                silenced = silence(fresh.layers)
                losses = [train.single_step(fresh, index).loss for index in range(steps)]
                trial.parity = Parity(losses, silenced, sensitive=sensitive_layers(fresh.layers))
            trial.parity = dataclasses.replace(trial.parity or Parity([], []), outputs=outputs)
        except Exception as error:  # a second model that does not fit into memory, or cannot be built
            if isinstance(error, TrialFailure) and error.failure.code is Code.NONFINITE:
                raise
            return  # what has been measured stands, and the page says that it was not compared


def parts(trial: Bench) -> None:
    """Measure what a step is made of: last, for its large products belong to no peak."""
    if trial.leaves_out(stages.PARTS):
        return
    assert trial.steps is not None  # they went before
    protocol = dataclasses.replace(trial.pace.protocol, steps_per_slice=trial.steps.warmup.steps_per_slice)
    pace = dataclasses.replace(trial.pace, protocol=protocol)
    with trial.pipe.phase("parts"):
        trial.parts = measure_parts(trial.trainer, pace, trial.ask(stages.PARTS))


Phase = Callable[[Bench], None]
PHASES: dict[str, tuple[Phase, ...]] = {  # by agenda
    "steady": (first_steps, steps, short_epochs, predictions, finish, silenced_parity, parts),
    "published": (published_epochs, steps, short_epochs, predictions, finish),
    "sweep": (first_steps, steps, finish, silenced_parity),
    "calls": (first_prediction, predictions, calls, texts, finish),
    "builds": (builds, finish),
    "predict_calls": (first_prediction, calls, finish),
    stages.UNTRAINED.name: (first_prediction, predictions, finish),
    "sweep_predictions": (first_prediction, predictions, finish),
}


def phases_of(protocol: Protocol, feed: Feed, trains: bool = True, can_predict: bool = True) -> list[Phase]:
    agenda = protocol.agenda.of(trains)
    if not agenda.trains:
        return list(PHASES[agenda.name])
    by_epoch = counts_epochs(feed.workload.steps)
    left_out: dict[Phase, bool] = {
        short_epochs: by_epoch or not protocol.epochs or feed.stream is not None,
        predictions: not protocol.predicts or not can_predict,
        silenced_parity: protocol.steps_per_slice is not None,
        parts: by_epoch or not protocol.parts,
    }
    return [phase for phase in PHASES[agenda.name] if not left_out.get(phase)]


def measurement_of(trial: Bench) -> Measurement:
    workload = trial.runner.feed.workload

    def of(kind: type[Training | Measurement]) -> dict[str, Any]:
        return {name: value for name, value in vars(trial).items() if name in kind.__dataclass_fields__}

    training = None
    if (clock := trial.steps) is not None:
        unit: Literal["step", "epoch"] = "epoch" if counts_epochs(workload.steps) else "step"
        warmup, slices = Samples.of(clock.warmup.slices), Samples.of(clock.slices)
        training = Training(
            unit,
            steps_per_slice=clock.warmup.steps_per_slice,
            warmup=warmup,
            slices=slices,
            streamed=trial.runner.feed.stream is not None,
            **of(Training),
        )
    return Measurement(
        training=training,
        parameters=trial.runner.parameters,
        train_samples=workload.train,
        steps_per_epoch=workload.steps,
        full_steps_per_epoch=workload.full_steps,
        usage=_usage(trial),
        lost=private.lost(),
        **of(Measurement),
    )


def _usage(trial: Bench) -> Usage:
    calls = [latency.slices for latency in trial.prediction if latency.way == stages.ON_BATCH]
    calls = calls or [latency.slices for latency in trial.prediction]
    samples = Samples.of(trial.steps.slices) if trial.steps else trial.builds or calls[-1]
    return Usage(cpu_ns=sum(ns or 0 for ns in samples.cpu_ns or ()), wall_ns=sum(samples.ns))
