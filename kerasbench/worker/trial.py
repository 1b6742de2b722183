"""One trial, phase by phase, from the import of the backend to the proof of what it ran on."""

import dataclasses
import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.protocol.columns import GPU
from kerasbench.protocol.measurement import (
    STAGES,
    Batch,
    Latency,
    Learning,
    Measurement,
    Parity,
    Parts,
    Proof,
    Published,
    Resolved,
    Slice,
    Throughput,
    Training,
    Turn,
    Usage,
)
from kerasbench.protocol.messages import Code, Failure, Message
from kerasbench.protocol.requests import Protocol, ProtocolKind, TrialRequest, counts_epochs
from kerasbench.scenario import Scenario, Workload, require_unchanged
from kerasbench.worker import checks, predict, usage
from kerasbench.worker import model as models
from kerasbench.worker.checks import RecurrentSpy
from kerasbench.worker.clock import Ask, Pace, SliceClock, settle_ns
from kerasbench.worker.failure import TrialFailure, own_step, refuse_other_frameworks
from kerasbench.worker.feed import Feed, prepare, prepare_sized, shuffle_ns
from kerasbench.worker.inputs import is_nested
from kerasbench.worker.model import remember_origins
from kerasbench.worker.pipe import Pipe, Turns
from kerasbench.worker.resolve import resolve
from kerasbench.worker.usage import BusyCores, Meter, peak_rss_bytes
from kerasbench.worker.wrapped import Sourced

TRAIN, EPOCH, ONE, BATCH, ALL, PARTS = STAGES


@dataclass(frozen=True)
class Subject:
    """What the phases of a trial work with, once its model is built."""

    request: TrialRequest
    pipe: Pipe
    turns: Turns
    backend: Backend
    scenario: Scenario
    feed: Feed
    model: Any
    callbacks: list[Any]
    meter: Meter

    @property
    def pace(self) -> Pace:
        device = self.request.device
        return Pace(self.request.protocol, self.backend.synchronize, settle_ns(device), self.meter, device.kind == GPU)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Tell of a phase in which the model's own steps may fail for the first time."""
        with self.pipe.phase(name), own_step(self.model, self.request.backend, name):
            yield

    def ask(self, stage: str) -> Ask:
        """Return what waits for the turns of a stage."""

        def ask(measured: Slice | None) -> Turn | None:
            self.meter.busy.pause()
            turn = self.turns.next(stage, measured)
            if measured is None:
                self.meter.look_for_helpers()  # those of a feed have been started by then
            if turn is not None and turn.lead_ns:
                from kerasbench.worker.train import keep_busy

                keep_busy(turn.lead_ns)
            if turn is not None:
                self.meter.busy.resume()
            return turn

        return ask


@dataclass
class Findings:
    """What the phases have found so far; what has no default is found by every protocol.

    A model that is not trained has neither ``learning`` nor ``steps``.
    """

    learning: Learning | None = None
    batch: Batch = field(init=False)
    steps: SliceClock | None = None
    proof: Proof = field(init=False)
    resolved: Resolved = field(init=False)
    peak_rss_bytes: int = field(init=False)
    recurrent: list[str] = field(default_factory=list)
    peak_device_bytes: int | None = None
    first_step_ns: int | None = None
    again_ns: list[int] = field(default_factory=list)
    published: Published | None = None
    epoch_steps: int = 0
    epochs: list[Slice] = field(default_factory=list)
    shuffle_ns: int | None = None
    prediction: list[Latency] = field(default_factory=list)
    throughput: Throughput | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)
    parity: Parity | None = None
    parts: Parts | None = None


