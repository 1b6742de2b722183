"""Batches that a tf.data pipeline puts by."""

from typing import Any

AUTOTUNE_BATCHES = 16  # that a pipeline may put by where TensorFlow itself chooses how many
DEPTH = 100  # data sets that are made of one another, at most: what lies deeper is not looked at
BUFFERS = (
    "_buffer_size",
    "_num_parallel_calls",
)  # attributes of tf.data: without them, nothing is put by


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
