"""Of arrays Keras gathers each batch on TensorFlow anew, sample by sample, which a small model waits for."""

from typing import Any

from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.variant import FIT, Refusal, Written

SMALL = 1_000_000  # weights: a step of more takes far longer than its batch


class ArrayFeed(Cause):
    name = "without_array_feed"
    backends = ("tensorflow",)
    says = "Keras gathers each batch from the arrays anew"
    upstream = "Keras issues 18873 and 21029 report it"
    today = "Batches that are made once keep their samples from epoch to epoch"

    def concerns(self, model: Any) -> bool:
        return bool(model.count_params() < SMALL)

    def written(self, value: bool, backend: str, processors: str) -> Written:
        batches = "batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size).cache()"
        return FIT, f"{batches}; model.fit(batches.shuffle(len(batches)).prefetch(tf.data.AUTOTUNE))"

    def take_away(self, model: Any) -> Refusal:
        """Have `fit` make batches of arrays once. What is no array, such as a pipeline, is fed as it is."""
        fit = model.fit

        def fit_batches(x: Any = None, y: Any = None, shuffle: bool = True, **named: Any) -> Any:
            if y is None:
                return fit(x, shuffle=shuffle, **named)
            import tensorflow as tf

            weights = named.pop("sample_weight", None)
            rows = (x, y) if weights is None else (x, y, weights)
            batches = tf.data.Dataset.from_tensor_slices(rows).batch(named.pop("batch_size")).cache()
            if shuffle:
                batches = batches.shuffle(len(batches))
            return fit(batches.prefetch(tf.data.AUTOTUNE), **named)

        model.fit = fit_batches
        return None
