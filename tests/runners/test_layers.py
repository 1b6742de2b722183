"""What layers say of themselves, with stand-ins: no framework is here."""

import sys
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kerasbench import private
from kerasbench.runners import layers
from kerasbench.runners.layers import recurrent_code

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
        ("torch", False, True, OwnLSTM(), {"lstm": "cudnn"}),
        ("torch", False, False, OwnLSTM(), {"lstm": "backend"}),
        ("tensorflow", True, False, OwnLSTM(), {"lstm": "keras"}),
        ("jax", False, False, OwnLSTM(), {"lstm": "cudnn"}),
        ("jax", True, False, OwnLSTM(), {"lstm": "keras"}),
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
    with recurrent_code([Dense(), layer]) as code, suppress(NotImplementedError):  # Keras takes its own loop there
        functions.lstm()
    assert code == notes
    assert (dict(vars(functions)), dict(vars(inside))) == before
    assert private.lost() == []
    monkeypatch.setitem(sys.modules, "keras.src.backend", ModuleType("keras.src.backend"))  # without these functions
    with recurrent_code([layer]) as code:
        assert code == {}
    assert len(private.lost()) == ("lstm" in notes)


def test_a_layer_of_both_directions_is_computed_by_cudnn_where_its_own_function_does_not_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    functions = backend(monkeypatch, "torch", refuses=True, by_cudnn=False, is_new=True)
    functions.bidirectional_lstm = lambda: "both"
    with recurrent_code([LSTM()]) as code:
        assert functions.bidirectional_lstm() == "both"
    assert code == {"lstm": "cudnn"}


def test_without_a_function_of_its_own_nothing_tells_whether_cudnn_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = backend(monkeypatch, "torch", refuses=False, by_cudnn=False, is_new=True)
    del functions._cudnn_lstm
    with recurrent_code([LSTM()]) as code:
        functions.lstm()
    assert code == {}
    (sentence,) = private.lost()
    assert sentence.startswith("Keras 3.99.0 has no _cudnn_lstm where")
    assert sentence.endswith(": it is unknown whether cuDNN computes LSTM layers")


DENSE = SimpleNamespace(name="dense")
DRAWS: dict[str, Any] = {"_seed_generators": [object()]}


@pytest.mark.parametrize(
    ("layer", "random", "can"),
    [
        (DENSE, False, True),
        (SimpleNamespace(**DRAWS, rate=0.5), True, True),
        (SimpleNamespace(**DRAWS, rate=0), False, True),
        (SimpleNamespace(**DRAWS, stddev=0.1), True, True),
        (SimpleNamespace(**DRAWS, dropout=0.0, recurrent_dropout=0.2), True, True),
        (SimpleNamespace(**DRAWS, factor=(0.1, 0.2)), True, False),  # a random rotation: no amount to zero
        (SimpleNamespace(**DRAWS, fit=None, rate=0.0), True, False),  # a model's own: its rate may be anything
        (SimpleNamespace(rate=0.5), False, True),  # no generator: a rate of something else
    ],
)
def test_random_layers(layer: Any, random: bool, can: bool) -> None:
    assert bool(layers.random_layers([DENSE, layer])) is random
    assert layers.can_be_silenced([DENSE, layer]) is can


def test_what_draws_is_silenced() -> None:
    layer = SimpleNamespace(name="dropout", **DRAWS, rate=0.5, recurrent_dropout=0.0)
    assert layers.silence([DENSE, layer]) == ["dropout"]
    assert layer.rate == 0.0
    assert layers.random_layers([DENSE, layer]) == []


def test_layers_by_which_backends_differ_more_are_known_by_their_class_or_one_that_it_is_derived_from() -> None:
    embedding, normalization = (type(name, (), {}) for name in ("Embedding", "BatchNormalization"))
    derived = type("OwnEmbedding", (embedding,), {})()
    assert layers.sensitive_layers([DENSE]) == []
    assert layers.sensitive_layers([derived, DENSE]) == ["Embedding"]
    assert layers.sensitive_layers([embedding(), normalization(), derived]) == ["BatchNormalization", "Embedding"]
