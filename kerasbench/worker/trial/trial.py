"""One trial, phase by phase, from the import of the backend to the proof of what it ran on."""

import dataclasses
import gc
import importlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.exchange.devices import Device
from kerasbench.exchange.measurement import (
    Batch,
    Latency,
    Learning,
    Measurement,
    Parity,
    Published,
    Throughput,
    Training,
    Usage,
)
from kerasbench.exchange.messages import Message
from kerasbench.exchange.requests import TrialRequest, counts_epochs
from kerasbench.scenario import Regime, Scenario, ScenarioError, load, require_unchanged
from kerasbench.worker.isolation import refuse_other_frameworks
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.trial import native, parity, processors, proof, sized, terms, weights
from kerasbench.worker.trial.feed import Feed, prepare
from kerasbench.worker.trial.predict import time_batches, time_passes
from kerasbench.worker.trial.usage import Meter, peak_rss_bytes


@dataclass(frozen=True)
class _Prepared:
    """What a trial works with once its model is built."""

    request: TrialRequest
    pipe: Pipe
    backend: Backend
    scenario: Scenario
    regime: Regime
    feed: Feed
    model: Any
    callbacks: list[Any]


def run_trial(request: TrialRequest, pipe: Pipe) -> None:
    """Run every phase and send the measurement.

    Raises:
        TrialFailure: a failure whose cause is known (wrong device, loss not finite).
        ScenarioError: the scenario cannot be used. DataError: its rows cannot be had.
    """
    ready = _prepare(request, pipe)
    from kerasbench.worker.trial import train

    model, feed, regime = ready.model, ready.feed, ready.regime
    begun = _begin_training(ready)
    training, usage = _measure_training(ready, begun)
    prediction, throughput = ([], None) if request.protocol.kind == "sweep" else _measure_prediction(ready)
    with pipe.phase("finish"):
        found = proof.gather(ready.backend, request.device, model, _output(ready))
        proof.check(request.device, found)
        resolved = terms.resolve(model, ready.backend, request.device)
        terms.check(request.options, resolved, usage)
        rss_bytes, device_bytes = peak_rss_bytes(), ready.backend.peak_device_bytes(request.device)
    fallbacks = ready.backend.fallbacks(lambda: train.first_step(model, feed))
    compared = begun.parity or _silenced_parity(ready)
    measurement = Measurement(
        training=_taken_apart(ready, training),
        published=begun.published,
        batch=begun.batch,
        prediction=prediction,
        throughput=throughput,
        learning=begun.learning,
        parity=compared,
        proof=found,
        resolved=resolved,
        parameters=model.count_params(),
        train_samples=regime.train,
        steps_per_epoch=regime.steps,
        full_steps_per_epoch=regime.full_steps,
        peak_rss_bytes=rss_bytes,
        peak_device_bytes=device_bytes,
        usage=usage,
        fallbacks=fallbacks,
    )
    pipe.send(Message(measurement=measurement))


def _measure_prediction(ready: _Prepared) -> tuple[list[Latency], Throughput | None]:
    model, feed, protocol = ready.model, ready.feed, ready.request.protocol
    with ready.pipe.phase("predict"):
        prediction = [time_batches(model, feed, batch, protocol) for batch in sorted({1, feed.predict_batch})]
        return prediction, time_passes(model, feed, protocol)


def _output(ready: _Prepared) -> Any:
    """Return an output of the model where the device left it."""
    x = ready.feed.inputs(ready.feed.train[:1])
    return ready.model.forward(x) if ready.request.options.native else ready.backend.forward(ready.model, x)


def _prepare(request: TrialRequest, pipe: Pipe) -> _Prepared:
    """Import the backend, take the device, load the scenario, draw its rows, build its model."""
    refuse_other_frameworks(request.backend)
    if request.options.threads is not None:
        processors.limit(request.options.threads)  # before a framework sizes its pools
    with pipe.phase("import"):
        backend = backends.get(request.backend)
        importlib.import_module(backend.PACKAGE)
        import keras

        weights.remember_origins()
    with pipe.phase("device"):
        backend.configure(request.device, request.options)
        if request.options.dtype is not None:
            keras.config.set_dtype_policy(request.options.dtype)
        keras.ops.convert_to_numpy(keras.ops.sum(keras.ops.ones((2, 2))))
    with pipe.phase("scenario"):
        scenario, regime = _load(request)
    with pipe.phase("data"):
        feed = _rows(scenario, regime, request)
    regime = feed.regime
    with pipe.phase("build"):
        model = build_model(scenario, regime, backend, request)
        if request.options.native:
            model = native.build_twin(request, regime, model)
            gc.collect()  # the Keras model is held by cycles, and holds memory on the device
        callbacks = scenario.callbacks(tempfile.mkdtemp()) if scenario.callbacks else []
    return _Prepared(request, pipe, backend, scenario, regime, feed, model, callbacks)


def _load(request: TrialRequest) -> tuple[Scenario, Regime]:
    file = Path(request.file)
    require_unchanged(file, request.file_hash)
    scenario, _ = load(file)
    return scenario, scenario.regime(request.regime)


