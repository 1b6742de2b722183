"""Does kerasbench read what a script's own ``fit`` takes? Each in processes of its own, in turns.

    python validation/plain_script.py 5 train.py -- --width 64     five rounds of both

A round runs the script once on each backend without kerasbench, up to the end of its first ``fit``, and then has
kerasbench take a quick look at it. By hand steps are timed inside epochs, from the second one on, in slices of a fifth
of a second (or an epoch, where JAX has all of it in its queue by then) that end once the device is done. Printed are
the medians of both, in ms, and reading / by hand: the median over the rounds with its 95 % order-statistic interval
where there are enough of them, else the smallest and the largest. A round that kerasbench calls undecided is left out.
"""

import json
import os
import random
import runpy
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import medians
from in_turns import settle

BACKENDS = ("jax", "tensorflow", "torch")
METRIC, UNDECIDED = "steady_step_ms", "undecided"
WARM_UP_S, TIMED_S, SLICE_S = 3.0, 6.0, 0.2  # of a fit by hand


def time_fit(script: Path, arguments: list[str]) -> None:
    """Run a script until its first ``fit`` has been timed; print what a step took, in ms."""
    import keras

    class Timer(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.warm_s = 0.0  # when it is warm: the first step may compile for long
            self.steps, self.last = 0, 0  # of this epoch so far, and of the one before
            self.mark = 0, 0.0  # the step at which a slice began, and when
            self.slices_ms: list[float] = []  # a step of each

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.last, self.steps = self.steps, 0

        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            self.steps += 1
            self.warm_s = self.warm_s or (time.perf_counter() + WARM_UP_S if self.steps > 1 else 0.0)
            step, began_s = self.mark
            is_long = self.steps == self.last or time.perf_counter() > began_s + SLICE_S
            if self.steps == 2 or (self.steps > 2 and is_long):
                settle(self._model)
                now_s = time.perf_counter()
                if self.steps > 2 and began_s > self.warm_s:
                    self.slices_ms.append(1e3 * (now_s - began_s) / (self.steps - step))
                self.mark = self.steps, now_s
                self._model.stop_training = len(self.slices_ms) > 0 and now_s > self.warm_s + TIMED_S

    fit = keras.Model.fit

    def timed_fit(model: Any, *given: Any, **named: Any) -> None:
        timer = Timer()
        fit(model, *given, **{**named, "callbacks": [timer], "epochs": 10_000, "validation_data": None, "verbose": 0})
        print(f"\n{json.dumps(statistics.median(timer.slices_ms))}", flush=True)
        os._exit(0)  # the script's own lines are not wanted

    keras.Model.fit = timed_fit
    keras.utils.set_random_seed(0)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


def by_hand_ms(backend: str, words: list[str]) -> float | None:
    """Return ms a step of the script's ``fit``; None where it does not train with this backend."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "MPLBACKEND": "Agg",
    }
    command = [sys.executable, __file__, "time", *words]
    lines = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout.splitlines()
    try:
        return float(lines[-1])
    except (IndexError, ValueError):
        return None


def readings_ms(words: list[str]) -> dict[str, float]:
    """Return ms a step of each backend, as kerasbench reads it; none where other programs left it undecided."""
    script, *arguments = words
    options = ["--quick", "--device", "cpu", "--json", "--wait"]
    command = [sys.executable, "-m", "kerasbench", script, *options, "--", *arguments]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not run.stdout:
        sys.exit(f"kerasbench {script} has measured nothing")
    printed = json.loads(run.stdout)
    if any(warning["kind"] == UNDECIDED for warning in printed["warnings"]):
        return {}
    return {one["configuration"]["backend"]: one["value"] for one in printed["results"] if one["metric"] == METRIC}


def interval(ratios: list[float]) -> tuple[float, float]:
    ordered = sorted(ratios)
    low, high = medians.interval(ordered) if len(ordered) > 5 else (ordered[0], ordered[-1])
    return low, high


def main(rounds: int, words: list[str]) -> None:
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in BACKENDS}  # of a round: by hand, and read
    for _ in range(rounds):
        hand = {name: by_hand_ms(name, words) for name in random.sample(BACKENDS, len(BACKENDS))}
        read = readings_ms(words)
        for name in BACKENDS:
            if (ms := hand[name]) is not None and name in read:
                pairs[name].append((ms, read[name]))
            else:
                print(f"{words[0]} {name}: {ms} ms by hand, {read.get(name)} ms read: left out", flush=True)
    for name, of_rounds in pairs.items():
        if of_rounds:
            ratios = [reading / ms for ms, reading in of_rounds]
            low, high = interval(ratios)
            of_hand, of_reading = (statistics.median(times) for times in zip(*of_rounds, strict=True))
            of_both = f"{len(ratios)} rounds, {of_hand:.3f} ms by hand, {of_reading:.3f} ms read"
            print(f"{words[0]} {name}: {of_both}, {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}]", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "time":
        time_fit(Path(sys.argv[2]).absolute(), sys.argv[3:])
    else:
        count, script, *rest = sys.argv[1:]
        main(int(count), [script, *rest[1:]])
