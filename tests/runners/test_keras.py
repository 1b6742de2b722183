"""Keras models made ready to be measured, and what is asked of them, with models of a few attributes."""

import dataclasses
import itertools
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest

from kerasbench import backends
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Proof
from kerasbench.protocol.messages import TrialFailure
from kerasbench.protocol.requests import TrialPlan, TrialRequest
from kerasbench.runners import Hooks, keras, trainer
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.keras import KerasRunner
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.worker.build import prepare_model

CPU, CUDA = Device("cpu"), Device("cuda")
WORKLOAD = Workload(train=8, parameters=10)  # which stands for that of its scenario
ROWS = Rows(np.arange(8, dtype=np.float32), np.zeros(8, np.float32))
FEED = Feed(WORKLOAD, ROWS, ROWS[:0], ROWS[:0])


def made(*supports_jit: bool, layers: Any = None, **different: object) -> Any:
    layers = layers or [SimpleNamespace(supports_jit=supported, built=True, weights=[]) for supported in supports_jit]
    attributes: dict[str, object] = {
        "compiled": True,
        "built": True,
        "run_eagerly": False,
        "steps_per_execution": 1,
        "weights": [],
        "count_params": lambda: 10,
        "get_weights": list,
        "set_weights": lambda weights: None,
        "predict_on_batch": None,
        "_flatten_layers": lambda include_self=True: layers,
    }
    return SimpleNamespace(**(attributes | different))


def scenario(model: Any, **different: Any) -> Scenario:
    data: Any = len
    return Scenario(build=lambda workload: model, data=data, workloads=(WORKLOAD,), **different)


def built(scenario: Scenario, feed: Feed = FEED, backend: str = "torch", device: Device = CPU, **options: Any) -> Any:
    asked = Options(**options)
    request = TrialRequest("mine", "mine.py", "", "default", backend, device, 0, "synthetic", TrialPlan(), asked)
    runner = KerasRunner(backends.get(backend), request)
    runner.take_model(prepare_model(scenario, feed, request))
    return runner


def test_one_layer_that_cannot_be_compiled_keeps_the_model_from_it() -> None:
    assert built(scenario(made(True, True)), backend="jax").jit
    assert not built(scenario(made(True, False, True)), backend="jax").jit  # an LSTM that takes cuDNN's own loop
    assert not built(scenario(made(True, True)), device=CUDA).jit  # torch compiles nothing unless it is asked to