def _rows(scenario: Scenario, regime: Regime, request: TrialRequest) -> Feed:
    if request.options.size is not None:
        return sized.prepare(scenario, regime, request.options.size, request.seed, request.data)
    return prepare(scenario, regime, request.seed, request.data, whole=request.protocol.kind == "published")


def build_model(scenario: Scenario, regime: Regime, backend: Backend, request: TrialRequest) -> Any:
    model = scenario.build(regime)
    if not getattr(model, "compiled", False):
        raise ScenarioError("build() must return a compiled Keras model: call model.compile(...) before `return model`")
    if model.run_eagerly or model.steps_per_execution != 1:
        raise ScenarioError("compile() with run_eagerly or steps_per_execution cannot be measured: leave them out")
    counted = model.count_params()
    if scenario.parameters is not None and counted != scenario.parameters and regime.width == 1:
        raise ScenarioError(f"the model has {counted:,} parameters, the scenario says {scenario.parameters:,}")
    # Said explicitly: TensorFlow's "auto" looks at physical, not at visible devices.
    asked = request.options.jit
    model.jit_compile = _jit_default(model, backend, request.device) if asked is None else asked
    weights.share(model, request.seed)
    return model


def _jit_default(model: Any, backend: Backend, device: Device) -> bool:
    """Return what "auto" comes to: Keras compiles no model of which a layer says that it cannot be."""
    return backend.jit_default(device) and all(layer.supports_jit for layer in model._flatten_layers())


@dataclass(frozen=True)
class _Begun:
    """How training began: with the published epochs, or with one step by itself and a fixed number after it."""

    learning: Learning
    batch: Batch
    published: Published | None = None
    first_step_ns: int | None = None
    again_ns: list[int] = field(default_factory=list)
    parity: Parity | None = None


def _begin_training(ready: _Prepared) -> _Begun:
    from kerasbench.worker.trial import train

    model, feed, pipe = ready.model, ready.feed, ready.pipe
    if ready.request.protocol.kind == "published":
        with pipe.phase("published"):
            published, learning, batch = train.run_published(model, feed, ready.callbacks)
        return _Begun(learning, batch, published)
    with pipe.phase("first step"):
        first_step_ns, first_loss, batch = train.first_step(model, feed)
    learn = train.learn_briefly if ready.request.protocol.kind == "sweep" else train.learn
    with pipe.phase("learn"):
        learning, following = learn(model, feed, first_loss)
    compared = None if parity.random_layers(model) else Parity([first_loss, *following.losses], [])
    return _Begun(learning, batch, None, first_step_ns, following.fits_ns, compared)


def _measure_training(ready: _Prepared, begun: _Begun) -> tuple[Training, Usage]:
    """Measure steps and short epochs; return them with what the process used in the steps' phase."""
    from kerasbench.worker.trial import train

    model, feed, callbacks, backend = ready.model, ready.feed, ready.callbacks, ready.backend
    with ready.pipe.phase("train"):
        meter = Meter()
        clock = train.measure_blocks(model, feed, callbacks, backend, ready.request.protocol)
        usage = meter.read()
    epoch_steps, epochs_ns = _time_epochs(ready)
    training = Training(
        unit="epoch" if counts_epochs(feed.regime.steps) else "step",
        first_step_ns=begun.first_step_ns,
        again_ns=begun.again_ns,
        steps_per_block=clock.steps_per_block,
        warmup=clock.warmup,
        steady=clock.steady,
        blocks=clock.blocks,
        epoch_steps=epoch_steps,
        epochs_ns=epochs_ns,
    )
    return training, usage


def _taken_apart(ready: _Prepared, training: Training) -> Training:
    """Measure what a step is made of, where that was asked for: last, for its large products belong to no peak."""
    if not ready.request.protocol.parts or counts_epochs(ready.regime.steps):
        return training
    from kerasbench.worker.trial.parts import measure

    with ready.pipe.phase("parts"):
        parts = measure(ready.model, ready.feed, ready.backend, ready.request.protocol, training.steps_per_block)
    return dataclasses.replace(training, parts=parts)


def _time_epochs(ready: _Prepared) -> tuple[int, list[int]]:
    from kerasbench.worker.trial import train

    protocol = ready.request.protocol
    if protocol.kind == "sweep":
        return 0, []
    with ready.pipe.phase("epoch"):
        return train.time_epochs(ready.model, ready.feed, ready.callbacks, ready.backend, protocol)


def _silenced_parity(ready: _Prepared) -> Parity | None:
    """Compare what a second model computes without its random numbers; None where that cannot be, or is not asked."""
    protocol = ready.request.protocol
    calibrated = protocol.steps_per_block is not None  # so the cell's first trial has done it: all begin alike
    if protocol.kind == "published" or calibrated or not parity.can_be_silenced(ready.model):
        return None
    with ready.pipe.phase("parity"):
        try:
            again = build_model(ready.scenario, ready.regime, ready.backend, ready.request)
            return parity.check_silenced(again, ready.feed)
        except Exception:  # a second model that does not fit into memory, or cannot be built
            return None  # what has been measured stands, and the page says that it was not compared
