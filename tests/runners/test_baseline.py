"""Baselines in the place of Keras models, with one that trains nothing."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench import backends
from kerasbench.native import Start
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import TrialPlan, TrialRequest
from kerasbench.runners import Hooks
from kerasbench.runners.baseline import BaselineRunner
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.trainer import PreparedModel
from kerasbench.scenario import ScenarioError, Workload, baseline_file, file_hash
from tests.worker import stand_in_keras
from tests.worker.stand_in_keras import Baseline

X: Any = np.zeros((8, 3), np.float32)
ROWS = Rows(X, np.arange(8, dtype=np.int32))
UNSEEN = Rows(np.ones((4, 3), np.float32), np.ones(4, np.int32))
FEED = Feed(Workload(train=8, batch=4, test=4, test_each_epoch=True), ROWS, UNSEEN, UNSEEN)


class Clock(Hooks):
    """Notes when its hooks are called, and ends training at one of them."""

    def __init__(self, runner: BaselineRunner, stop_at: int | None = None) -> None:
        self.runner = runner
        self.stop_at = stop_at
        self.seen: list[object] = []

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.seen.append(f"epoch {epoch}")

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.seen.append(batch)
        if len(self.seen) == self.stop_at:
            self.runner.stop()

    def on_train_end(self, logs: object = None) -> None:
        self.seen.append("over")


def test_the_hooks_come_before_each_epoch_and_step_and_can_end_training() -> None:
    baseline = Baseline()
    runner = stand_in_keras.runner_of(baseline, FEED)
    runner.fit(ROWS, clock := Clock(runner), epochs=2, shuffle=False)
    assert clock.seen == ["epoch 0", 0, 1, "epoch 1", 0, 1, "over"]
    assert (baseline.epochs, baseline.steps) == ([(8, 4, False)] * 2, 4)
    runner.fit(ROWS, clock := Clock(runner, stop_at=5), epochs=9)
    assert clock.seen == ["epoch 0", 0, 1, "epoch 1", 0, "over"]
    assert baseline.steps == 4 + 3
    runner.fit(ROWS)  # and can begin again
    assert baseline.steps == 4 + 3 + 2


def test_a_whole_epoch_is_validated_tested_and_logged_under_keras_names_with_rows_that_are_placed_once() -> None:
    baseline = Baseline()
    history = stand_in_keras.runner_of(baseline, FEED).fit(ROWS, epochs=2, whole=True)
    assert history == {"loss": [99_999, 99_997], "val_loss": [2.0, 4.0]}
    assert (baseline.placed, baseline.evaluated) == (3, [4] * 4)


def test_what_checks_look_for_is_the_baseline_s() -> None:
    baseline: Any = Baseline()
    runner = stand_in_keras.runner_of(baseline, FEED)
    assert (runner.parameters, runner.layers, runner.overrides) == (24 + 8, (), ())
    assert runner.compute_dtypes == {"float32", "int32"}
    assert [[array.shape for array in arrays] for arrays in runner.arrays()] == [[(8, 3)], [(3,)]]
    baseline.predict = lambda x, batch: batch
    assert (runner.predict_on_batch(X), runner.predictor(2)(X)) == (8, 2)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    baseline_file(tmp_path / "mine.py", "torch").parent.mkdir()
    return tmp_path / "mine.py"


def built(file: Path, text: str, hashed: bool = True, layers: Any = (), feed: Feed = FEED) -> BaselineRunner:
    """Build the baseline of a scenario's file from this text, at a device by which it is placed."""
    model = SimpleNamespace(jit_compile=True, get_weights=lambda: [X], _flatten_layers=lambda: layers)
    baseline = baseline_file(file, "torch")
    baseline.write_text(text)
    request = TrialRequest("mine", str(file), "", "default", "torch", Device("rocm"), 0, "synthetic", TrialPlan())
    planned = dataclasses.replace(request, baseline_hash=file_hash(baseline) if hashed else "")
    runner = BaselineRunner(backends.get("torch"), planned)
    scenario: Any = SimpleNamespace(generate=None, new_tokens=0)
    runner.take_model(PreparedModel(scenario, feed, feed, model))
    return runner


def test_a_baseline_is_built_of_copies_of_the_weights_its_workload_and_its_device(file: Path) -> None:
    text = (  # annotations that are text look for the baseline's module
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Baseline:\n    start: object\n    jit: bool = False\n    weights = list\nbuild = Baseline"
    )
    runner: Any = built(file, text)
    start: Start = runner.model.start
    assert start.weights[0] is not X and (start.weights[0] == X).all()
    assert (start.workload.train, start.place, start.jit, runner.jit) == (8, "cuda", True, False)


def test_what_has_no_build_or_has_changed_or_draws_is_refused(file: Path) -> None:
    with pytest.raises(ScenarioError, match=r"mine_torch.py: a native baseline needs a function build\(start\)"):
        built(file, "other = 1")
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        built(file, "build = print", hashed=False)
    dropout = SimpleNamespace(rate=0.5, _seed_generators=[object()])
    weighted = dataclasses.replace(FEED, train=Rows(X, X, X))
    for cause, different in ("random numbers", {"layers": [dropout]}), ("one array for x", {"feed": weighted}):
        with pytest.raises(TrialFailure, match=cause) as raised:
            built(file, "build = print", **different)
        assert raised.value.failure.code is Code.UNSUPPORTED
