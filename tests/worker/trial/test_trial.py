"""What a trial decides by itself, with models that are made of a few attributes."""

import types

import pytest

from kerasbench import backends
from kerasbench.exchange.devices import Device
from kerasbench.worker.trial.trial import _jit_default

CPU, CUDA = Device("cpu"), Device("cuda")


def model(*supports_jit: bool) -> types.SimpleNamespace:
    layers = [types.SimpleNamespace(supports_jit=supported) for supported in supports_jit]
    return types.SimpleNamespace(_flatten_layers=lambda: layers)


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
    assert _jit_default(model(*supports_jit), backends.get(name), device) is compiled
