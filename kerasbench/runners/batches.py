"""Batches of TensorFlow: those that it makes once, for a `fit` that is given arrays, and those that it puts by."""

from typing import Any

from kerasbench.runners.inputs import in_tuples, is_nested

AUTOTUNE_BATCHES = 16  # that a pipeline may put by where TensorFlow itself chooses how many
DEPTH = 100  # data sets that are made of one another, at most: what lies deeper is not looked at
BUFFERS = (
    "_buffer_size",
    "_num_parallel_calls",
)  # attributes of tf.data: without them, nothing is put by


def made_once(rows: Any, size: int) -> Any:
    """Return batches of arrays that belong together, which are made in the first epoch and kept."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(in_tuples(rows)).batch(size).cache()


def shuffled(batches: Any) -> Any:
    """Return them in another order in each epoch; the rows of a batch stay together."""
    import tensorflow as tf

    return batches.shuffle(len(batches)).prefetch(tf.data.AUTOTUNE)


def feed_batches(model: Any) -> None:
    """Have `fit` make batches of the arrays that it is given. A pipeline is fed as it is."""
    fit = model.fit

    def fit_batches(x: Any = None, y: Any = None, shuffle: bool = True, **named: Any) -> Any:
        size = named.pop("batch_size", None)
        if size is None:
            return fit(x, shuffle=shuffle, **named)
        weights = named.pop("sample_weight", None)
        alone = (x,) if is_nested(x) else x  # as `fit` hands inputs on that have no targets
        rows = (x, y) if weights is None else (x, y, weights)
        batches = made_once(alone if y is None else rows, size)
        model.fed_batches = True
        return fit(shuffled(batches) if shuffle else batches, **named)

    model.fit = fit_batches


def put_by(dataset: Any) -> int:
    """Return how many batches the parts of a tf.data pipeline put by, by the buffers that its script asks for."""
    count, parts = 0, [dataset]
    for _ in range(DEPTH):
        if not parts:
            break
        part = parts.pop()
        for name in BUFFERS:
            if (value := getattr(part, name, None)) is not None and "Shuffle" not in type(part).__name__:
                number = int(value)
                count += AUTOTUNE_BATCHES if number < 0 else number
        parts += part._inputs() if hasattr(part, "_inputs") else []
    return count
