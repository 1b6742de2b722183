"""One trial: ``run_trial`` makes the model; ``measured`` takes its first steps and then the stages of its plan."""

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from kerasbench import backends, facts, private, sources, variants
from kerasbench.protocol import measurement, stages
from kerasbench.protocol.columns import GPU
from kerasbench.protocol.measurement import Batch, Measurement, Parity, Samples, Slice, Turn, Usage
from kerasbench.protocol.messages import FIRST_CALL, FIRST_PREDICTION, FIRST_STEP, Code, Message, TrialFailure
from kerasbench.protocol.requests import TrialRequest, counts_epochs
from kerasbench.protocol.stages import FEED, PARTS, STAGES, TRAIN
from kerasbench.runners.failure import leave_devices_to, refuse_other_frameworks
from kerasbench.runners.inputs import describe
from kerasbench.runners.layers import can_be_silenced, random_layers, sensitive_layers, silence
from kerasbench.runners.trainer import Trainer
from kerasbench.runtimes import Runtime
from kerasbench.worker import checks, predict, train
from kerasbench.worker.build import built, started, untrained
from kerasbench.worker.caches import CacheReads
from kerasbench.worker.clock import UNHURRIED_NS, Ask, Pace
from kerasbench.worker.context import TrialContext
from kerasbench.worker.evidence import read_facts
from kerasbench.worker.exported import loaded
from kerasbench.worker.feeds import measure_alone
from kerasbench.worker.movement import MovementMeter
from kerasbench.worker.parts import Parts, measure_parts
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.usage import Meter, card_share_reader, counters_reader

STREAM_STEPS = 6  # of a stream's first `fit`: as many as the columns of other rows train before they are compared
SLOW_TIMES = 2  # a step that is so many times as long as a slice is to be fills one by itself, whatever its hiccups


@dataclass(frozen=True)
class Start:
    """What comes before all stages: the first step or prediction, and what follows from it."""

    batch: Batch
    first_step_ns: int | None = None
    again_ns: list[int] = field(default_factory=list)  # the same call, right after it
    step_ns: int | None = None  # the quickest of these, without its fit
    learning: measurement.Learning | None = None  # None: not trained, or too slow for a quick look at it
    parity: Parity | None = None
    published: measurement.Published | None = None
    notes: Mapping[str, facts.Notes] = field(default_factory=dict)  # of facts, taken meanwhile
    moves: MovementMeter | None = None  # None: an earlier trial of this case has told how far its weights move


@dataclass(frozen=True)
class Steps:
    """The facts of a stage of training steps."""

    training: measurement.Training
    movement: measurement.Movement | None


Respond = Callable[[Callable[[], Message]], NoReturn]  # sends what a function returns, or raises, and ends the process


def run_trial(request: TrialRequest, pipe: Pipe, respond: Respond) -> Message:
    """Raise TrialFailure (its cause is known), ScenarioError, or DataError where the rows cannot be had.

    A script is measured inside its ``fit``, from which ``respond`` ends the process.
    """
    for variant, value in variants.chosen(request.options):
        variant.before_import(value)
    reads_memory, on_device = request.plan.reads_memory, None
    if reads_memory and request.device.kind == GPU:
        on_device = partial(backends.get(request.backend).device_bytes, request.device, peak=False)
    card = card_share_reader(request.card, request.neighbours)
    meter = Meter(counters_reader(), card=card, on_device=on_device, reads_memory=reads_memory)
    cache = CacheReads(request.caches, backends.get(request.backend).CACHED)
    kind, source = variants.runner(request.options), sources.of_request(request)
    if issubclass(kind, Runtime):
        refuse_other_frameworks(request.backend)
        runtime = loaded(kind, request, pipe)
        context = TrialContext(request, pipe, runtime, meter, cache, runtime.exported)
        return Message(measurement=measured(context))
    if source.imports_frameworks:
        leave_devices_to(request.backend)
    elif feeder := variants.feeder(request.options):
        feeding = [name for name in backends.names() if feeder.package == backends.get(name).PACKAGE]
        refuse_other_frameworks(request.backend, *feeding)
        leave_devices_to(request.backend)
    else:
        refuse_other_frameworks(request.backend)
    assert issubclass(kind, Trainer)
    runner = started(kind, request, pipe)

    def measure() -> Message:
        built(runner, request, pipe)
        return Message(measurement=measured(TrialContext(request, pipe, runner, meter, cache)))

    return source.enter(request, pipe.phase, measure, respond)


