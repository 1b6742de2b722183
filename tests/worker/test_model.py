"""How a model is made ready to be measured, with models that are made of a few attributes."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench import backends
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.worker import model as models
from kerasbench.worker.feed import Feed, Rows
from kerasbench.worker.model import jit_default

CPU, CUDA = Device("cpu"), Device("cuda")
WORKLOAD = Workload(train=8)
TORCH = backends.get("torch")
ROWS = Rows(np.arange(8, dtype=np.float32), np.zeros(8, np.float32))
FEED = Feed(WORKLOAD, ROWS, ROWS[:0], ROWS[:0])


def made(*supports_jit: bool, **different: object) -> Any:
    layers = [SimpleNamespace(supports_jit=supported, built=True) for supported in supports_jit]
    attributes: dict[str, object] = {
        "compiled": True,
        "built": True,
        "run_eagerly": False,
        "steps_per_execution": 1,
        "weights": [],
        "count_params": lambda: 10,
        "get_weights": list,
        "set_weights": lambda weights: None,
        "_flatten_layers": lambda include_self=True: layers,
    }
    return SimpleNamespace(**(attributes | different))


def scenario(model: Any, **different: Any) -> Scenario:
    return Scenario(
        build=lambda workload: model, data=lambda samples, rng: ([], []), workloads=(WORKLOAD,), **different
    )


def request(**options: Any) -> TrialRequest:
    return TrialRequest("mine", "mine.py", "", "default", "torch", CPU, 0, "synthetic", Protocol(), Options(**options))


@pytest.mark.parametrize(
    ("name", "device", "supports_jit", "compiled"),
    [
        ("jax", CPU, (True, True), True),
        ("jax", CPU, (True, False), False),
        ("tensorflow", CUDA, (True, True), True),
        ("tensorflow", CUDA, (True, False, True), False),  # an LSTM that takes cuDNN's own loop
        ("tensorflow", CPU, (True, True), False),
        ("torch", CUDA, (True, True), False),
    ],
)
def test_one_layer_that_cannot_be_compiled_keeps_the_model_from_it(
    name: str, device: Device, supports_jit: tuple[bool, ...], compiled: bool
) -> None:
    assert jit_default(made(*supports_jit), backends.get(name), device) is compiled


@pytest.mark.parametrize(("asked", "compiled"), [(None, False), (True, True), (False, False)])
def test_whether_it_is_compiled_is_always_said(asked: bool | None, compiled: bool) -> None:
    model = models.build(scenario(made(True)), FEED, TORCH, request(jit=asked))
    assert model.jit_compile is compiled


@pytest.mark.parametrize(
    ("different", "complaint"),
    [
        ({"compiled": False}, "must return a compiled Keras model"),
        ({"run_eagerly": True}, "run_eagerly or steps_per_execution"),
        ({"steps_per_execution": 4}, "run_eagerly or steps_per_execution"),
        ({"count_params": lambda: 11}, "the model has 11 parameters, the scenario says 10"),
    ],
)
def test_a_model_that_cannot_be_measured_as_it_is_is_refused(different: dict[str, object], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        models.build(scenario(made(True, **different), parameters=10), FEED, TORCH, request())


def test_a_workload_s_own_count_is_the_one_that_is_checked() -> None:
    own = dataclasses.replace(WORKLOAD, parameters=10)
    feed = dataclasses.replace(FEED, workload=own)
    assert models.build(scenario(made(True), parameters=11), feed, TORCH, request()).jit_compile is False
    with pytest.raises(ScenarioError, match="the model has 10 parameters, the scenario says 11"):
        models.build(scenario(made(True), parameters=11), FEED, TORCH, request())


def test_where_a_twin_is_asked_for_it_takes_the_model_s_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "build_twin", lambda asked, workload, model: ("twin of", model))
    model = made(True)
    assert models.build(scenario(model), FEED, TORCH, request(native=True)) == ("twin of", model)


def test_a_model_that_brings_its_weights_keeps_them() -> None:
    drawn: list[Any] = []
    weights = [SimpleNamespace(dtype="float32", _kerasbench_origin="random")]
    model = made(True, weights=weights, get_weights=lambda: [np.ones((2, 2))], set_weights=drawn.append)
    models.build_keras(scenario(model, keeps_weights=True), FEED, TORCH, request())
    assert drawn == []
    models.build_keras(scenario(model), FEED, TORCH, request())
    assert len(drawn) == 1


def test_a_model_that_is_not_trained_need_not_be_compiled() -> None:
    model = made(True, compiled=False)
    assert models.build_keras(scenario(model, trains=False), FEED, TORCH, request()) is model


@pytest.mark.parametrize(("built", "of_layer", "calls"), [(True, True, 0), (True, False, 1), (False, False, 1)])
def test_a_model_that_has_no_weights_yet_is_called_on_one_row_before_they_are_shared(
    built: bool, of_layer: bool, calls: int
) -> None:
    seen: list[Any] = []

    class OfItsOwn(SimpleNamespace):
        def __call__(self, x: Any) -> None:
            seen.append(x)

        def get_weights(self) -> list[Any]:
            assert len(seen) == calls
            return []

    layers = [SimpleNamespace(supports_jit=True, built=of_layer)]
    attributes = vars(made()) | {"built": built, "_flatten_layers": lambda include_self=True: layers}
    del attributes["get_weights"]
    models.build_keras(scenario(OfItsOwn(**attributes)), FEED, TORCH, request())
    assert [one.tolist() for one in seen] == [ROWS.x[:1].tolist()] * calls
