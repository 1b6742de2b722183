"""One trial, phase by phase: import, device, data, build, first step, learn, train, epoch, predict, finish."""

import importlib
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.scenario import Regime, Scenario, ScenarioError, content_hash, load
from kerasbench.wire import (
    Code,
    Failure,
    Latency,
    Learning,
    Measurement,
    Message,
    Resolved,
    Training,
    TrialRequest,
)
from kerasbench.worker import proof
from kerasbench.worker.blocks import BlockClock, counts_epochs
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.feed import Feed, prepare
from kerasbench.worker.isolation import refuse_other_frameworks
from kerasbench.worker.pipe import Pipe

ENDLESS = 1_000_000  # epochs; a window ends the fit long before
LEARN_STEPS = 64  # the same for every backend, so that losses can be laid side by side
LEARN_SAMPLES = 16_384  # at most this many samples in those steps, so that a full batch of 52,500 takes 5 steps
LEARN_MIN_STEPS = 5
SHORT_EPOCH_STEPS = 2  # the fewer steps, the larger the share of the cost per epoch in an epoch
SHORT_EPOCHS = 7  # the first warms up, the last has no end mark: five are recorded
EPOCHS_MAX_NS = 2_000_000_000
ROTATED_INPUTS = 8  # different inputs in turn, so that no layer of caching answers
FULL_BATCH_PREDICT = 32  # Keras' default for predict, where training takes the whole set at once