def measured(trial: TrialContext) -> Measurement:
    """Return what a trial measured, without those slices that the parent has had in turns."""
    start = begin(trial)
    stage_facts = {
        stage: MEASURE[stage](trial, stage, start)
        for stage in trial.plan.stages
        if stage not in (FEED, PARTS) and trial.measures(stage)
    }
    end = finish(trial, start)
    parity, learning, movement = start.parity, start.learning, None
    if isinstance(steps := stage_facts.get(TRAIN), Steps):
        movement = steps.movement
    # Behind the memory's peaks, to which its large products do not belong.
    alone = feed_alone(trial, steps) if isinstance(steps, Steps) and trial.measures(FEED) else None
    parts = step_parts(trial, steps) if isinstance(steps, Steps) and trial.measures(PARTS) else None
    is_compared = (
        trial.plan.steps_per_slice is not None or trial.plan.agenda.in_full
    )  # by an earlier trial, or by nothing
    if isinstance(steps, Steps) and not is_compared:  # last, as of a script there is one model, which it silences
        parity, learning, same_loss = compare_fresh(trial, start)
        movement = movement if same_loss else None  # from another loss come other gradients
    workload = trial.runner.feed.workload
    return Measurement(
        samples=parts.samples if parts else {},
        training=steps.training if isinstance(steps, Steps) else None,
        published=start.published,
        batch=start.batch,
        learning=learning,
        parity=parity,
        proof=end.proof,
        resolved=end.resolved,
        parameters=trial.runner.parameters,
        train_samples=workload.train,
        steps_per_epoch=workload.steps,
        full_steps_per_epoch=workload.full_steps,
        peak_rss_bytes=end.peak_rss_bytes,
        peak_device_bytes=end.peak_device_bytes,
        short_epoch=next((fact for fact in stage_facts.values() if isinstance(fact, measurement.ShortEpoch)), None),
        calls={stage: fact for stage, fact in stage_facts.items() if isinstance(fact, measurement.Calls)},
        passes=next((fact for fact in stage_facts.values() if isinstance(fact, measurement.Passes)), None),
        texts={stage: fact for stage, fact in stage_facts.items() if isinstance(fact, measurement.Texts)},
        peak_flops=parts.peak_flops if parts else None,
        fallbacks=end.fallbacks,
        sizes=trial.sizes,
        compiler=end.compiler,
        vanishing=end.vanishing,
        exported=trial.exported,
        feed=alone,
        movement=movement,
        facts=read_facts(trial, start.notes, end.resolved, end.compiler),
        lost=private.lost(),
    )


def begin(trial: TrialContext) -> Start:
    if TRAIN in trial.plan.stages:
        return published_epochs(trial) if trial.plan.agenda.in_full else first_steps(trial)
    if not trial.plan.agenda.predicts:
        return Start(Batch(describe(trial.runner.feed.first_batch.x), ""))
    return first_prediction(trial)


def watch(trial: TrialContext) -> AbstractContextManager[Mapping[str, facts.Notes]]:
    return facts.watch(trial.runner.layers, trial.request.backend)


def first_prediction(trial: TrialContext) -> Start:
    """Note what a model that is not trained is given, what it predicts, and how long that takes."""
    parity = None
    with trial.pipe.phase(FIRST_PREDICTION), watch(trial) as notes:
        if not trial.runner.feed.draws and trial.exported is None:  # which was held against Keras' as it was loaded
            outputs = checks.sample_outputs(trial.trainer)
            parity = Parity([], [], outputs) if outputs else None
        trial.find_sizes(predict.pilot(trial.runner))
    return Start(Batch(describe(trial.runner.feed.first_batch.x), ""), parity=parity, notes=notes)


