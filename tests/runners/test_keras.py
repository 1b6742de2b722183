"""Models made ready to be measured, with models of a few attributes and baselines that train nothing."""

import math
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest

from kerasbench import backends
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.worker import model as models
from kerasbench.worker.failure import TrialFailure
from kerasbench.runners.feed import Feed, Rows
from kerasbench.worker.model import jit_default

CPU, CUDA = Device("cpu"), Device("cuda")
WORKLOAD = Workload(train=8, parameters=10)  # which stands for that of its scenario
TORCH = backends.get("torch")
ROWS = Rows(np.arange(8, dtype=np.float32), np.zeros(8, np.float32))
FEED = Feed(WORKLOAD, ROWS, ROWS[:0], ROWS[:0])


def made(*supports_jit: bool, layers: Any = None, **different: object) -> Any:
    layers = layers or [SimpleNamespace(supports_jit=supported, built=True) for supported in supports_jit]
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
    data: Any = len
    return Scenario(build=lambda workload: model, data=data, workloads=(WORKLOAD,), **different)


def request(**options: Any) -> TrialRequest:
    return TrialRequest("mine", "mine.py", "", "default", "torch", CPU, 0, "synthetic", Protocol(), Options(**options))


def test_one_layer_that_cannot_be_compiled_keeps_the_model_from_it() -> None:
    jax = backends.get("jax")
    assert jit_default(made(True, True), jax, CPU)
    assert not jit_default(made(True, False, True), jax, CPU)  # such as an LSTM that takes cuDNN's own loop
    assert not jit_default(made(True, True), TORCH, CUDA)  # which compiles nothing unless it is asked to


class Refuses(SimpleNamespace):
    """As Keras does where tensorflow-metal is installed: its setter warns, and compiles nothing."""

    jit_compile = property(lambda model: False, lambda model, value: None)


def test_a_model_that_keras_does_not_compile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrialFailure, match="Keras does not compile this model on torch here"):
        models.build(scenario(Refuses(**vars(made(True)))), FEED, TORCH, request(jit=True))
    assert not models.build(scenario(Refuses(**vars(made(True)))), FEED, TORCH, request(jit=False)).jit_compile
    for asked, compiled in ((None, False), (True, True), (False, False)):  # it is always said
        assert models.build(scenario(made(True)), FEED, TORCH, request(jit=asked)).jit_compile is compiled
    monkeypatch.setattr(models, "build_baseline", lambda request, workload, model: "a baseline in its place")
    assert models.build(scenario(made(True)), FEED, TORCH, request(native=True)) == "a baseline in its place"


