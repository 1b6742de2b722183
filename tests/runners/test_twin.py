"""Baselines in the place of Keras models, with one that trains nothing."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.native import Start
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.scenario import ScenarioError, Workload, baseline_file, content_hash
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.native import NativeModel, build_baseline
from tests.worker.stand_in_keras import Baseline, Callback

X: Any = np.zeros((8, 3), np.float32)
Y: Any = np.arange(8, dtype=np.int32)
UNSEEN: Any = (np.ones((4, 3), np.float32), np.ones(4, np.int32))
KERAS = SimpleNamespace(jit_compile=True, get_weights=lambda: [X], _flatten_layers=lambda include_self=True: [])


class Clock(Callback):
    """Notes when its hooks are called, and ends training at one of them."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.stop_at = stop_at
        self.seen: list[object] = []

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.seen.append(f"epoch {epoch}")

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.seen.append(batch)
        self.model.stop_training = len(self.seen) == self.stop_at

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self.seen.append("end")

    def on_train_end(self, logs: object = None) -> None:
        self.seen.append("over")


def test_the_hooks_come_before_each_epoch_and_step_and_can_end_training() -> None:
    baseline, clocks = Baseline(), [Clock(), Clock()]
    model = NativeModel(baseline)
    model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, callbacks=clocks)
    assert clocks[0].seen == clocks[1].seen == ["epoch 0", 0, 1, "end", "epoch 1", 0, 1, "end", "over"]
    assert (baseline.epochs, baseline.steps) == ([(8, 4, False)] * 2, 4)
    model.fit(X, Y, batch_size=4, epochs=9, callbacks=[clock := Clock(stop_at=6)])
    assert clock.seen == ["epoch 0", 0, 1, "end", "epoch 1", 0, "end", "over"]
    assert baseline.steps == 4 + 3
    model.fit(X, Y, batch_size=4)  # and can begin again
    assert baseline.steps == 4 + 3 + 2


def test_each_epoch_is_validated_and_logged_under_keras_names_with_rows_that_are_placed_once() -> None:
    class Tests(Clock):
        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            self.model.evaluate(*UNSEEN, batch_size=2, verbose=0)

    baseline = Baseline()
    history = NativeModel(baseline).fit(X, Y, batch_size=4, epochs=2, validation_data=UNSEEN, callbacks=[Tests()])
    assert history.history == {"loss": [99_999, 99_997], "val_loss": [2.0, 4.0]}
    assert (baseline.placed, baseline.evaluated) == (2, [4] * 4)


def test_what_checks_look_for_is_the_baseline_s() -> None:
    baseline: Any = Baseline()
    model = NativeModel(baseline)
    assert (model.count_params(), model.jit_compile) == (24 + 8, True)
    assert [array.dtype for array in model.weights] == ["float32", "int32"]
    assert [array.value.shape for array in model.optimizer.variables] == [(3,)]
    assert [layer.compute_dtype for layer in model._flatten_layers(include_self=False)] == ["float32", "int32"]
    baseline.predict = lambda x, batch: batch
    assert (model.predict_on_batch(X), model.predict(X, batch_size=2, verbose=0)) == (8, 2)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    baseline_file(tmp_path / "mine.py", "torch").parent.mkdir()
    return tmp_path / "mine.py"


def built(file: Path, text: str, keras: Any = KERAS, hashed: bool = True) -> Any:
    """Build the baseline of a scenario's file from this text, at a device by which it is placed."""
    baseline = baseline_file(file, "torch")
    baseline.write_text(text)
    request = TrialRequest("mine", str(file), "", "default", "torch", Device("rocm"), 0, "synthetic", Protocol())
    planned = dataclasses.replace(request, baseline_hash=content_hash(baseline) if hashed else "")
    return build_baseline(planned, Workload(train=5), keras).baseline


def test_a_baseline_is_built_of_copies_of_the_weights_its_workload_and_its_device(file: Path) -> None:
    text = (  # annotations that are text look for the baseline's module
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Baseline:\n    start: object\n    jit: bool = False\nbuild = Baseline"
    )
    start: Start = built(file, text).start
    assert start.weights[0] is not X and (start.weights[0] == X).all()
    assert (start.workload.train, start.place, start.jit) == (5, "cuda", True)


def test_what_has_no_build_or_has_changed_or_draws_is_refused(file: Path) -> None:
    with pytest.raises(ScenarioError, match=r"mine_torch.py: a native baseline needs a function build\(start\)"):
        built(file, "other = 1")
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        built(file, "build = print", hashed=False)
    dropout = SimpleNamespace(rate=0.5, _seed_generators=[object()])
    random = SimpleNamespace(**(vars(KERAS) | {"_flatten_layers": lambda include_self=True: [dropout]}))
    with pytest.raises(TrialFailure) as raised:
        built(file, "build = print", random)
    assert raised.value.failure.code is Code.UNSUPPORTED