def first_steps(trial: TrialContext) -> Start:
    """Train one step, and as many as the row's sizes say: the case's first trial tells what they teach and compute."""
    runner, plan = trial.trainer, trial.plan
    if runner.feed.is_streamed:
        return first_stream_steps(trial)
    is_first = plan.steps_per_slice is None  # else an earlier trial of this case was calibrated and compared
    moves = MovementMeter(runner) if is_first else None
    with trial.phase(FIRST_STEP), watch(trial) as notes:
        first_step_ns, first_loss, batch = train.first_step(runner)
    if not is_first:
        again_ns: list[int] = []
        if plan.repeats_first_step and plan.sizes:
            with trial.phase("learn"):
                again_ns = [train.single_step(runner, index).fit_ns for index in range(1, plan.sizes.parity_steps)]
        return Start(batch, first_step_ns, again_ns, notes=notes)
    is_random = runner.scenario.dataset(runner.feed.workload).random
    brief = plan.agenda.sized or is_random or not plan.repeats_first_step or runner.feed.is_of_script
    with trial.phase("learn"):
        learning, following = train.learn(runner, first_loss, trial.find_sizes, brief)
        if moves:
            moves.begin_slices()
    return Start(
        dataclasses.replace(batch, digest=runner.feed.digest),
        first_step_ns,
        [step.fit_ns for step in following],
        min(step.ns for step in following),
        learning,
        parity_of(runner, [first_loss, *(step.loss for step in following)]),
        notes=notes,
        moves=moves,
    )


def first_stream_steps(trial: TrialContext) -> Start:
    """Train a script's first steps by its stream. They are compared by batches from memory, once it is measured."""
    runner, plan = trial.trainer, trial.plan
    moves = MovementMeter(runner) if plan.steps_per_slice is None else None  # else an earlier trial was calibrated
    with trial.phase(FIRST_STEP), watch(trial) as notes:
        count = STREAM_STEPS if moves or plan.repeats_first_step else 1
        first_step_ns, following_ns, batch = train.first_stream_steps(runner, count)
    batch, step_ns = dataclasses.replace(batch, digest=runner.feed.digest), None
    if moves:
        left_ns, step_ns = iter(following_ns), min(following_ns)
        with trial.phase("learn"):
            trial.find_sizes(lambda: next(left_ns, 0) or train.one_more_ns(runner))
            moves.begin_slices()
    return Start(batch, first_step_ns, following_ns, step_ns, notes=notes, moves=moves)


def parity_of(runner: Trainer, losses: list[float]) -> Parity | None:
    if (loop := runner.feed.loop) is not None and not runner.scenario.trains:
        outputs = checks.numbers_of(loop.results[0]) if can_be_silenced(runner.layers) else []
        return Parity([], [], outputs) if outputs else None
    # Keras shows 0 where a step of the model's own has not updated its tracker of the loss.
    hides_losses = not any(losses) and "train_step" in runner.overrides
    if runner.feed.draws or hides_losses or random_layers(runner.layers):
        return None
    return Parity(losses, [], sensitive=sensitive_layers(runner.layers))


def published_epochs(trial: TrialContext) -> Start:
    with trial.phase("published"), watch(trial) as notes:
        published, learning, batch = train.run_published(trial.trainer)
    return Start(batch, learning=learning, published=published, notes=notes)


Facts = Steps | measurement.ShortEpoch | measurement.Calls | measurement.Passes | measurement.Texts


def steps(trial: TrialContext, stage: str, start: Start) -> Steps:
    """Measure slices of steps, or of whole epochs where these are too short."""
    runner = trial.trainer
    by_epoch = counts_epochs(runner.feed.workload.steps)
    with trial.pipe.phase("train", stage):
        pace = unhurried(trial.pace, start.step_ns, 1 if by_epoch else runner.steps_per_execution)
        # Nothing is left to calibrate, unless the step was slow because it waited for a feed's workers.
        pace = trial.pace if runner.queued_batches else pace
        done = trial.meter.done
        clock = train.measure_steps(runner, pace, trial.ask(stage))
        count = (trial.meter.done - done) * (runner.feed.workload.steps if by_epoch else 1)
        movement = start.moves.movement(count) if start.moves else None
    ends_ns = clock.epoch_ends_ns
    training = measurement.Training(
        "epoch" if by_epoch else "step",
        start.first_step_ns,
        clock.warmup.steps_per_slice,
        Samples.of(clock.warmup.slices),
        start.again_ns,
        None if by_epoch else measurement.EpochEnds(len(ends_ns), sum(ends_ns), count),
        runner.feed.stream is not None,
    )
    return Steps(training, movement)


