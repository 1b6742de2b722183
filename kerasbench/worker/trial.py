"""One trial, phase by phase: import, device, data, build, first step, learn, train, epoch, predict, finish."""

import importlib
import math
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.scenario import Regime, Scenario, ScenarioError, content_hash, load
from kerasbench.wire import Batch, Learning, Measurement, Message, Published, Resolved, Training, TrialRequest
from kerasbench.worker import proof
from kerasbench.worker.blocks import counts_epochs
from kerasbench.worker.feed import Feed, prepare
from kerasbench.worker.isolation import refuse_other_frameworks
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.predict import time_predict


def run_trial(request: TrialRequest, pipe: Pipe) -> None:
    """Run every phase and send the measurement.

    Raises:
        TrialFailure: a failure whose cause is known (wrong device, loss not finite).
        ScenarioError: the scenario cannot be used. DataError: its rows cannot be had.
    """
    refuse_other_frameworks(request.backend)
    with pipe.phase("import"):
        backend = backends.get(request.backend)
        importlib.import_module(backend.PACKAGE)
        import keras
    with pipe.phase("device"):
        backend.configure(request.device)
        keras.ops.convert_to_numpy(keras.ops.sum(keras.ops.ones((2, 2))))
    with pipe.phase("scenario"):
        scenario, regime = _load(request)
    with pipe.phase("data"):
        feed = prepare(scenario, regime, request.seed, request.data, whole=request.protocol.kind == "published")
    with pipe.phase("build"):
        model = _build(scenario, regime, backend, request)
        callbacks = scenario.callbacks(tempfile.mkdtemp()) if scenario.callbacks else []
    begun = _begin_training(model, feed, callbacks, request, pipe)
    training, cpu_ns = _measure_training(model, feed, callbacks, backend, request, pipe, begun.first_step_ns)
    with pipe.phase("predict"):
        prediction = [time_predict(model, feed, batch, request.protocol) for batch in sorted({1, feed.predict_batch})]
    with pipe.phase("finish"):
        found = proof.gather(backend, model, backend.forward(model, feed.inputs(feed.train[:1])))
        proof.check(request.device, found)
        measurement = Measurement(
            training=training,
            published=begun.published,
            batch=begun.batch,
            prediction=prediction,
            learning=begun.learning,
            proof=found,
            resolved=_resolved(model, backend),
            parameters=model.count_params(),
            train_samples=regime.train,
            steps_per_epoch=regime.steps,
            full_steps_per_epoch=regime.full_steps,
            peak_rss_bytes=_peak_rss_bytes(),
            peak_device_bytes=backend.peak_device_bytes(request.device),
            cpu_ns=cpu_ns,
        )
    pipe.send(Message(measurement=measurement))


def _load(request: TrialRequest) -> tuple[Scenario, Regime]:
    file = Path(request.file)
    if content_hash(file) != request.file_hash:
        raise ScenarioError(f"{file} changed while the run was going on; start the run again")
    scenario, _ = load(file)
    return scenario, scenario.regime(request.regime)


def _build(scenario: Scenario, regime: Regime, backend: Backend, request: TrialRequest) -> Any:
    model = scenario.build(regime)
    if not getattr(model, "compiled", False):
        raise ScenarioError("build() must return a compiled Keras model: call model.compile(...) before `return model`")
    if model.run_eagerly or model.steps_per_execution != 1:
        raise ScenarioError("compile() with run_eagerly or steps_per_execution cannot be measured: leave them out")
    counted = model.count_params()
    if scenario.parameters is not None and counted != scenario.parameters:
        raise ScenarioError(f"the model has {counted:,} parameters, the scenario says {scenario.parameters:,}")
    # Said explicitly: TensorFlow's "auto" looks at physical, not at visible devices.
    model.jit_compile = backend.jit_default(request.device)
    _share_weights(model, request.seed)
    return model


def _share_weights(model: Any, seed: int) -> None:
    """Draw the matrices with NumPy: the same seed gives different weights on each backend.

    Glorot & Bengio's uniform limit, sqrt(6 / (fan_in + fan_out)) (AISTATS 2010), Keras' own default.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    weights = model.get_weights()
    for position, weight in enumerate(weights):
        if weight.ndim > 1 and weight.dtype.kind == "f":
            field = math.prod(weight.shape[:-2])
            limit = math.sqrt(6 / (field * (weight.shape[-2] + weight.shape[-1])))
            weights[position] = rng.uniform(-limit, limit, weight.shape).astype(weight.dtype)
    model.set_weights(weights)


@dataclass(frozen=True)
class _Begun:
    """How training began: with the published epochs, or with one step by itself and a fixed number after it."""

    learning: Learning
    batch: Batch
    published: Published | None = None
    first_step_ns: int | None = None


def _begin_training(model: Any, feed: Feed, callbacks: list[Any], request: TrialRequest, pipe: Pipe) -> _Begun:
    from kerasbench.worker import train

    if request.protocol.kind == "published":
        with pipe.phase("published"):
            published, learning, batch = train.run_published(model, feed, callbacks)
        return _Begun(learning, batch, published)
    with pipe.phase("first step"):
        first_step_ns, first_loss, batch = train.first_step(model, feed)
    with pipe.phase("learn"):
        learning = train.learn(model, feed, first_loss)
    return _Begun(learning, batch, None, first_step_ns)


def _measure_training(
    model: Any,
    feed: Feed,
    callbacks: list[Any],
    backend: Backend,
    request: TrialRequest,
    pipe: Pipe,
    first_step_ns: int | None,
) -> tuple[Training, int]:
    """Measure steps and short epochs; return them with the CPU time that the steps' phase took, in ns."""
    from kerasbench.worker import train

    with pipe.phase("train"):
        cpu_ns = time.process_time_ns()
        clock = train.measure_blocks(model, feed, callbacks, backend, request.protocol)
        cpu_ns = time.process_time_ns() - cpu_ns
    with pipe.phase("epoch"):
        epoch_steps, epochs_ns = train.time_epochs(model, feed, callbacks, backend)
    training = Training(
        unit="epoch" if counts_epochs(feed.regime.steps) else "step",
        first_step_ns=first_step_ns,
        steps_per_block=clock.steps_per_block,
        warmup=clock.warmup,
        steady=clock.steady,
        blocks=clock.blocks,
        epoch_steps=epoch_steps,
        epochs_ns=epochs_ns,
    )
    return training, cpu_ns


def _resolved(model: Any, backend: Backend) -> Resolved:
    import keras

    return Resolved(
        jit=bool(model.jit_compile),
        dtype_policy=keras.config.dtype_policy().name,
        image_data_format=keras.config.image_data_format(),
        threads=backend.threads(),
        versions={"python": sys.version.split()[0], "keras": keras.__version__} | backend.versions(),
    )


def _peak_rss_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB
