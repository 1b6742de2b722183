"""Which code computes recurrent layers, with stand-ins: no framework is here."""

import sys
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kerasbench import private
from kerasbench.facts import recurrent

WATCHED = recurrent.Recurrent().watch
LSTM, Dense = type("LSTM", (), {}), type("Dense", (), {})
OwnLSTM = type("OwnLSTM", (LSTM,), {})


def backend(monkeypatch: pytest.MonkeyPatch, name: str, refuses: bool, by_cudnn: bool, is_new: bool) -> Any:
    """Stand in for what layers call, whose lstm may refuse, and may go on to cuDNN. Where it is new, it is in rnn."""
    inside: Any = ModuleType(f"keras.src.backend.{name}.rnn")

    def lstm() -> object:
        if refuses:
            raise NotImplementedError
        return by_cudnn and inside._cudnn_lstm()

    lstm.__module__ = inside.__name__
    vars(inside).update(lstm=lstm, _cudnn_lstm=lambda: "by cuDNN")
    functions: Any = SimpleNamespace(rnn=inside) if is_new else SimpleNamespace(lstm=lstm)
    monkeypatch.setitem(sys.modules, "keras.src.backend", functions)
    monkeypatch.setitem(sys.modules, inside.__name__, inside)
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.99.0"))
    monkeypatch.setattr(private, "_lost", {})
    return inside if is_new else functions


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    ("name", "refuses", "by_cudnn", "layer", "notes"),
    [
        ("torch", False, True, OwnLSTM(), {"lstm": "cuDNN"}),
        ("torch", False, False, OwnLSTM(), {"lstm": "fused"}),
        ("tensorflow", True, False, OwnLSTM(), {"lstm": "loop"}),
        ("jax", False, False, OwnLSTM(), {"lstm": "cuDNN"}),
        ("jax", True, False, OwnLSTM(), {"lstm": "loop"}),
        ("torch", False, False, Dense(), {}),
        ("torch", False, False, type("LSTM", (), {"fit": None})(), {}),  # a model that a user calls so
    ],
)
def test_the_way_that_was_taken(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    refuses: bool,
    by_cudnn: bool,
    layer: object,
    notes: dict[str, str],
    is_new: bool,
) -> None:
    functions: Any = backend(monkeypatch, name, refuses, by_cudnn, is_new)
    inside = sys.modules[f"keras.src.backend.{name}.rnn"]
    before = dict(vars(functions)), dict(vars(inside))
    with WATCHED([Dense(), layer], name) as code, suppress(NotImplementedError):  # Keras takes its own loop there
        functions.lstm()
    assert code == notes
    assert (dict(vars(functions)), dict(vars(inside))) == before
    assert private.lost() == []
    monkeypatch.setitem(sys.modules, "keras.src.backend", ModuleType("keras.src.backend"))  # without these functions
    with WATCHED([layer], name) as code:
        assert code == {}
    assert len(private.lost()) == ("lstm" in notes)


def test_a_layer_of_both_directions_is_computed_by_cudnn_where_its_own_function_does_not_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    functions = backend(monkeypatch, "torch", refuses=True, by_cudnn=False, is_new=True)
    functions.bidirectional_lstm = lambda: "both"
    with WATCHED([LSTM()], "torch") as code:
        assert functions.bidirectional_lstm() == "both"
    assert code == {"lstm": "cuDNN"}


def test_without_a_function_of_its_own_nothing_tells_whether_cudnn_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = backend(monkeypatch, "torch", refuses=False, by_cudnn=False, is_new=True)
    del functions._cudnn_lstm
    with WATCHED([LSTM()], "torch") as code:
        functions.lstm()
    assert code == {}
    (sentence,) = private.lost()
    assert sentence.startswith("Keras 3.99.0 has no _cudnn_lstm where")
    assert sentence.endswith(": it is unknown whether cuDNN computes LSTM layers")


@pytest.mark.parametrize("called", ["lstm", "bidirectional_lstm"])
def test_a_backend_from_outside_has_functions_of_its_own_and_no_cudnn(
    called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = backend(monkeypatch, "other", refuses=False, by_cudnn=False, is_new=True)
    inside.__name__ = inside.lstm.__module__ = "keras_other.src.rnn"
    monkeypatch.setitem(sys.modules, inside.__name__, inside)
    del inside._cudnn_lstm
    inside.bidirectional_lstm = lambda: "both"
    with WATCHED([LSTM()], "other") as code:
        getattr(inside, called)()
    assert code == {"lstm": "fused"} and private.lost() == []


def test_kinds_that_cudnn_does_not_compute_are_slow_whatever_version_has_written_them() -> None:
    assert recurrent.slow("LSTM: loop; GRU: cuDNN") == ["LSTM: loop"]
    assert recurrent.slow("lstm: keras; gru: cudnn") == ["lstm: keras"]
    assert recurrent.slow("none") == recurrent.slow("LSTM: not known") == []
