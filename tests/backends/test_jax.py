"""What only JAX's module does about its list of platforms, with a jax that is made of a few functions."""

import sys
import types
from dataclasses import dataclass
from importlib import metadata

import pytest

from kerasbench.backends import jax
from kerasbench.protocol.columns import DEFAULT, Device


@dataclass(frozen=True)
class Place:
    """One of JAX's devices."""

    platform: str
    id: int = 0


GPU, SECOND_GPU, CPU = Place("gpu"), Place("gpu", 1), Place("cpu")


def fake(default: list[Place], new_array: Place) -> types.ModuleType:
    """Return a jax with these devices on its default platform, which puts a new array on that one."""
    module = types.ModuleType("jax")
    module.devices = lambda: default  # type: ignore[attr-defined]
    module.default_backend = lambda: default[0].platform  # type: ignore[attr-defined]
    module.config = types.SimpleNamespace(update=lambda name, value: None)  # type: ignore[attr-defined]
    array = types.SimpleNamespace(devices=lambda: {new_array})
    module.numpy = types.SimpleNamespace(zeros=lambda shape: array)  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("platform", ["cuda", "rocm", "mps"])
def test_a_gpu_that_jax_passed_over_is_not_replaced_by_the_cpu(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", fake([CPU], CPU))
    with pytest.raises(RuntimeError, match=f"JAX finds no {platform} device here, and would use the CPU"):
        jax.configure(Device(platform), DEFAULT)


@pytest.mark.parametrize(("device", "found"), [(Device("cpu"), CPU), (Device("cuda"), GPU)])
def test_the_platform_that_was_asked_for_will_do(device: Device, found: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", fake([found], found))
    jax.configure(device, DEFAULT)


@pytest.mark.parametrize(
    ("default", "new_array", "seen"),
    [
        ([CPU], CPU, ["cpu:0"]),
        ([GPU], GPU, ["gpu:0"]),
        ([GPU, SECOND_GPU], GPU, ["gpu:0", "gpu:1"]),
        ([GPU], CPU, ["cpu:0", "gpu:0"]),  # jax_default_device was set to the CPU
    ],
)
def test_the_runtime_s_view_is_of_the_default_platform_and_of_where_a_new_array_lies(
    default: list[Place], new_array: Place, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", fake(default, new_array))
    assert jax.runtime_view() == seen


@pytest.mark.parametrize(("variable", "grows"), [("false", True), ("true", False), (None, False)])
def test_memory_grows_unless_it_is_taken_at_once(
    variable: str | None, grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(jax.PREALLOCATE, raising=False)
    if variable is not None:
        monkeypatch.setenv(jax.PREALLOCATE, variable)
    assert jax.memory_grows(Device("cuda")) is grows
    assert jax.memory_grows(Device("cpu")) is None


def test_its_versions_are_those_of_its_compiler_and_plug_in_too(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"jaxlib": "0.10.1", "jax-cuda13-plugin": "0.10.1"}
    module = fake([CPU], CPU)
    module.__version__ = "0.10.2"  # type: ignore[attr-defined]

    def version(package: str) -> str:
        if package not in known:
            raise metadata.PackageNotFoundError(package)
        return known[package]

    monkeypatch.setitem(sys.modules, "jax", module)
    monkeypatch.setattr(metadata, "version", version)
    assert jax.versions() == known | {"jax": "0.10.2", "jax-wheel": "jax-cuda13-plugin"}
    del known["jax-cuda13-plugin"]
    assert jax.versions() == known | {"jax": "0.10.2", "jax-wheel": "CPU"}
