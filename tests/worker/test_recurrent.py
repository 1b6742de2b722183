"""Who computes a recurrent layer, with stand-ins for Keras' own functions, because no framework is here."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kerasbench.worker.checks import RecurrentSpy


class LSTM: ...


class Mine(LSTM): ...


class Dense: ...


def model(*layers: object) -> Any:
    return SimpleNamespace(_flatten_layers=lambda include_self: list(layers))


def backend(monkeypatch: pytest.MonkeyPatch, name: str, refuses: bool = False, by_cudnn: bool = False) -> ModuleType:
    """Stand in for keras.src.backend, whose lstm may refuse, and may go on to cuDNN."""
    functions, inside = ModuleType("keras.src.backend"), ModuleType(f"keras.src.backend.{name}.rnn")
    parts: Any = inside

    def lstm() -> str:
        if refuses:
            raise NotImplementedError
        return str(parts._cudnn_lstm()) if by_cudnn else "computed"

    lstm.__module__ = inside.__name__
    vars(inside).update(lstm=lstm, _cudnn_lstm=lambda: "by cuDNN")
    vars(functions).update(lstm=lstm)
    monkeypatch.setitem(sys.modules, functions.__name__, functions)
    monkeypatch.setitem(sys.modules, inside.__name__, inside)
    return functions


def called(functions: Any) -> object:
    """Do what Keras' layer does: take its own loop where the backend refuses."""
    try:
        return functions.lstm()
    except NotImplementedError:
        return None


@pytest.mark.parametrize(
    ("name", "refuses", "by_cudnn", "found"),
    [
        ("torch", False, True, ["lstm: cudnn"]),
        ("torch", False, False, ["lstm: backend"]),
        ("tensorflow", True, False, ["lstm: keras"]),
        ("jax", False, False, ["lstm: cudnn"]),
        ("jax", True, False, ["lstm: keras"]),
    ],
)
def test_the_way_that_was_taken(
    monkeypatch: pytest.MonkeyPatch, name: str, refuses: bool, by_cudnn: bool, found: list[str]
) -> None:
    functions: Any = backend(monkeypatch, name, refuses, by_cudnn)
    before = dict(vars(functions)), dict(vars(sys.modules[f"keras.src.backend.{name}.rnn"]))
    with RecurrentSpy(model(Dense(), Mine())) as spy:
        called(functions)
    assert spy.notes == found
    assert (dict(vars(functions)), dict(vars(sys.modules[f"keras.src.backend.{name}.rnn"]))) == before


def test_a_layer_that_never_asks_its_backend_is_computed_by_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    backend(monkeypatch, "torch")
    with RecurrentSpy(model(LSTM())) as spy:
        pass
    assert spy.notes == ["lstm: keras"]


def test_of_a_model_without_recurrent_layers_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    functions: Any = backend(monkeypatch, "torch")
    with RecurrentSpy(model(Dense())) as spy:
        called(functions)
    assert spy.notes == []


def test_a_keras_that_has_other_functions_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras.src.backend", ModuleType("keras.src.backend"))
    with RecurrentSpy(model(LSTM())) as spy:
        pass
    assert spy.notes == []