def run_trial(request: TrialRequest, pipe: Pipe, turns: Turns) -> None:
    """Run every phase of the protocol and send the measurement.

    Raises:
        TrialFailure: a failure whose cause is known (wrong device, loss not finite).
        ScenarioError: the scenario cannot be used. DataError: its rows cannot be had.
    """
    with BusyCores(request.options.busy_cores) as busy:  # before it limits itself to some processors
        subject, found = (
            begin(request, pipe, turns, Meter(busy=busy, card=usage.card_use_of(request.device))),
            Findings(),
        )
        for phase in phases_of(request.protocol, subject.feed.workload, subject.scenario.trains):
            phase(subject, found)
        pipe.send(Message(measurement=measurement_of(subject, found)))


def begin(request: TrialRequest, pipe: Pipe, turns: Turns, meter: Meter) -> Subject:
    """Import the backend, take the device, load the scenario, draw its rows, build its model."""
    refuse_other_frameworks(request.backend)
    if request.options.threads is not None:
        checks.limit_processors(request.options.threads)  # before a framework sizes its pools
    with pipe.phase("import"):
        backend = backends.get(request.backend)
        importlib.import_module(backend.PACKAGE)
        import keras

        remember_origins()
    with pipe.phase("device"):
        backend.configure(request.device, request.options)
        if request.options.dtype is not None:
            keras.config.set_dtype_policy(request.options.dtype)
        keras.ops.convert_to_numpy(keras.ops.sum(keras.ops.ones((2, 2))))
    with pipe.phase("scenario"):
        sourced = _load(request)
        scenario, workload = sourced.scenario, sourced.scenario.workload(request.workload)
    if sourced.look is not None:
        with pipe.phase("load"):  # what it takes is known once it is loaded
            sourced.look()
    with pipe.phase("data"):
        feed = _rows(scenario, workload, request)
    with pipe.phase("build"):
        model = models.build(scenario, feed, backend, request)
        callbacks = scenario.callbacks(tempfile.mkdtemp()) if scenario.callbacks else []
    return Subject(request, pipe, turns, backend, scenario, feed, model, callbacks, meter)


def _load(request: TrialRequest) -> Sourced:
    file = Path(request.file)
    require_unchanged(file, request.file_hash, request.model_config)
    found = resolve(file, request.model_config)
    if not found.scenario.trains and request.protocol.kind == "sweep":
        cause = f"{request.scenario} is not trained, and a sweep measures training steps"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "compile the model, and save it again", "scenario"))
    return found


def _rows(scenario: Scenario, workload: Workload, request: TrialRequest) -> Feed:
    if request.options.size is not None:
        return prepare_sized(scenario, workload, request.options.size, request.seed, request.data)
    feed = prepare(scenario, workload, request.seed, request.data, whole=request.protocol.kind == "published")
    rows = feed.train
    if request.options.native and (is_nested(rows.x) or is_nested(rows.y) or rows.weights is not None):
        cause = "a twin without Keras takes one array for x and one for y"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "leave --native out for this scenario", "data"))
    return feed


def first_steps(subject: Subject, found: Findings) -> None:
    """Train one step by itself, and a fixed number of steps after it; fewer in a sweep, and where all is random."""
    from kerasbench.worker import train

    model, feed = subject.model, subject.feed
    with subject.phase("first step"), RecurrentSpy(model) as spy:
        found.first_step_ns, first_loss, found.batch = train.first_step(model, feed)
    found.recurrent = spy.found
    brief = subject.request.protocol.kind == "sweep" or subject.scenario.dataset(feed.workload).random
    learn = train.learn_briefly if brief else train.learn
    with subject.phase("learn"):
        found.learning, following = learn(model, feed, first_loss)
    found.again_ns = following.fits_ns
    if not feed.draws and not checks.random_layers(model):
        found.parity = Parity([first_loss, *following.losses], [], sensitive=checks.sensitive(model))


def published_epochs(subject: Subject, found: Findings) -> None:
    """Run all published epochs in one `fit`."""
    from kerasbench.worker import train

    with subject.phase("published"), RecurrentSpy(subject.model) as spy:
        found.published, found.learning, found.batch = train.run_published(
            subject.model, subject.feed, subject.callbacks
        )
    found.recurrent = spy.found