def unhurried(pace: Pace, step_ns: int | None, units: int) -> Pace:
    """Return the pace for steps so slow that a slice has as few units as it may; else the same."""
    if step_ns is None or step_ns < SLOW_TIMES * pace.plan.slice_ns:
        return pace
    slow = dataclasses.replace(pace.plan, steps_per_slice=units)
    if step_ns >= max(slow.warmup_max_ns, UNHURRIED_NS):
        slow = dataclasses.replace(slow, warmup_slices=0)  # its first steps have warmed it up
    return dataclasses.replace(pace, plan=slow)


def short_epochs(trial: TrialContext, stage: str, start: Start) -> measurement.ShortEpoch:
    """Measure slices of short epochs, which tell what an epoch costs once."""
    runner, workload = trial.trainer, trial.runner.feed.workload
    with trial.pipe.phase("epoch"):
        few = train.short_rows(workload, workload.batch_size)
        # A published epoch takes longer than a short one to draw the order of its rows.
        shuffle_ns = runner.shuffle_ns(workload.train, few, workload.batch_size)
        train.measure_epochs(runner, trial.pace, lengthen(trial.ask(stage), shuffle_ns or 0))
    return measurement.ShortEpoch(train.SHORT_EPOCH_STEPS, shuffle_ns)


def lengthen(ask: Ask, unit_ns: int) -> Ask:
    """Report slices as if each of their units had taken longer by so much."""

    def longer(slice_: Slice | None) -> Turn | None:
        return ask(slice_ and dataclasses.replace(slice_, ns=slice_.ns + slice_.count * unit_ns))

    return longer


def batch_predictions(trial: TrialContext, stage: str, start: Start) -> measurement.Calls | None:
    """Measure slices of ``predict_on_batch``. None: the model takes batches of another size alone."""
    if not trial.runner.takes_batches():
        return None
    warmup_calls = trial.sizes.warmup_calls if trial.sizes else predict.ROTATED_INPUTS
    with trial.pipe.phase("predict", stage):
        return predict.time_batches(trial.runner, batch_of(trial, stage), trial.pace, trial.ask(stage), warmup_calls)


def passes(trial: TrialContext, stage: str, start: Start) -> measurement.Passes:
    with trial.pipe.phase("predict", stage):
        most_batches = trial.sizes.pass_batches if trial.sizes else None
        return predict.time_passes(trial.runner, trial.pace, trial.ask(stage), most_batches)


def calls(trial: TrialContext, stage: str, start: Start) -> measurement.Calls | None:
    """Measure slices of calls in one more way. None: the column has no such way."""
    assert trial.sizes is not None  # the first prediction has found them
    with trial.pipe.phase(FIRST_CALL):
        way = predict.first_call(STAGES[stage].way, trial.runner, batch_of(trial, stage))
    if way is None:
        return None
    with trial.pipe.phase("calls", stage):
        return predict.time_way(way, trial.pace, trial.ask(stage), trial.sizes.warmup_calls)


def batch_of(trial: TrialContext, stage: str) -> int:
    return trial.runner.feed.predict_batch if STAGES[stage].batched or trial.plan.agenda.sized else 1


def builds(trial: TrialContext, stage: str, start: Start) -> None:
    with trial.pipe.phase("builds"):
        build = partial(trial.trainer.build_again, STAGES[stage].clears, STAGES[stage].fits)
        predict.time_builds(build, trial.pace, trial.ask(stage))


def texts(trial: TrialContext, stage: str, start: Start) -> measurement.Texts | None:
    """Measure slices in which sequences are continued. None: the column has no such way."""
    with trial.pipe.phase("generate", stage):
        return predict.time_texts(STAGES[stage].way, trial.runner, trial.pace, trial.ask(stage))


MEASURE: Mapping[str, Callable[[TrialContext, str, Start], Facts | None]] = {
    TRAIN: steps,
    stages.EPOCH: short_epochs,
    **dict.fromkeys((stages.ONE, stages.BATCH), batch_predictions),
    stages.ALL: passes,
    **dict.fromkeys(stages.CALLS, calls),
    **dict.fromkeys(stages.GENERATIONS, texts),
    **dict.fromkeys(stages.BUILDS, builds),
}  # but for the parts of a step, which come after all


@dataclass(frozen=True)
class End:
    """What a trial ran on, with which configuration, and the peaks of its memory."""

    proof: measurement.Proof
    resolved: measurement.Resolved
    compiler: measurement.Compiler | None
    peak_rss_bytes: int
    peak_device_bytes: int | None
    vanishing: float | None
    fallbacks: dict[str, int]


