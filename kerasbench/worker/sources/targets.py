"""Targets for a model that brings none: such as its loss takes, in the shape of its outputs."""

from collections.abc import Iterator, Sequence
from typing import Any

from kerasbench.scenario import ModelError
from kerasbench.worker.nested import is_nested, leaves

# Names of Keras' losses in lower case, without underscores; what stands in none of them takes any numbers.
CLASSES = {"sparsecategoricalcrossentropy", "categoricalgeneralizedcrossentropy", "circle"}
SHARES = {"categoricalcrossentropy", "categoricalfocalcrossentropy", "categoricalhinge", "kldivergence", "kld"}
BITS = {"binarycrossentropy", "bce", "binaryfocalcrossentropy", "dice", "tversky"}
SIGNS = {"hinge", "squaredhinge"}
UNMADE = {"ctc"}
KNOWN = CLASSES | SHARES | BITS | SIGNS | UNMADE


def draw(loss: Any, shape: Sequence[int], samples: int, rng: Any) -> Any:
    """Return targets for one output of that shape, without the samples: float32, or int32 for classes.

    Raises:
        ModelError: kerasbench cannot make what the loss takes.
    """
    import numpy as np

    name, whole = loss_name(loss), (samples, *shape)
    if name in UNMADE:
        raise ModelError(f"its loss is {name}, for which kerasbench has no targets: use a scenario file")
    if name in CLASSES:
        return rng.integers(0, max(1, shape[-1] if shape else 1), whole[:-1] if shape else whole, dtype=np.int32)
    if name in SHARES:
        shares: Any = np.zeros(whole, np.float32)
        np.put_along_axis(shares, rng.integers(0, shape[-1], (*whole[:-1], 1)), 1.0, -1)
        return shares
    if name in BITS:
        return rng.integers(0, 2, whole).astype(np.float32)
    if name in SIGNS:
        return (2 * rng.integers(0, 2, whole) - 1).astype(np.float32)
    return rng.random(whole, dtype=np.float32)


def loss_name(loss: Any) -> str:
    """Return a loss's name in lower case without underscores, of a name, a function or an object; empty for none.

    Of an object it is the first name that is known: its class's, one that this is derived from, or its function's.
    """
    names = [name.replace("_", "").lower() for name in _names(loss)]
    return next((name for name in names if name in KNOWN), next(iter(names), ""))


def _names(loss: Any) -> list[str]:
    if loss is None or isinstance(loss, str):
        return [loss] if loss else []
    if hasattr(loss, "__name__"):
        return [str(loss.__name__)]
    return [*(kind.__name__ for kind in type(loss).__mro__), *_names(getattr(loss, "fn", None))]


def losses(loss: Any, outputs: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the loss of each output, in the order of ``nested.leaves``.

    ``loss`` is what `compile` had: one for all, or a structure like that of the outputs, or one by their ``names``.
    """
    count = len(list(leaves(outputs)))
    if not is_nested(loss):
        yield from [loss] * count
        return
    keys = sorted(outputs, key=str) if isinstance(outputs, dict) else names
    found = [loss.get(key) for key in keys] if isinstance(loss, dict) else list(loss)
    yield from [*found, *[None] * count][:count]