def steps(subject: Subject, found: Findings) -> None:
    """Measure slices of steps, or of whole epochs where these are too short."""
    from kerasbench.worker import train

    with subject.pipe.phase("train"):
        found.steps = train.measure_steps(
            subject.model, subject.feed, subject.callbacks, subject.pace, subject.ask(TRAIN)
        )


def short_epochs(subject: Subject, found: Findings) -> None:
    """Measure slices of short epochs, which tell what an epoch costs once."""
    from kerasbench.worker import train

    with subject.pipe.phase("epoch"):
        found.epochs = train.measure_epochs(
            subject.model, subject.feed, subject.callbacks, subject.pace, subject.ask(EPOCH)
        )
        if (
            subject.feed.workload.feed is None and not subject.request.options.native
        ):  # else the order is its own affair
            found.shuffle_ns = _shuffle_ns(subject)
            found.epochs = [dataclasses.replace(one, ns=one.ns + one.count * found.shuffle_ns) for one in found.epochs]
    found.epoch_steps = train.SHORT_EPOCH_STEPS


def _shuffle_ns(subject: Subject) -> int:
    """Return what a published epoch needs to draw the order of its rows, beyond what a short one does."""
    from kerasbench.worker import train

    workload = subject.feed.workload
    few = train.short_rows(workload, subject.feed.batch)
    return shuffle_ns(workload.train, few, subject.feed.batch)


def predictions(subject: Subject, found: Findings) -> None:
    """Measure slices of single predictions, of predictions of a batch, and of passes over the test samples."""
    model, feed, pace = subject.model, subject.feed, subject.pace
    with subject.pipe.phase("predict"):
        found.prediction = [predict.time_batches(model, feed, 1, pace, subject.ask(ONE))]
        if feed.predict_batch != 1:
            found.prediction.append(predict.time_batches(model, feed, feed.predict_batch, pace, subject.ask(BATCH)))
        found.throughput = predict.time_passes(model, feed, pace, subject.ask(ALL))


def finish(subject: Subject, found: Findings) -> None:
    """Prove what it ran on and on which terms; read the peaks of memory."""
    from kerasbench.worker import train

    request, backend, model = subject.request, subject.backend, subject.model
    with subject.pipe.phase("finish"):
        found.proof = checks.gather(backend, request.device, model, _output(subject))
        checks.check_device(request.device, found.proof)
        resolved = checks.resolved_terms(model, backend, request.device)
        found.resolved = dataclasses.replace(resolved, recurrent=found.recurrent, busy_cores=subject.meter.busy.kept)
        checks.check_terms(request.options, found.resolved, _usage(found))
        found.peak_rss_bytes = peak_rss_bytes()
        found.peak_device_bytes = backend.peak_device_bytes(request.device)
    if subject.scenario.trains:
        found.fallbacks = backend.fallbacks(lambda: train.first_step(model, subject.feed))


def _output(subject: Subject) -> Any:
    """Return an output of the model where the device left it."""
    x = subject.feed.inputs(subject.feed.train[:1])
    return subject.model.forward(x) if subject.request.options.native else subject.backend.forward(subject.model, x)


def silenced_parity(subject: Subject, found: Findings) -> None:
    """Compare what a second model computes without its random numbers, where the first could not be compared.

    Before that, where the scenario brings its weights, what it predicts: the first has been trained meanwhile.
    """
    brings = subject.scenario.keeps_weights
    silences = found.parity is None and checks.can_be_silenced(subject.model)
    if subject.feed.draws or not (brings or silences):
        return
    with subject.pipe.phase("parity"):
        try:
            again = models.build_keras(subject.scenario, subject.feed, subject.backend, subject.request)
            outputs = checks.parity_outputs(again, subject.feed) if brings else []
            if silences:
                found.parity = checks.check_silenced(again, subject.feed)
            found.parity = dataclasses.replace(found.parity or Parity([], []), outputs=outputs)
        except Exception:  # a second model that does not fit into memory, or cannot be built
            return  # what has been measured stands, and the page says that it was not compared