def run_trial(request: TrialRequest, pipe: Pipe) -> None:
    """Run every phase and send the measurement.

    Raises:
        TrialFailure: a failure whose cause is known (wrong device, loss not finite, parameters not as declared).
        ScenarioError: the scenario cannot be used.
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
        feed = prepare(scenario, regime, request.seed)
    with pipe.phase("build"):
        model = _build(scenario, regime, backend, request)
    with pipe.phase("first step"):
        first_step_ns, first_loss = _first_step(model, feed)
    with pipe.phase("learn"):
        learning = _learn(model, feed, first_loss)
    with pipe.phase("train"):
        cpu_ns = time.process_time_ns()
        clock = _train(model, feed, backend, request)
        cpu_ns = time.process_time_ns() - cpu_ns
    with pipe.phase("epoch"):
        epoch_steps, epochs_ns = _time_epochs(model, feed, backend)
    with pipe.phase("predict"):
        prediction = [_time_predict(model, feed, batch, request) for batch in _predict_batches(feed)]
    with pipe.phase("finish"):
        found = proof.gather(backend, model, backend.forward(model, feed.x[:1]))
        proof.check(request.device, found)
        measurement = Measurement(
            training=Training(
                unit="epoch" if counts_epochs(regime.steps) else "step",
                first_step_ns=first_step_ns,
                steps_per_block=clock.steps_per_block,
                warmup=clock.warmup,
                steady=clock.steady,
                blocks=clock.blocks,
                epoch_steps=epoch_steps,
                epochs_ns=epochs_ns,
            ),
            prediction=prediction,
            learning=learning,
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


def _fit(model: Any, feed: Feed, samples: int, **options: Any) -> Any:
    """Fit on the first samples exactly as a user does, in the given order, without a progress bar."""
    return model.fit(feed.x[:samples], feed.y[:samples], batch_size=feed.batch, shuffle=False, verbose=0, **options)


def _first_step(model: Any, feed: Feed) -> tuple[int, float]:
    """Trace, compile and run one step. Keras ends an epoch synchronised, so `fit` returning is the end of it."""
    start_ns = time.perf_counter_ns()
    history = _fit(model, feed, feed.batch)
    first_step_ns = time.perf_counter_ns() - start_ns
    return first_step_ns, _finite(history.history["loss"][-1])


def _learn(model: Any, feed: Feed, first_loss: float) -> Learning:
    """Train a fixed number of steps and evaluate, so that backends can be compared by what they learned."""
    steps = max(LEARN_MIN_STEPS, min(LEARN_STEPS, LEARN_SAMPLES // feed.batch))
    in_one_epoch = min(steps, len(feed.x) // feed.batch)
    epochs = -(-steps // in_one_epoch)
    _finite(_fit(model, feed, in_one_epoch * feed.batch, epochs=epochs).history["loss"][-1])
    seen = model.evaluate(feed.x_test, feed.y_test, batch_size=feed.batch, verbose=0, return_dict=True)
    return Learning(
        steps=1 + epochs * in_one_epoch,
        first_loss=first_loss,
        loss=_finite(seen["loss"]),
        accuracy=_accuracy(model, feed),
    )


def _accuracy(model: Any, feed: Feed) -> float | None:
    """Return the share of unseen samples whose largest output is their class; None for a regression.

    Counted here, not by a Keras metric, which would be part of every timed step.
    """
    scores = model.predict(feed.x_test, batch_size=feed.batch, verbose=0)
    if scores.ndim != 2 or scores.shape[-1] < 2:
        return None
    classes = feed.y_test if feed.y_test.ndim == 1 else feed.y_test.argmax(axis=-1)
    return float((scores.argmax(axis=-1) == classes).mean())


def _train(model: Any, feed: Feed, backend: Backend, request: TrialRequest) -> BlockClock:
    from kerasbench.worker.window import EpochWindow, StepWindow, measure_sync_ns

    by_epoch = counts_epochs(feed.regime.steps)
    sync_ns = measure_sync_ns(backend.synchronize, model)
    full_steps = len(feed.x) // feed.batch
    clock = BlockClock(request.protocol, None if by_epoch else full_steps, sync_ns)
    window = (EpochWindow if by_epoch else StepWindow)(clock, backend.synchronize)
    samples = len(feed.x) if by_epoch else full_steps * feed.batch
    validation = feed.validation if by_epoch else None
    history = _fit(model, feed, samples, epochs=ENDLESS, callbacks=[window], validation_data=validation)
    _finite(history.history["loss"][-1])
    return clock


def _time_epochs(model: Any, feed: Feed, backend: Backend) -> tuple[int, list[int]]:
    """Time short epochs, validation and partial last batch as published; their full steps are subtracted later."""
    from kerasbench.worker.window import EpochTimer

    if counts_epochs(feed.regime.steps):
        return 0, []
    partial = feed.regime.train % feed.batch
    timer = EpochTimer(backend.synchronize, EPOCHS_MAX_NS)
    samples = SHORT_EPOCH_STEPS * feed.batch + partial
    _fit(model, feed, samples, epochs=SHORT_EPOCHS, callbacks=[timer], validation_data=feed.validation)
    return SHORT_EPOCH_STEPS, timer.epochs_ns


def _predict_batches(feed: Feed) -> list[int]:
    batch = FULL_BATCH_PREDICT if feed.regime.batch is None else feed.batch
    return sorted({1, min(batch, len(feed.x))})


def _time_predict(model: Any, feed: Feed, batch: int, request: TrialRequest) -> Latency:
    """Time `predict_on_batch`, NumPy in and NumPy out, over inputs in rotation."""
    starts = [start % (len(feed.x) - batch + 1) for start in range(0, ROTATED_INPUTS * batch, batch)]
    inputs = [feed.x[start : start + batch] for start in starts]
    for given in inputs:
        model.predict_on_batch(given)
    calls_ns: list[int] = []
    began_ns = time.perf_counter_ns()
    protocol = request.protocol
    while len(calls_ns) < protocol.predict_min_calls and time.perf_counter_ns() - began_ns < protocol.predict_max_ns:
        given = inputs[len(calls_ns) % ROTATED_INPUTS]
        start_ns = time.perf_counter_ns()
        model.predict_on_batch(given)
        calls_ns.append(time.perf_counter_ns() - start_ns)
    return Latency(batch, calls_ns)


def _finite(loss: Any) -> float:
    value = float(loss)
    if not math.isfinite(value):
        raise TrialFailure(
            Failure(Code.NONFINITE, f"the loss became {value}", "a smaller learning rate, or scaled inputs")
        )
    return value


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
