"""A stand-in for MLX, which computes when it is asked to: what was evaluated, and when somebody has waited."""

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest


class FakeDevice:
    def __init__(self, kind: str, index: int = 0) -> None:
        self.words = f"Device({kind}, {index})"

    def __repr__(self) -> str:
        return self.words


def put_mlx(monkeypatch: pytest.MonkeyPatch, gpus: Sequence[str] = (), **functions: Any) -> Any:
    """Put an MLX that sees these GPUs in the place of the real one; return it, with what was ``done``, in order."""
    core: Any = SimpleNamespace(__version__="0.31.2", cpu="cpu", gpu="gpu", Device=FakeDevice, done=[], **functions)
    core.default = FakeDevice("gpu" if gpus else "cpu")
    core.default_device = lambda: core.default
    core.set_default_device = lambda device: setattr(
        core, "default", FakeDevice("cpu") if device == core.cpu else device
    )
    core.metal = SimpleNamespace(is_available=lambda: bool(gpus))
    core.device_count = lambda kind: len(gpus) if kind == core.gpu else 1
    core.device_info = lambda device: {
        "device_name": dict(zip(map(repr, every_gpu(gpus)), gpus, strict=True))[repr(device)]
    }
    core.eval = lambda *arrays: core.done.append(("eval", *arrays))
    core.synchronize = lambda: core.done.append(("wait",))
    core.compile = lambda function: lambda *arrays: core.done.append(("compiled",)) or function(*arrays)
    monkeypatch.setitem(sys.modules, "mlx", SimpleNamespace(core=core))
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    return core


def every_gpu(names: Sequence[str]) -> list[FakeDevice]:
    return [FakeDevice("gpu", index) for index in range(len(names))]
