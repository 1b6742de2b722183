"""Whether a GPU's memory is taken as it is needed, read back from each framework; and what cannot fall back."""

import sys
import types
from collections.abc import Callable

import pytest

from kerasbench import backends
from kerasbench.backends import jax, tensorflow, torch
from kerasbench.exchange.devices import Device

CPU, CUDA, METAL = Device("cpu"), Device("cuda"), Device("metal")


def fake_tensorflow(gpus: list[str], growth: bool | None) -> types.ModuleType:
    module = types.ModuleType("tensorflow")
    experimental = types.SimpleNamespace(get_memory_growth=dict.fromkeys(gpus, growth).__getitem__)
    module.config = types.SimpleNamespace(  # type: ignore[attr-defined]
        get_visible_devices={"GPU": gpus}.__getitem__, experimental=experimental
    )
    return module


@pytest.mark.parametrize(
    ("device", "gpus", "said", "variable", "grows"),
    [
        (CPU, [], None, "true", None),
        (CUDA, [], None, "true", None),
        (CUDA, ["0"], None, "true", True),
        (CUDA, ["0"], None, None, False),
        (CUDA, ["0"], None, "false", False),
        (CUDA, ["0"], False, "true", False),  # the scenario said otherwise, which goes before the variable
        (METAL, ["0"], True, None, True),
    ],
)
def test_tensorflow(
    device: Device,
    gpus: list[str],
    said: bool | None,
    variable: str | None,
    grows: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", fake_tensorflow(gpus, said))
    monkeypatch.delenv(tensorflow.GROWTH, raising=False)
    if variable is not None:
        monkeypatch.setenv(tensorflow.GROWTH, variable)
    assert tensorflow.memory_grows(device) is grows


@pytest.mark.parametrize(("variable", "grows"), [("false", True), ("true", False), (None, False)])
def test_jax(variable: str | None, grows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(jax.PREALLOCATE, raising=False)
    if variable is not None:
        monkeypatch.setenv(jax.PREALLOCATE, variable)
    assert jax.memory_grows(CUDA) is grows
    assert jax.memory_grows(CPU) is None


def test_torch() -> None:
    assert torch.memory_grows(CUDA) is True
    assert torch.memory_grows(CPU) is None


@pytest.mark.parametrize("name", ["jax", "tensorflow"])
def test_backends_that_tell_of_no_fallback_run_no_step_for_it(name: str, never: Callable[[], None]) -> None:
    assert backends.get(name).fallbacks(never) == {}