@pytest.mark.parametrize(
    ("different", "complaint"),
    [
        ({"compiled": False}, "must return a compiled Keras model"),
        ({"run_eagerly": True}, "run_eagerly cannot be measured"),
        ({"layers": [SimpleNamespace(name="lstm", stateful=True)]}, "lstm is stateful, so it takes one batch size"),
        ({"count_params": lambda: 11}, "the model has 11 parameters, the scenario says 10"),
    ],
)
def test_a_model_that_cannot_be_measured_as_it_is_is_refused(different: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        models.build(scenario(made(True, **different), parameters=11), FEED, TORCH, request())


def test_a_model_that_brings_its_weights_keeps_them() -> None:
    drawn: list[Any] = []
    weights = [SimpleNamespace(dtype="float32", _kerasbench_origin="random")]
    # One that is not trained need not be compiled.
    model = made(True, compiled=False, weights=weights, get_weights=lambda: [np.ones((2, 2))], set_weights=drawn.append)
    for keeps_weights in (True, False):
        models.build_keras(scenario(model, keeps_weights=keeps_weights, trains=False), FEED, TORCH, request())
        assert bool(drawn) is not keeps_weights


class Called(SimpleNamespace):
    """Notes what it is called on, or fails."""

    def __call__(self, x: Any) -> None:
        if self.error:
            raise self.error
        self.seen.append(x.tolist())


def called(layer_built: bool, error: Exception | None = None, **different: object) -> Called:
    model = Called(error=error, seen=[], **vars(made(layers=[SimpleNamespace(supports_jit=True, built=layer_built)])))
    vars(model).update(different)
    models.build_keras(scenario(model), FEED, TORCH, request())
    return model


@pytest.mark.parametrize(("built", "of_layer", "calls"), [(True, True, 0), (True, False, 1), (False, False, 1)])
def test_a_model_without_weights_is_called_on_one_row(built: bool, of_layer: bool, calls: int) -> None:
    assert called(of_layer, built=built).seen == [ROWS.x[:1].tolist()] * calls


def test_a_model_without_a_call_is_told_so() -> None:
    with pytest.raises(ScenarioError, match=r"call\(\)"):
        called(False, NotImplementedError("Layer GAN does not have a `call()` method implemented."))
    with pytest.raises(NotImplementedError, match="cannot compute"):
        called(False, NotImplementedError("this backend cannot compute that"))


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        (type("GlorotUniform", (type("RandomInitializer", (), {}),), {})(), "random"),
        (type("Ones", (), {})(), "given"),
        (np.eye(3), "given"),
        ([[1.0]], "given"),
        (type("OfAUser", (), {})(), "unknown"),
        (lambda shape, dtype: None, "unknown"),
        (SimpleNamespace(shape=(3, 3)), "unknown"),  # a backend's tensor
    ],
)
def test_where_a_first_value_comes_from(value: object, origin: str) -> None:
    assert models.origin(value) == origin


def test_what_is_random_is_drawn_within_glorot_s_limit() -> None:
    assert models.is_drawn("random", "float32", 2) and models.is_drawn("random", "bfloat16", 1)
    assert models.is_drawn("unknown", "float32", 2)
    assert not models.is_drawn("random", "uint32", 1)
    assert not models.is_drawn("given", "float32", 2)
    assert not models.is_drawn("unknown", "float32", 1)  # an LSTM's bias, whose forget gates begin with 1
    for shape, fans in ((), 2), ((5,), 10), ((784, 10), 794), ((3, 3, 16, 32), 9 * 48), ((2, 3, 3, 1, 1), 36):
        assert models.glorot_limit(shape) == pytest.approx(math.sqrt(6 / fans))


class Model:
    """Two weights that Keras would have drawn and one that it would not, made on one backend or another."""

    def __init__(self, backend: int) -> None:
        drawn = np.random.default_rng(backend)
        self.values = [drawn.normal(size=(4, 3)), np.ones((2, 2)), drawn.normal(size=(3,))]
        origins = ("random", "given", "random")
        self.weights = [SimpleNamespace(dtype="float32", **{models.ORIGIN: origin}) for origin in origins]

    def get_weights(self) -> list[Any]:
        return list(self.values)

    def set_weights(self, values: list[Any]) -> None:
        self.values = values


def test_two_backends_begin_with_the_same_weights_by_their_seed() -> None:
    first, second, other = Model(1), Model(2), Model(1)
    for model, seed in ((first, 7), (second, 7), (other, 8)):
        models.share_weights(model, seed)
    assert all((a == b).all() for a, b in zip(first.values, second.values, strict=True))
    assert (first.values[1] == 1).all()
    assert not any((first.values[index] == other.values[index]).any() for index in (0, 2))


@pytest.mark.parametrize("clears", [True, False])
def test_a_model_is_built_again_as_a_user_would_do_it(monkeypatch: pytest.MonkeyPatch, clears: bool) -> None:
    user = Mock()
    user.build.return_value = made()
    keras = SimpleNamespace(backend=SimpleNamespace(clear_session=user.clear_session))
    monkeypatch.setitem(sys.modules, "keras", keras)
    models.build_and_drop(user, FEED, clears)
    assert user.mock_calls == [*([call.clear_session()] if clears else []), call.build(WORKLOAD)]
