"""Stand-ins for keras and for a baseline: rows, models for sources, files, a baseline that counts."""

import json
import math
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.native import Logs, Stops
from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.runners.baseline import BaselineRunner
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.inputs import leaves, mapped
from kerasbench.scenario import Workload
from kerasbench.worker.clock import FIRST
from tests import made


class Baseline:
    """Trains nothing; its loss falls by one with each step, its outputs are rows of its choice."""

    jit = True

    def __init__(self, scores: Any = None) -> None:
        self.scores = scores
        self.losses: Iterator[float] = iter(range(100_000, 0, -1))
        self.placed = 0
        self.epochs: list[tuple[int, int, bool]] = []  # rows, batch, shuffled
        self.first_rows: list[float] = []  # of each epoch
        self.evaluated: list[int] = []
        self.steps = 0

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        self.placed += 1
        return x, y

    def train_epoch(self, x: Any, y: Any, batch: int, shuffle: bool, stops: Stops) -> Logs:
        self.epochs.append((len(x), batch, shuffle))
        self.first_rows.append(float(x[0, 0]))
        loss = math.nan
        for step in range(-(-len(x) // batch)):
            if stops(step):
                break
            self.compute_loss(x[:batch], y[:batch])
            loss = next(self.losses)
            self.steps += 1
        return {"loss": loss}

    def compute_loss(self, x: Any, y: Any, *state: Any) -> tuple[float, Any]:
        return 0.0, x

    def evaluate(self, x: Any, y: Any, batch: int) -> Logs:
        self.compute_loss(x[:batch], y[:batch])
        self.evaluated.append(len(x))
        return {"loss": float(self.steps)}

    def forward(self, x: Any) -> Any:
        return x

    def caller(self, compiled: bool) -> Any:
        return None if compiled else self.forward

    def predict(self, x: Any, batch: int) -> Any:
        return np.zeros((len(x), 1), np.float32) if self.scores is None else self.scores[: len(x)]

    def weights(self) -> list[Any]:
        return [np.zeros((8, 3), np.float32), np.arange(8, dtype=np.int32)]

    def slots(self) -> list[Any]:
        return [np.zeros(3, np.float32)]


def runner_of(baseline: Any, feed: Feed) -> BaselineRunner:
    """Return a runner of a baseline that is built, of a backend that has nothing to wait for."""
    backend: Any = SimpleNamespace(synchronize=lambda model: None, on_device=lambda arrays: arrays)
    request: Any = SimpleNamespace(device=made.CPU)
    runner = BaselineRunner(backend, request)
    runner.feed = feed
    runner.take(baseline)
    return runner


class Turns:
    """An ``Ask`` that grants so many turns at once, without other columns, and keeps the slices of these."""

    def __init__(self, count: int, turn: Turn = FIRST) -> None:
        self.count, self.turn = count, turn
        self.slices: list[Slice] = []

    def __call__(self, slice_: Slice | None) -> Turn | None:
        self.slices += [slice_] if slice_ else []
        return self.turn if len(self.slices) < self.count else None

    @property
    def counts(self) -> list[int]:
        return [slice_.count for slice_ in self.slices]


WORKLOAD = Workload(train=320, batch=16, validation=20, test=30)


def fed(workload: Workload = WORKLOAD, targets: Any = None) -> Feed:
    """Rows that are numbered; the targets of the test rows are given, or their numbers."""

    def rows(count: int, y: Any = None) -> Rows:
        x: Any = np.arange(count, dtype=np.float32).reshape(-1, 1)
        return Rows(x, np.arange(count, dtype=np.int32) if y is None else y)

    return Feed(workload, rows(workload.train), rows(workload.validation), rows(workload.test, targets))


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
    mask_zero: bool = False
    stateful: bool = False

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
    _compile_metrics: Any = None

    def compile(self, **given: Any) -> None:
        self.compiled_with = given

    def compute_output_spec(self, tensors: Any) -> Any:
        return self.returns

    def _flatten_layers(self) -> list[Embedding]:
        return self.layers


def pack(structure: Any, flat: Sequence[Any]) -> Any:
    given = iter(flat)
    return mapped(lambda leaf: next(given), structure)


def install(monkeypatch: pytest.MonkeyPatch, **applications: Any) -> None:
    """Put it in the place of keras."""
    flatten = lambda structure: [leaf for _, leaf in leaves(structure)]  # noqa: E731
    tree = SimpleNamespace(flatten=flatten, pack_sequence_as=pack, map_structure=mapped)
    layers, named = SimpleNamespace(Embedding=Embedding), SimpleNamespace(**applications)
    keras = SimpleNamespace(tree=tree, KerasTensor=Tensor, layers=layers, applications=named)
    monkeypatch.setitem(sys.modules, "keras", keras)
    monkeypatch.setitem(sys.modules, "keras.applications", named)


def saved_model(file: Path, config: object, **members: bytes) -> Path:
    """Write a .keras file of a configuration, or of a text that stands for one, and of further members."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
        content.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        for name, data in members.items():
            content.writestr(name, data)
    return file
