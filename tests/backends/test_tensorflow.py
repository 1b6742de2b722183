"""What only TensorFlow's module does, with a tensorflow that is made of a few functions."""

import sys
import types

import pytest

from kerasbench.backends import tensorflow
from kerasbench.protocol.columns import Device

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
def test_whether_a_gpu_s_memory_is_taken_as_it_is_needed_is_read_back(
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
