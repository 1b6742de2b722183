"""The same small network several times over, as it is and slowed down by exactly 5 % and 10 %.

For the study of verdicts. Every step is synchronised and then prolonged by a share of what it took, so that the
slow-down is known whatever the machine's speed does meanwhile.
"""

import time

import keras

from kerasbench import Scenario, Workload, datasets

SLOW_DOWN = {"same_1": 0.0, "same_2": 0.0, "slow_5": 0.05, "slow_10": 0.1}


class Prolong(keras.callbacks.Callback):
    """Spin after each step for a share of its duration."""

    def __init__(self, share):
        super().__init__()
        self._share = share
        self._last_ns = None

    def on_epoch_begin(self, epoch, logs=None):
        self._last_ns = None

    def on_train_batch_begin(self, batch, logs=None):
        if keras.backend.backend() == "jax" and self._model._jax_state is not None:
            import jax

            jax.block_until_ready([array for arrays in self._model._jax_state.values() for array in arrays])
        now_ns = time.perf_counter_ns()
        until_ns = now_ns + (0 if self._last_ns is None else self._share * (now_ns - self._last_ns))
        while time.perf_counter_ns() < until_ns:
            pass
        self._last_ns = time.perf_counter_ns()


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((784,)),
            keras.layers.Dense(300, activation="relu"),
            keras.layers.Dense(100, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss)
    build.share = workload.settings["share"]
    return model


scenario = Scenario(
    build=build,
    data=datasets.mnist(lambda x: datasets.unit(x).reshape(-1, 784)),
    callbacks=lambda folder: [Prolong(build.share)],
    workloads=tuple(
        Workload(name=name, train=32 * 1_000, batch=32, settings={"share": share}) for name, share in SLOW_DOWN.items()
    ),
)
