"""Times that are known: a step that sleeps, and a step too long to be hidden by an asynchronous backend.

    python validation/known_times.py

Sleeping: what a trial of ``sleeps.py`` reads over the 500 ms that each step sleeps; the rest is the step itself.
Synchronised: what kerasbench reads for the steps of a network of large products, over the epoch that they are
(which also has what an epoch costs once). Without synchronisation: the same with a clock that only reads, and does not
wait for the device.

Called: what a call by ``caller`` takes, over the same with its outputs brought to the host, which must wait for them.
Without a wait: the call of the model alone. On a lazy backend that computes nothing.
"""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from children import CPU, in_child, installed
from columns import Column, chosen, step_ms

from kerasbench import backends
from kerasbench.host.lock import machine_lock
from kerasbench.protocol.requests import TrialPlan
from kerasbench.runners.failure import refuse_other_frameworks
from kerasbench.worker.clock import WarmUpClock

SLEEPS = Path(__file__).with_name("sleeps.py")
SLEEP_MS = 500
WIDTH, LAYERS, BATCH, STEPS = 1024, 4, 512, 64
LEAST_STEPS, EPOCH_S = 4, 15.0  # an epoch is shorter where a step takes seconds
CALLS = 5


def main() -> None:
    for backend in installed():
        print(f"{backend:<10} sleeping: {sleeping_ms(backend) / SLEEP_MS:.4f} of {SLEEP_MS} ms", flush=True)
        found = in_child(backend, __file__)
        print(
            f"{backend:<10} steps of {found['step_ms']:.0f} ms: synchronised {found['synchronised']:.3f} of the epoch, "
            f"without synchronisation {found['unsynchronised']:.3f}",
            flush=True,
        )
        print(
            f"{backend:<10} calls of {found['call_ms']:.0f} ms: called {found['called']:.3f} of the time to the host, "
            f"without a wait {found['unwaited']:.3f}",
            flush=True,
        )


def sleeping_ms(backend: str) -> float:
    plan = TrialPlan(warmup_min_ns=0, warmup_max_ns=1)
    (selected,) = chosen(str(SLEEPS))
    return step_ms(Column(backend, selected, backend), plan)


def child(name: str) -> None:
    refuse_other_frameworks(name)
    import keras
    import numpy as np

    backend = backends.get(name)
    layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
    model = keras.Sequential([keras.layers.Input((WIDTH,)), *layers])
    model.compile(optimizer="sgd", loss="mse", jit_compile=backend.jit_default(CPU))
    rng = np.random.default_rng(0)
    x, y = (rng.random((BATCH * STEPS, WIDTH), "float32") for _ in range(2))
    model.fit(x[:BATCH], y[:BATCH], batch_size=BATCH, verbose=0)
    began_s = time.perf_counter()
    model.fit(x[:BATCH], y[:BATCH], batch_size=BATCH, verbose=0)
    steps = max(LEAST_STEPS, min(STEPS, int(EPOCH_S / (time.perf_counter() - began_s))))
    x, y = x[: steps * BATCH], y[: steps * BATCH]

    def covered(synchronize: Any) -> tuple[float, float]:
        """Return the epoch in ms, and the part of it that lies in slices, by a clock that marks each step."""
        clock = WarmUpClock(TrialPlan(steps_per_slice=1, warmup_slices=steps), steps, 0)
        marks_ns = []

        class Marks(keras.callbacks.Callback):  # type: ignore[misc]
            def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
                marks_ns.append(time.perf_counter_ns())
                clock.begin_epoch()

            def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
                if clock.wants(batch):
                    synchronize(self._model)
                    clock.mark(batch, time.perf_counter_ns())

            def on_train_end(self, logs: object = None) -> None:
                marks_ns.append(time.perf_counter_ns())

        model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[Marks()])
        step_ns = sum(slice_.ns for slice_ in clock.slices) / sum(slice_.count for slice_ in clock.slices)
        epoch_ns = marks_ns[1] - marks_ns[0]
        return epoch_ns / 1e6, step_ns * steps / epoch_ns

    (epoch_ms, synchronised), (_, unsynchronised) = covered(backend.synchronize), covered(lambda model: None)
    found = {"step_ms": epoch_ms / steps, "synchronised": synchronised, "unsynchronised": unsynchronised}

    batch, called = backend.on_device(x[:BATCH]), backend.caller(model, False)

    def call_ms(call: Any, to_host: bool) -> float:
        taken_ms = []
        for _ in range(CALLS):
            began_s = time.perf_counter()
            outputs = call(batch)
            if to_host:
                keras.ops.convert_to_numpy(outputs)
            taken_ms.append(1e3 * (time.perf_counter() - began_s))
            keras.ops.convert_to_numpy(outputs)  # nothing of it is left for the next call
        return statistics.median(taken_ms)

    truth_ms = call_ms(called, to_host=True)
    alone_ms = call_ms(lambda batch: model(batch, training=False), to_host=False)
    ratios = {"called": call_ms(called, to_host=False) / truth_ms, "unwaited": alone_ms / truth_ms}
    print(json.dumps(found | ratios | {"call_ms": truth_ms}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[2])
    else:
        with machine_lock():
            main()
