"""Stand-ins for keras: the base of its callbacks for the phases of a trial, and what sources use of models."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from kerasbench.worker.inputs import leaves, mapped


class Callback:
    """Keras' own, as far as it goes: a model that is set, and hooks that do nothing."""

    def __init__(self) -> None:
        self._model: Any = None

    @property
    def model(self) -> Any:
        return self._model

    def set_model(self, model: Any) -> None:
        self._model = model

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: object = None) -> None: ...
    def on_train_batch_begin(self, batch: int, logs: object = None) -> None: ...
    def on_train_end(self, logs: object = None) -> None: ...


@contextmanager
def train_module() -> Iterator[ModuleType]:
    """Import kerasbench.worker.train with this keras; afterwards nothing of it is left."""
    from kerasbench import worker

    keras = SimpleNamespace(callbacks=SimpleNamespace(Callback=Callback))
    with patch.dict(sys.modules, {"keras": keras}):
        sys.modules.pop("kerasbench.worker.train", None)
        yield importlib.import_module("kerasbench.worker.train")
        vars(worker).pop("train", None)


@dataclass(frozen=True)
class Tensor:
    """A symbolic tensor."""

    shape: tuple[int | None, ...]
    dtype: str = "float32"
    name: str = ""


@dataclass
class Embedding:
    """A layer that looks numbers up, of so many, and what goes into it."""

    input_dim: int
    inputs: tuple[Tensor, ...] = ()

    def call(self, ids: Any) -> Any:
        return ids

    @property
    def _inbound_nodes(self) -> list[Any]:
        return [SimpleNamespace(input_tensors=list(self.inputs))]


@dataclass
class Model:
    """A model that returns what its outputs say, for whatever comes in."""

    returns: Any
    inputs: list[Tensor] | None = None
    loss: Any = "mse"
    layers: list[Embedding] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)
    compiled_with: dict[str, Any] = field(default_factory=dict)

    def compile(self, **given: Any) -> None:
        self.compiled_with = given

    def compute_output_spec(self, tensors: Any) -> Any:
        self.seen = tensors
        return self.returns

    def _flatten_layers(self) -> list[Embedding]:
        return self.layers


def pack(structure: Any, flat: Sequence[Any]) -> Any:
    given = iter(flat)
    return mapped(lambda one: next(given), structure)


def install(monkeypatch: pytest.MonkeyPatch, **applications: Any) -> None:
    """Put it in the place of keras."""
    tree = SimpleNamespace(
        flatten=lambda structure: [one for _, one in leaves(structure)],
        pack_sequence_as=pack,
        map_structure=mapped,
    )
    fake = ModuleType("keras")
    named = ModuleType("keras.applications")
    vars(named).update(applications)
    vars(fake).update(
        tree=tree, KerasTensor=Tensor, layers=SimpleNamespace(Embedding=Embedding), applications=named, __path__=[]
    )
    monkeypatch.setitem(sys.modules, "keras", fake)
    monkeypatch.setitem(sys.modules, "keras.applications", named)
