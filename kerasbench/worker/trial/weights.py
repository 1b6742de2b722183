"""The weights that a model begins with: what is random is drawn by NumPy, the same for every backend."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

Origin = Literal["random", "given", "unknown"]

ORIGIN = "_kerasbench_origin"  # the attribute of a variable that keeps it
RANDOM = "RandomInitializer"  # what all of Keras' initializers have for a base that draw random numbers
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
        named_one = isinstance(initializer, str)
        setattr(self, ORIGIN, origin(keras.initializers.get(initializer) if named_one else initializer))

    keras.Variable.__init__ = remember


def origin(initializer: Any) -> Origin:
    """Return where a first value comes from: Keras' random numbers, the scenario's own value, or who knows."""
    classes = {one.__name__ for one in type(initializer).__mro__}
    if RANDOM in classes:
        return "random"
    return "given" if classes & CONSTANT or isinstance(initializer, NUMPY_OR_PYTHON) else "unknown"


def share(model: Any, seed: int) -> None:
    """Draw a model's random weights with NumPy: the same seed gives different ones on each backend."""
    rng = np.random.default_rng(seed)
    weights = model.get_weights()
    for position, (variable, weight) in enumerate(zip(model.weights, weights, strict=True)):
        if is_drawn(getattr(variable, ORIGIN, "unknown"), str(variable.dtype), weight.ndim):
            limit = glorot_limit(weight.shape)
            weights[position] = rng.uniform(-limit, limit, weight.shape).astype(weight.dtype)
    model.set_weights(weights)


def is_drawn(found: Origin, dtype: str, dimensions: int) -> bool:
    """Tell whether a weight is to be drawn.

    A function may draw random numbers, or give what is no noise, such as an LSTM's bias: of what it makes, matrices
    are drawn, because they are mostly random, and what has fewer dimensions is left.
    """
    return "float" in dtype and (found == "random" or (found == "unknown" and dimensions > 1))


def glorot_limit(shape: Sequence[int]) -> float:
    """Return Glorot & Bengio's uniform limit, sqrt(6 / (fan_in + fan_out)) (AISTATS 2010), Keras' own default.

    A vector has its length for both, as in Keras; a scalar 1.
    """
    if len(shape) < 2:
        return math.sqrt(3 / math.prod(shape))
    return math.sqrt(6 / (math.prod(shape[:-2]) * (shape[-2] + shape[-1])))
