"""What the sources use of Keras, for models that are none."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kerasbench.worker.inputs import leaves, mapped


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
