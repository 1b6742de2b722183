"""MLX's module, with a stand-in that tells when something was computed."""

import os
import sys
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench import private
from kerasbench.backends import Target, mlx
from kerasbench.private import LostNameError
from kerasbench.protocol.columns import Device
from tests.backends.mlx import put_mlx

CPU, GPU = Device("cpu"), Device("metal", 0, "Apple M1")
LINUX = Target("linux", "x86_64", (3, 11))
MAC = Target("darwin", "arm64", (3, 12), macos=(15,))


def variable(value: object) -> Any:
    return SimpleNamespace(_value=value, value=value)


@pytest.mark.parametrize(("target", "wheel"), [(LINUX, "mlx[cpu]>=0.31,<0.32"), (MAC, "mlx>=0.31,<0.32")])
def test_linux_wheels_are_for_the_cpu_and_those_of_a_mac_for_both(target: Target, wheel: str) -> None:
    assert mlx.requirements(target) == ["keras-mlx>=0.0.1", wheel]


@pytest.mark.parametrize(("gpus", "seen"), [((), [CPU]), (("Apple M1",), [CPU, GPU])])
def test_a_mac_has_its_gpu_beside_the_cpu(gpus: tuple[str, ...], seen: list[Device], monkeypatch: Any) -> None:
    put_mlx(monkeypatch, gpus)
    assert mlx.devices() == seen


@pytest.mark.parametrize(
    ("device", "mode", "place", "fp32"),
    [(CPU, None, "cpu:0", "ieee"), (GPU, None, "gpu:0", "ieee"), (GPU, "framework-default", "gpu:0", "tf32")],
)
def test_it_computes_where_it_was_told_to_and_rounds_as_it_was_told(
    device: Device, mode: str | None, place: str, fp32: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_mlx(monkeypatch, ["Apple M1"])  # on which MLX computes by itself
    monkeypatch.delenv(mlx.TF32, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert mlx.jit_default(device) and mlx.threads() is None and mlx.compiler(None) is None
    mlx.configure(device)
    if mode:
        mlx.round_products(mode)
    assert (mlx.placement("an array"), mlx.runtime_view(), mlx.fp32()) == (place, [place], fp32)


def test_a_wait_computes_what_nobody_has_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    core = put_mlx(monkeypatch)
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.99.0"))
    monkeypatch.setattr(private, "_lost", {})
    mlx.synchronize(SimpleNamespace(variables=[variable("lazy"), variable(None)]))
    mlx.synchronize(SimpleNamespace(variables=[variable(None)], _mlx_state={"trainable_variables": ["in a fit"]}))
    mlx.synchronize(SimpleNamespace(variables=[], _mlx_state=None))
    waits = [("eval", ["lazy"]), ("wait",), ("eval", ["in a fit"]), ("wait",), ("eval", []), ("wait",)]
    assert core.done == waits
    with pytest.raises(LostNameError, match="has no _mlx_state where kerasbench looks for it: it is unknown when MLX"):
        mlx.synchronize(SimpleNamespace(variables=[variable(None)]))


class FakeModel:
    jit_compile, _call_has_training_arg = True, True
    trainable_variables, non_trainable_variables = [variable("weight")], [variable("mean")]

    def __call__(self, x: object, training: bool | None = None) -> tuple[object, ...]:
        return "output", x, training

    def stateless_call(self, *arrays: object, training: bool) -> tuple[object, object]:
        return ("output", *arrays, training), "state"


def test_each_way_to_call_a_model_computes_its_outputs_before_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    core, model = put_mlx(monkeypatch), FakeModel()
    assert mlx.forward(model, "x") == ("output", "x", None)
    plain, compiled = mlx.caller(model, False), mlx.caller(model, True)
    assert plain and compiled
    assert plain("x") == ("output", "x", False)
    assert compiled("x") == ("output", ["weight"], ["mean"], "x", False)
    outputs = [("output", "x", None), ("output", "x", False), ("output", ["weight"], ["mean"], "x", False)]
    assert core.done == [("eval", outputs[0]), ("eval", outputs[1]), ("compiled",), ("eval", outputs[2])]
    model.jit_compile = False
    assert mlx.caller(model, True) is None


def test_arrays_are_on_the_device_before_a_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    core = put_mlx(monkeypatch)
    tree = SimpleNamespace(map_structure=lambda function, arrays: [*map(function, arrays)])
    keras = SimpleNamespace(tree=tree, ops=SimpleNamespace(convert_to_tensor=lambda array: f"tensor of {array}"))
    monkeypatch.setitem(sys.modules, "keras", keras)
    batch = mlx.on_device(["x", "y"])
    assert core.done == [("eval", batch)] and batch == ["tensor of x", "tensor of y"]
    ready = mlx.ready(batch, 5)
    assert ready["steps_per_epoch"] == 5 and next(ready["x"]) is next(ready["x"]) is batch


@pytest.mark.parametrize(("at_once", "executions"), [(1, 4), (2, 2), (8, 1)])
def test_bare_steps_are_computed_one_execution_after_another(
    at_once: int, executions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = put_mlx(monkeypatch)

    class Weight:
        value = 0

        def assign(self, value: int) -> None:
            self.value = value

    def step(state: tuple[list[int], ...], batches: Any) -> tuple[str, tuple[list[int], ...]]:
        assert next(batches) == "a batch"
        return "logs", tuple([value + 1 for value in group] for group in state)

    trained, slot = Weight(), Weight()
    model = SimpleNamespace(trainable_variables=[trained], optimizer=SimpleNamespace(variables=[slot]))
    model.non_trainable_variables = model.metrics_variables = []
    model.make_train_function, model.train_function, model.steps_per_execution = (lambda: None), step, at_once
    with mlx.bare_steps(model, "a batch")() as run:
        run(4)
        assert core.done == [("eval", "logs", ([count], [], [count], [])) for count in range(1, executions + 1)]
        assert trained.value == 0
    assert trained.value == slot.value == executions


@pytest.mark.parametrize(
    ("gpus", "distributions", "wheel"),
    [((), {"keras-mlx": "0.0.1", "mlx-cpu": "0.31.2"}, "CPU"), (("Apple M1",), {"mlx-metal": "0.31.2"}, "Metal")],
)
def test_its_versions_are_those_of_what_it_computes_with_too(
    gpus: tuple[str, ...], distributions: dict[str, str], wheel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if package not in distributions:
            raise metadata.PackageNotFoundError(package)
        return distributions[package]

    put_mlx(monkeypatch, gpus)
    monkeypatch.setattr(metadata, "version", version)
    assert mlx.versions() == distributions | {"mlx": "0.31.2", "mlx-wheel": wheel}