def foresight(subject: Subject, found: Findings) -> None:
    """Note what a model that is not trained is given, and what it predicts."""
    from kerasbench.worker.train import describe

    with subject.pipe.phase("first prediction"):
        found.batch = Batch(describe(subject.feed.train[: subject.feed.batch].x), "")
        found.parity = (
            None if subject.feed.draws else Parity([], [], checks.parity_outputs(subject.model, subject.feed))
        )


def parts(subject: Subject, found: Findings) -> None:
    """Measure what a step is made of: last, for its large products belong to no peak."""
    from kerasbench.worker.parts import measure

    assert found.steps is not None  # they went before
    protocol = dataclasses.replace(subject.pace.protocol, steps_per_slice=found.steps.warmup.steps_per_slice)
    pace = dataclasses.replace(subject.pace, protocol=protocol)
    with subject.pipe.phase("parts"):
        found.parts = measure(subject.model, subject.feed, subject.backend, pace, subject.ask(PARTS))


Phase = Callable[[Subject, Findings], None]
PHASES: dict[ProtocolKind, tuple[Phase, ...]] = {
    "steady": (first_steps, steps, short_epochs, predictions, finish, silenced_parity, parts),
    "published": (published_epochs, steps, short_epochs, predictions, finish),
    "sweep": (first_steps, steps, finish, silenced_parity),
}


UNTRAINED: tuple[Phase, ...] = (foresight, predictions, finish)


def phases_of(protocol: Protocol, workload: Workload, trains: bool = True) -> list[Phase]:
    """Return what follows once the model is built, in its order."""
    if not trains:
        return list(UNTRAINED)
    by_epoch = counts_epochs(workload.steps)
    calibrated = protocol.steps_per_slice is not None  # so the case's first trial was compared: all begin alike
    left_out: dict[Phase, bool] = {
        short_epochs: by_epoch,
        silenced_parity: calibrated,
        parts: by_epoch or not protocol.parts,
    }
    return [phase for phase in PHASES[protocol.kind] if not left_out.get(phase)]


def measurement_of(subject: Subject, found: Findings) -> Measurement:
    """Return all that the phases have found."""
    workload = subject.feed.workload
    return Measurement(
        training=_training(workload, found),
        published=found.published,
        batch=found.batch,
        prediction=found.prediction,
        throughput=found.throughput,
        learning=found.learning,
        parity=found.parity,
        proof=found.proof,
        resolved=found.resolved,
        parameters=subject.model.count_params(),
        train_samples=workload.train,
        steps_per_epoch=workload.steps,
        full_steps_per_epoch=workload.full_steps,
        peak_rss_bytes=found.peak_rss_bytes,
        peak_device_bytes=found.peak_device_bytes,
        usage=_usage(found),
        fallbacks=found.fallbacks,
    )


def _training(workload: Workload, found: Findings) -> Training | None:
    if found.steps is None:
        return None
    warmup = found.steps.warmup
    return Training(
        unit="epoch" if counts_epochs(workload.steps) else "step",
        first_step_ns=found.first_step_ns,
        again_ns=found.again_ns,
        steps_per_slice=warmup.steps_per_slice,
        warmup=warmup.slices,
        slices=found.steps.slices,
        epoch_steps=found.epoch_steps,
        epochs=found.epochs,
        shuffle_ns=found.shuffle_ns,
        parts=found.parts,
    )


def _usage(found: Findings) -> Usage:
    """Return what the slices of steps used, or of predictions."""
    slices = found.prediction[-1].slices if found.steps is None else found.steps.slices
    return Usage(
        cpu_ns=sum(slice_.cpu_ns or 0 for slice_ in slices),
        wall_ns=sum(slice_.ns for slice_ in slices),
        involuntary_switches=None if found.steps is None else found.steps.switches,
    )