class CalledModel(SimpleNamespace):
    def call(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize("compiles", [True, False])
def test_a_script_is_compiled_as_its_own_compile_says(compiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX compiles by default."""
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Model=SimpleNamespace(call=None)))
    feed = dataclasses.replace(FEED, digest="of a script")
    runner = built(scenario(CalledModel(**vars(made(True, jit_compile=compiles)))), feed, "jax")
    assert runner.jit is compiles and runner.predicts


class Refuses(SimpleNamespace):
    """As Keras does where tensorflow-metal is installed: its setter warns, and compiles nothing."""

    jit_compile = property(lambda model: False, lambda model, value: None)


def test_a_model_that_keras_does_not_compile_is_refused() -> None:
    with pytest.raises(TrialFailure, match="Keras does not compile this model on torch here"):
        built(scenario(Refuses(**vars(made(True)))), jit=True)
    assert not built(scenario(Refuses(**vars(made(True)))), jit=False).jit
    for asked, compiled in ((None, False), (True, True), (False, False)):  # it is always said
        assert built(scenario(made(True)), jit=asked).model.jit_compile is compiled


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
        built(scenario(made(True, **different), parameters=11))


def test_a_model_that_brings_its_weights_keeps_them() -> None:
    drawn: list[Any] = []
    weights = [SimpleNamespace(dtype="float32", _kerasbench_origin="random")]
    # One that is not trained need not be compiled.
    model = made(True, compiled=False, weights=weights, get_weights=lambda: [np.ones((2, 2))], set_weights=drawn.append)
    for keeps_weights in (True, False):
        built(scenario(model, keeps_weights=keeps_weights, trains=False))
        assert bool(drawn) is not keeps_weights


class Called(SimpleNamespace):
    """Notes what it is called on, or fails."""

    def __call__(self, x: Any) -> None:
        if self.error:
            raise self.error
        self.seen.append(x.tolist())


def called(layer_built: bool, error: Exception | None = None, **different: object) -> Called:
    layer = SimpleNamespace(supports_jit=True, built=layer_built, weights=[])
    model = Called(error=error, seen=[], **vars(made(layers=[layer])))
    vars(model).update(different)
    built(scenario(model))
    return model


@pytest.mark.parametrize(("built", "of_layer", "calls"), [(True, True, 0), (True, False, 1), (False, False, 1)])
def test_a_model_without_weights_is_called_on_one_row(built: bool, of_layer: bool, calls: int) -> None:
    assert called(of_layer, built=built).seen == [ROWS.x[:1].tolist()] * calls


def test_a_model_without_a_call_is_told_so() -> None:
    with pytest.raises(ScenarioError, match=r"call\(\)"):
        called(False, NotImplementedError("Layer GAN does not have a `call()` method implemented."))
    with pytest.raises(NotImplementedError, match="cannot compute"):
        called(False, NotImplementedError("this backend cannot compute that"))


class Heard(Hooks):
    def on_epoch_begin(self, epoch: int, logs: object = None) -> None: ...


def in_batches(x: Any, y: Any, batch: int) -> Any:
    return [(x[:batch], y[:batch])]


def test_what_fit_is_given() -> None:
    model = made(fit=Mock(), evaluate=Mock(return_value={"loss": 1.5}))
    weighted = dataclasses.replace(ROWS, weights=ROWS.x)
    workload = dataclasses.replace(WORKLOAD, batch=4, test_each_epoch=True)
    feed, hooks = Feed(workload, ROWS, ROWS[:2], ROWS[:3], {0: 2.0}), Heard()
    runner = built(scenario(model, callbacks=lambda folder: ["own"]), feed)
    runner.keras = SimpleNamespace(callbacks=SimpleNamespace(LambdaCallback=lambda **heard: heard))
    runner.fit(weighted, hooks, epochs=3, whole=True)
    runner.fit(ROWS, shuffle=False)
    whole, plain = (call.kwargs for call in model.fit.call_args_list)
    arrays = {"x": ROWS.x, "y": ROWS.y, "batch_size": 4, "class_weight": {0: 2.0}}
    assert plain == arrays | {"callbacks": [], "verbose": 0, "epochs": 1, "shuffle": False}
    own, test, heard = whole.pop("callbacks")
    assert (own, heard) == ("own", {"on_epoch_begin": hooks.on_epoch_begin})  # a step is not listened to
    x, y = whole.pop("validation_data")
    assert (len(x), len(y)) == (2, 2)
    assert whole == arrays | {"sample_weight": ROWS.x, "verbose": 0, "epochs": 3, "shuffle": True}
    test["on_epoch_end"](0, {})
    assert len(model.evaluate.call_args.kwargs["x"]) == 3
    assert runner.evaluate(weighted) == 1.5
    given = model.evaluate.call_args.kwargs  # weights of classes are for training alone
    assert set(given) == {"x", "y", "batch_size", "sample_weight", "verbose", "return_dict"}
    runner.feed = Feed(dataclasses.replace(workload, feed=in_batches), ROWS, ROWS[:2], ROWS[:3])
    runner.fit(ROWS, whole=True)
    piped = model.fit.call_args.kwargs
    assert [len(x) for batches in (piped["x"], piped["validation_data"]) for x, _ in batches] == [4, 2]
    assert "batch_size" not in piped


class OfItsOwn(SimpleNamespace):
    def test_step(self, data: Any) -> None: ...


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (ValueError("No loss to compute. Provide a `loss` argument in `compile()`."), "has no loss: give compile"),
        ({"loss": 0.0}, "has no loss: give compile"),  # what Keras returns on JAX
        ({"accuracy": 1.0}, "own test_step returns no loss"),
        (ValueError("another"), "another"),
    ],
)
def test_a_step_of_its_own_is_evaluated(said: Any, complaint: str) -> None:
    evaluate = Mock(return_value=said, side_effect=said if isinstance(said, Exception) else None)
    runner = built(scenario(made(evaluate=evaluate, loss=None)))
    with pytest.raises(ValueError if complaint == "another" else ScenarioError, match=complaint):
        runner.evaluate(ROWS)


def test_a_loss_may_be_zero_where_there_is_one() -> None:
    nothing = made(evaluate=Mock(return_value={"loss": 0.0}), loss=None)
    for model in (SimpleNamespace(**(vars(nothing) | {"loss": "mse"})), OfItsOwn(**vars(nothing))):
        assert built(scenario(model)).evaluate(ROWS) == 0


def test_floating_arrays_are_proven() -> None:
    variables = [SimpleNamespace(dtype=dtype, value=f"{dtype} weight") for dtype in ("float32", "int64")]
    slots = [SimpleNamespace(dtype="bfloat16", value="slot")]
    model = made(weights=variables, optimizer=SimpleNamespace(variables=slots))
    runner = built(scenario(model, keeps_weights=True))
    placed = {"placement": lambda array: f"of {array}", "runtime_view": lambda: ["cpu"]}
    runner.backend = SimpleNamespace(**placed, forward=lambda model, x: {"a": x, "b": x})
    assert runner.proof("output") == Proof(["of float32 weight"], ["of slot"], ["of output"], ["cpu"])


def test_a_device_is_kept_busy_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_for: list[float] = []
    now_ns = [0]

    def wait(number: Any) -> None:
        waited_for.append(float(number))
        now_ns[0] += 3

    ops = SimpleNamespace(full=np.full, matmul=np.matmul)
    monkeypatch.setattr(trainer, "time", SimpleNamespace(perf_counter_ns=lambda: now_ns[0]))
    monkeypatch.setattr(trainer, "BUSY_PRODUCTS", 2)
    runner = built(scenario(made()))
    runner.keras, runner.to_numpy = SimpleNamespace(ops=ops), wait
    runner.keep_busy(10)
    assert waited_for == [1 / 256] * 4


@pytest.mark.parametrize(
    ("moments", "share"),
    [
        ({"a_momentum": [1e-21, 1e-3, 0.0, 0.0], "a_velocity": [1e-9, 1e-9, 1e-9, 0.0]}, 0.5),  # the last never lived
        ({"a_momentum": [-1e-30, 1.0], "b_momentum": [0.0, 1.0]}, 0.25),  # of SGD: zero may be what it began with
        ({"a_velocity": [1e-30]}, None),
    ],
)
def test_first_moments_vanish_that_have_lived(moments: dict[str, list[float]], share: float | None) -> None:
    for dtype, vanished in ("float32", share), ("float64", None):
        variables = [SimpleNamespace(path=f"adam/{path}", value=value, dtype=dtype) for path, value in moments.items()]
        runner = built(scenario(made(optimizer=SimpleNamespace(variables=variables))))
        runner.to_numpy = lambda variable: np.asarray(variable.value)
        assert runner.vanishing() == vanished
    assert built(scenario(made(optimizer=None))).vanishing() is None


def test_the_order_of_the_published_rows_is_timed_as_keras_draws_it(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = built(scenario(made()))
    now_ns, drawn = [0], list[tuple[int, int, bool]]()

    class Adapter:
        """Takes a nanosecond for each row, and a hiccup for its first one of all."""

        def __init__(self, x: Any, batch_size: int, shuffle: bool) -> None:
            drawn.append((x.nbytes, batch_size, shuffle))

        def get_torch_dataloader(self) -> Iterator[int]:
            now_ns[0] += drawn[-1][0] + 10_000 * (len(drawn) == 2)
            return iter([0])

    package: Any = SimpleNamespace(get_data_adapter=Adapter, config=SimpleNamespace(backend=lambda: "torch"))
    runner.keras = package
    names = ("keras", "src", "trainers", "data_adapters")
    for name in itertools.accumulate(names, "{}.{}".format):
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setattr(keras, "time", SimpleNamespace(perf_counter_ns=lambda: now_ns[0]))
    assert runner.shuffle_ns(1_000_000, 8_192, 4_096) == 1_000_000 - 8_192
    assert set(drawn) == {(1_000_000, 4_096, True), (8_192, 4_096, True)}
    assert runner.shuffle_ns(100, 100, 50) == 0
    runner.feed = dataclasses.replace(FEED, workload=dataclasses.replace(WORKLOAD, feed=in_batches))
    assert runner.shuffle_ns(100, 10, 5) is None  # a pipeline has an order of its own


@pytest.mark.parametrize("clears", [True, False])
def test_a_model_is_built_again_as_a_user_would_do_it(clears: bool) -> None:
    user = Mock()
    user.build.return_value = made()
    runner = built(scenario(made()))
    runner.scenario, runner.keras = user, SimpleNamespace(backend=user)
    runner.build_again(clears)
    assert user.mock_calls == [*([call.clear_session()] if clears else []), call.build(WORKLOAD)]


def test_a_model_that_is_built_again_may_be_trained_for_a_short_epoch() -> None:
    user, model = Mock(), made(fit=Mock())
    user.build.return_value = model
    runner = built(scenario(made()))
    runner.scenario, runner.keras = user, SimpleNamespace(backend=user)
    runner.build_again(clears=False, fits=True)
    given = model.fit.call_args.kwargs
    assert len(given["x"]) == min(len(ROWS), 16 * FEED.batch) and given["batch_size"] == FEED.batch


def test_fit_and_evaluate_get_inputs_alone_where_there_are_no_targets() -> None:
    model, rows = made(fit=Mock(), evaluate=Mock(return_value={"loss": 1.5})), Rows(ROWS.x)
    runner = built(scenario(model), Feed(WORKLOAD, rows, rows[:0], rows[:0]))
    runner.keras = SimpleNamespace(callbacks=SimpleNamespace(LambdaCallback=dict))
    runner.fit(rows)
    runner.evaluate(rows)
    assert "y" not in model.fit.call_args.kwargs and "y" not in model.evaluate.call_args.kwargs


def test_the_folder_of_callbacks_is_a_path() -> None:
    runner = built(scenario(made(), callbacks=lambda folder: [folder / "best.keras"]))
    (file,) = runner.callbacks
    assert file.name == "best.keras" and file.parent.is_dir()


def test_a_model_of_keras_without_a_loss_is_refused_alike_on_every_backend() -> None:
    of_keras = type("Sequential", (SimpleNamespace,), {"__module__": "keras.src.models"})
    layer = of_keras(supports_jit=True, built=True, weights=[], kernel_regularizer=None)
    without = of_keras(**vars(made(layers=[layer], loss=None)))
    with pytest.raises(ScenarioError, match="names no loss"):
        built(scenario(without))
    layer.kernel_regularizer = "l2"
    built(scenario(without))
    del layer.kernel_regularizer
    without.fit, without.loss = Mock(side_effect=ValueError("No loss to compute. Provide")), "mse"
    runner = built(scenario(without))
    runner.keras = SimpleNamespace(callbacks=SimpleNamespace(LambdaCallback=dict))
    with pytest.raises(ScenarioError, match="has no loss: give compile"):
        runner.fit(ROWS)
