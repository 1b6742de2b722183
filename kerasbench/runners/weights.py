"""A Keras model's weights, the same on every backend: what Keras would draw at random is drawn by NumPy."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from kerasbench.runners.feed import Feed
from kerasbench.scenario import ScenarioError

Origin = Literal["random", "given", "unknown"]  # where a weight's first value comes from

ORIGIN = "_kerasbench_origin"  # the attribute of a variable that keeps it
RANDOM = "RandomInitializer"  # the base of all of Keras' initializers that draw random numbers
# Keras' others, by their names now and in older versions; they give the same on every backend.
CONSTANT = frozenset({"Constant", "Zeros", "Ones", "Identity", "IdentityInitializer", "STFT", "STFTInitializer"})
# The same on every backend as well; a backend's own tensor may have been drawn by the backend.
NUMPY_OR_PYTHON = (np.ndarray, np.generic, list, tuple, int, float)
NO_CALL = "does not have a `call"  # Keras of a class without one


def remember_origins() -> None:
    """Have every variable that is made from now on keep where its first value came from: Keras forgets that."""
    import keras

    initialize = keras.Variable.__init__

    def remember(self: Any, initializer: Any, *args: Any, **named: Any) -> None:
        initialize(self, initializer, *args, **named)
        is_name = isinstance(initializer, str)
        setattr(self, ORIGIN, origin(keras.initializers.get(initializer) if is_name else initializer))

    keras.Variable.__init__ = remember


@contextmanager
def keep_loaded_weights() -> Iterator[None]:
    """Take note of what is assigned to a variable meanwhile: the weights that are loaded into it are its first ones."""
    import keras

    assign = keras.Variable.assign

    def note(self: Any, value: Any) -> Any:
        setattr(self, ORIGIN, "given")
        return assign(self, value)

    keras.Variable.assign = note
    try:
        yield
    finally:
        keras.Variable.assign = assign


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
    """Of an unknown initializer, matrices are drawn, as they are mostly random, but no vectors, as an LSTM's bias."""
    return "float" in dtype and (origin == "random" or (origin == "unknown" and dimensions > 1))


def glorot_limit(shape: Sequence[int]) -> float:
    """sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, AISTATS 2010); as in Keras, a vector has its length for both."""
    if len(shape) < 2:
        return math.sqrt(3 / math.prod(shape))
    return math.sqrt(6 / (math.prod(shape[:-2]) * (shape[-2] + shape[-1])))


def make_weights(model: Any, feed: Feed) -> None:
    """`fit` would make them later, and none would be shared. A class may call itself built before its layers are."""
    if not model.built or not all(layer.built for layer in model._flatten_layers()):
        x, *_ = feed.step(feed.train[:1])
        try:
            model(x)
        except NotImplementedError as error:
            if NO_CALL not in str(error):  # what this backend cannot compute
                raise
            cause = "the model, or a layer of its own, has no call(): without one it has no weights and cannot predict"
            raise ScenarioError(cause) from error
