"""The model of a trial: the scenario's own, with weights that are the same on every backend, or its baseline.

Keras' random weights are drawn by NumPy.
"""

import gc
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kerasbench import variants
from kerasbench.backends import Backend
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import TrialRequest, too_few_executions
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.feed import Feed
from kerasbench.worker.native import build_baseline

Origin = Literal["random", "given", "unknown"]  # where a weight's first value comes from

ORIGIN = "_kerasbench_origin"  # the attribute of a variable that keeps it
NO_CALL = "does not have a `call"  # Keras of a class without one
RANDOM = "RandomInitializer"  # the base of all of Keras' initializers that draw random numbers
# Keras' others, by their names now and in older versions; they give the same on every backend.
CONSTANT = frozenset({"Constant", "Zeros", "Ones", "Identity", "IdentityInitializer", "STFT", "STFTInitializer"})
# The same on every backend as well; a backend's own tensor may have been drawn by the backend.
NUMPY_OR_PYTHON = (np.ndarray, np.generic, list, tuple, int, float)


def remember_origins() -> None:
    """Have every variable that is made from now on keep where its first value came from: Keras forgets that."""
    import keras

    initialize = keras.Variable.__init__

    def remember(self: Any, initializer: Any, *args: Any, **named: Any) -> None:
        initialize(self, initializer, *args, **named)
        is_name = isinstance(initializer, str)
        setattr(self, ORIGIN, origin(keras.initializers.get(initializer) if is_name else initializer))

    keras.Variable.__init__ = remember


def origin(initializer: Any) -> Origin:
    classes = {base.__name__ for base in type(initializer).__mro__}
    if RANDOM in classes:
        return "random"
    return "given" if classes & CONSTANT or isinstance(initializer, NUMPY_OR_PYTHON) else "unknown"


def share_weights(model: Any, seed: int) -> None:
    """Draw a model's random weights with NumPy: from the same seed each backend would draw others."""
    rng = np.random.default_rng(seed)
    weights = model.get_weights()
    for position, (variable, weight) in enumerate(zip(model.weights, weights, strict=True)):
        if is_drawn(getattr(variable, ORIGIN, "unknown"), str(variable.dtype), weight.ndim):
            limit = glorot_limit(weight.shape)
            weights[position] = rng.uniform(-limit, limit, weight.shape).astype(weight.dtype)
    model.set_weights(weights)


def is_drawn(origin: Origin, dtype: str, dimensions: int) -> bool:
    """Tell whether a weight is to be drawn.

    An unknown initializer may draw random numbers, or give what is no noise, such as an LSTM's bias: of what it makes,
    matrices are drawn, because they are mostly random, and what has fewer dimensions is left.
    """
    return "float" in dtype and (origin == "random" or (origin == "unknown" and dimensions > 1))


def glorot_limit(shape: Sequence[int]) -> float:
    """sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, AISTATS 2010); as in Keras, a vector has its length for both."""
    if len(shape) < 2:
        return math.sqrt(3 / math.prod(shape))
    return math.sqrt(6 / (math.prod(shape[:-2]) * (shape[-2] + shape[-1])))


def build(scenario: Scenario, feed: Feed, backend: Backend, request: TrialRequest) -> Any:
    """Return the Keras model, or if the options ask for it its baseline, which begins with the same weights."""
    model = build_keras(scenario, feed, backend, request)
    if not variants.replaces(request.options):
        return model
    baseline = build_baseline(request, feed.workload, model)
    del model
    gc.collect()  # the Keras model is held by cycles, and holds memory on the device
    return baseline


def build_keras(scenario: Scenario, feed: Feed, backend: Backend, request: TrialRequest) -> Any:
    """Return the model with the shared weights; raise ScenarioError, or TrialFailure if the options are the cause."""
    workload = feed.workload
    model = scenario.build(workload)
    if scenario.trains and not getattr(model, "compiled", False):
        raise ScenarioError("build() must return a compiled Keras model: call model.compile(...) before `return model`")
    stateful = [layer.name for layer in model._flatten_layers() if getattr(layer, "stateful", False)]
    if stateful:
        cause = f"{stateful[0]} is stateful, so it takes one batch size alone"
        raise ScenarioError(f"{cause}: build it with stateful=False")
    if model.run_eagerly:
        raise ScenarioError("compile() with run_eagerly cannot be measured: leave it out")
    make_weights(model, feed)
    actual, wanted = model.count_params(), scenario.parameters_of(workload)
    if wanted is not None and actual != wanted and workload.width == 1:
        raise ScenarioError(f"the model has {actual:,} parameters, the scenario says {wanted:,}")
    # Set explicitly: TensorFlow's "auto" looks at physical, not at visible devices.
    model.jit_compile = jit_default(model, backend, request.device)
    for variant, value in variants.chosen(request.options):
        if refused := variant.on_model(value, model, request.backend):
            raise TrialFailure(Failure(Code.UNSUPPORTED, *refused))
    require_executions(model, workload, request)
    if not scenario.keeps_weights:
        share_weights(model, request.seed)
    return model


def require_executions(model: Any, workload: Workload, request: TrialRequest) -> None:
    """Raise ScenarioError for an epoch with too few steps, TrialFailure where Keras cannot do it on this backend."""
    if cause := too_few_executions(workload.steps, model.steps_per_execution):
        raise ScenarioError(f"{cause}: compile the model with fewer, or give --steps-per-execution 1")
    if model.steps_per_execution == 1:
        return
    try:
        model.make_train_function()
    except ValueError as error:
        cause = f"Keras cannot run {model.steps_per_execution} steps in one execution on {request.backend}: {error}"
        remedy = f"leave --steps-per-execution out for {request.backend}, or give it 1"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy)) from error
    model.train_function = None  # made again by the first step, whose time it is part of


def build_and_drop(scenario: Scenario, feed: Feed, clears: bool) -> None:
    """Build the scenario's model as a user would, and drop it; ``clears`` Keras' session before that."""
    if clears:
        import keras

        keras.backend.clear_session()
    make_weights(scenario.build(feed.workload), feed)


def make_weights(model: Any, feed: Feed) -> None:
    """`fit` would make them later, and none would be shared. A class may call itself built before its layers are."""
    if not model.built or not all(layer.built for layer in model._flatten_layers()):
        x, *_ = feed.step(feed.train[:1])
        try:
            model(x)
        except NotImplementedError as error:
            if NO_CALL not in str(error):  # what this backend cannot compute
                raise
            cause = "the model, or a layer of its own, has no call(): its weights are made by one, and predictions too"
            raise ScenarioError(cause) from error


def jit_default(model: Any, backend: Backend, device: Device) -> bool:
    """Return what "auto" comes to: Keras compiles no model of which a layer says that it cannot be."""
    return backend.jit_default(device) and all(layer.supports_jit for layer in model._flatten_layers())
