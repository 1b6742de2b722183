import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.native import Logs, Start, Stops
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.scenario import ScenarioError, Workload, content_hash, twin_file
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.model import NativeModel, build_twin

X: Any = np.zeros((8, 3), np.float32)
Y: Any = np.arange(8, dtype=np.int32)
UNSEEN: Any = (np.ones((4, 3), np.float32), np.ones(4, np.int32))
KERAS = SimpleNamespace(jit_compile=True, get_weights=lambda: [X], _flatten_layers=lambda include_self=True: [])


class FakeTwin:
    """Trains nothing and notes what it was asked to do."""

    jit = True

    def __init__(self) -> None:
        self.said: list[object] = []
        self.placed = 0

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        self.placed += 1
        return x, y

    def train_epoch(self, x: Any, y: Any, batch: int, shuffle: bool, stops: Stops) -> Logs:
        self.said.append(("epoch", len(x), batch, shuffle))
        for step in range(len(x) // batch):
            if stops(step):
                break
            self.said.append(step)
        return {"loss": float(len(self.said))}

    def evaluate(self, x: Any, y: Any, batch: int) -> Logs:
        self.said.append(("evaluate", len(x), batch))
        return {"loss": 1.0, "accuracy": 0.5}

    def compute_loss(self, x: Any, y: Any, *state: Any) -> tuple[Any, Any]:
        return 0.0, x

    def forward(self, x: Any) -> Any:
        return x

    def predict(self, x: Any, batch: int) -> Any:
        self.said.append(("predict", len(x), batch))
        return x

    def weights(self) -> list[Any]:
        return [X, Y]

    def slots(self) -> list[Any]:
        return [X]


class Clock:
    """A callback as Keras' are: it is given the model, and its hooks note when they are called."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.seen: list[object] = []
        self.model: Any = None

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.seen.append(f"epoch {epoch}")

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.seen.append(batch)
        self.model.stop_training = len(self.seen) == self.stop_at

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self.seen.append("end")

    def on_train_end(self, logs: object = None) -> None:
        self.seen.append("over")


@pytest.fixture
def twin() -> FakeTwin:
    return FakeTwin()


def test_the_hooks_come_before_each_epoch_and_step_and_after_each_epoch(twin: FakeTwin) -> None:
    clocks = [Clock(), Clock()]
    NativeModel(twin).fit(X, Y, batch_size=4, epochs=2, shuffle=False, callbacks=clocks)
    assert clocks[0].seen == clocks[1].seen == ["epoch 0", 0, 1, "end", "epoch 1", 0, 1, "end", "over"]
    assert twin.said == [("epoch", 8, 4, False), 0, 1, ("epoch", 8, 4, False), 0, 1]


def test_training_ends_with_the_step_at_which_a_clock_has_enough_and_can_begin_again(twin: FakeTwin) -> None:
    model, clock = NativeModel(twin), Clock(stop_at=6)
    model.fit(X, Y, batch_size=4, epochs=9, callbacks=[clock])
    assert clock.seen == ["epoch 0", 0, 1, "end", "epoch 1", 0, "end", "over"]
    assert [one for one in twin.said if isinstance(one, int)] == [0, 1, 0]
    model.fit(X, Y, batch_size=4)
    assert [one for one in twin.said if isinstance(one, int)] == [0, 1, 0, 0, 1]


def test_each_epoch_is_validated_and_logged_under_keras_names(twin: FakeTwin) -> None:
    history = NativeModel(twin).fit(X, Y, batch_size=4, epochs=2, validation_data=UNSEEN).history
    assert history == {"loss": [3.0, 7.0], "val_loss": [1.0, 1.0], "val_accuracy": [0.5, 0.5]}
    assert twin.said.count(("evaluate", 4, 4)) == 2


def test_rows_are_placed_once_in_a_fit_also_those_that_a_callback_evaluates(twin: FakeTwin) -> None:
    class Tests(Clock):
        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            self.model.evaluate(*UNSEEN, batch_size=2, verbose=0)

    NativeModel(twin).fit(X, Y, batch_size=4, epochs=3, callbacks=[Tests()])
    assert twin.placed == 2
    assert twin.said.count(("evaluate", 4, 2)) == 3


def test_what_proof_and_terms_look_for_is_the_twin_s(twin: FakeTwin) -> None:
    model = NativeModel(twin)
    assert model.count_params() == 24 + 8
    assert [one.dtype for one in model.weights] == ["float32", "int32"]
    assert [one.value is X for one in model.optimizer.variables] == [True]
    assert [layer.compute_dtype for layer in model._flatten_layers(include_self=False)] == ["float32", "int32"]
    assert model.jit_compile is True
    model.predict_on_batch(X)
    model.predict(X, batch_size=2, verbose=0)
    assert twin.said == [("predict", 8, 8), ("predict", 8, 2)]


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialRequest:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    file = tmp_path / "mine.py"
    twin_file(file, "torch").parent.mkdir()
    twin_file(file, "torch").write_text("build = print")
    return TrialRequest("mine", str(file), "", "default", "torch", Device("rocm"), 0, "synthetic", Protocol())


def with_twin(request: TrialRequest, text: str) -> TrialRequest:
    file = twin_file(Path(request.file), request.backend)
    file.write_text(text)
    return TrialRequest(**(vars(request) | {"twin_hash": content_hash(file)}))


def test_a_twin_is_built_of_copies_of_the_weights_its_workload_and_its_device(request_: TrialRequest) -> None:
    text = "class Twin:\n    jit = True\ndef build(start):\n    Twin.start = start\n    return Twin"
    model = build_twin(with_twin(request_, text), Workload(train=5), KERAS)
    start: Start = model.twin.start  # type: ignore[attr-defined]
    assert start.weights[0] is not X and (start.weights[0] == X).all()
    assert (start.workload.train, start.place, start.jit) == (5, "cuda", True)


def test_a_twin_may_use_dataclasses_with_annotations_that_are_text(request_: TrialRequest) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Twin:\n    start: object\n    jit: bool = False\nbuild = Twin"
    )
    model = build_twin(with_twin(request_, text), Workload(train=5), KERAS)
    assert model.twin.start.workload.train == 5  # type: ignore[attr-defined]


def test_a_file_without_build_or_of_another_content_is_refused(request_: TrialRequest) -> None:
    with pytest.raises(ScenarioError, match=r"mine_torch.py: a twin has a function build\(start\)"):
        build_twin(with_twin(request_, "other = 1"), Workload(train=5), KERAS)
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        build_twin(request_, Workload(train=5), KERAS)


def test_where_layers_draw_random_numbers_there_is_nothing_to_compare(request_: TrialRequest) -> None:
    class SeedGenerator:
        pass

    dropout = SimpleNamespace(rate=0.5, seed_generator=SeedGenerator())
    random = SimpleNamespace(**(vars(KERAS) | {"_flatten_layers": lambda include_self=True: [dropout]}))
    with pytest.raises(TrialFailure) as raised:
        build_twin(with_twin(request_, "build = print"), Workload(train=5), random)
    assert raised.value.failure.code is Code.UNSUPPORTED