def finish(trial: TrialContext, start: Start) -> End:
    request, runner = trial.request, trial.runner
    with trial.pipe.phase("finish"):
        compiler = runner.compiler()
        proof = runner.proof(runner.feed.inputs(runner.feed.train[:1]))
        proof = dataclasses.replace(proof, cards=checks.visible_cards(request.device))
        checks.check_device(request.device, proof)
        noted = checks.of_process() | {"cached": trial.cache.count}
        resolved = dataclasses.replace(runner.resolved(), **noted)
        if not request.fills_caches:
            standing = stages.standing(trial.slices)
            checks.check_options(
                request.options, resolved, Usage.of(Samples.of(trial.slices[standing] if standing else ()))
            )
        memory, on_device = trial.pipe.memory, trial.pipe.on_device
        peaks_bytes = memory.so_far() or 0, on_device.so_far() if on_device else None
        vanishing = runner.vanishing()  # takes memory, so after its peak is read
    fallbacks = trial.trainer.backend.fallbacks if TRAIN in trial.plan.stages else None
    return End(
        proof,
        resolved,
        compiler and dataclasses.replace(compiler, while_measured=trial.programs),
        *peaks_bytes,
        vanishing,
        fallbacks(lambda: train.first_step(trial.trainer)) if fallbacks else {},
    )


def compare_fresh(trial: TrialContext, start: Start) -> tuple[Parity | None, measurement.Learning | None, bool]:
    """Compute by a fresh model what the first could not show: losses without random numbers, untrained predictions.

    Return also what a stream's first batches teach it, and whether its loss is that of other backends: False where
    Keras computes it from saturated outputs.
    """
    runner, sizes, parity, learning, same_loss = trial.trainer, trial.sizes, start.parity, start.learning, True
    predicts = trial.plan.compares_outputs or runner.scenario.keeps_weights
    steps = 0  # whose losses are still to be compared: of a stream, none was so far
    if sizes and parity is None and can_be_silenced(runner.layers):
        is_plain = runner.feed.is_streamed and not random_layers(runner.layers)
        steps = sizes.parity_steps if is_plain else sizes.silenced_steps
    if runner.feed.draws or not (predicts or steps):
        return parity, learning, same_loss
    with trial.pipe.phase("parity"):
        try:
            fresh = untrained(runner, trial.request)
            if fresh is None:
                return parity, learning, same_loss
            if runner.backend.LOSS_BY_LOGITS and checks.saturates(fresh, sizes.parity_steps if sizes else 1):
                same_loss, steps = False, 0
                parity = parity and dataclasses.replace(parity, losses=[])
            outputs = checks.sample_outputs(fresh) if predicts else []
            if steps:
                silenced = silence(fresh.layers)
                fresh.model.train_function = None  # it may have been traced with what is silenced now
                losses = [train.single_step(fresh, index).loss for index in range(steps)]
                parity = Parity(losses, silenced, sensitive=sensitive_layers(fresh.layers))
                if runner.feed.is_streamed:  # by the first batch once more, as of a script's arrays
                    again = train.single_step(fresh, 0).loss
                    learning = measurement.Learning(steps + 1, losses[0], again, loss=again, accuracy=None)
            parity = dataclasses.replace(parity or Parity([], []), outputs=outputs)
        except Exception as error:  # a second model that does not fit into memory, or cannot be built
            if isinstance(error, TrialFailure) and error.failure.code is Code.NONFINITE:
                raise
            # What has been measured stands, and the page says that it was not compared.
    return parity, learning, same_loss


def feed_alone(trial: TrialContext, steps: Steps) -> measurement.FeedAlone | None:
    """Measure what feeds the steps by itself, by slices of as many batches."""
    plan = dataclasses.replace(trial.plan, steps_per_slice=steps.training.steps_per_slice)
    with trial.pipe.phase("feed alone"):
        return measure_alone(trial.trainer, dataclasses.replace(trial.pace, plan=plan), trial.ask(FEED))


def step_parts(trial: TrialContext, steps: Steps) -> Parts | None:
    """Measure what a step is made of, by slices of as many steps as those before."""
    plan = dataclasses.replace(trial.plan, steps_per_slice=steps.training.steps_per_slice)
    with trial.pipe.phase("parts"):
        return measure_parts(trial.trainer, dataclasses.replace(trial.pace, plan=plan), trial.ask(PARTS))
