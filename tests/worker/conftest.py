"""What tests of the worker share: modules that import keras, with a stand-in for it."""

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench import worker
from tests.worker.stand_in_keras import Callback


@pytest.fixture
def train_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """kerasbench.worker.train, imported with a stand-in for keras; afterwards nothing of it is left."""
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(callbacks=SimpleNamespace(Callback=Callback)))
    monkeypatch.delitem(sys.modules, "kerasbench.worker.train", raising=False)
    yield importlib.import_module("kerasbench.worker.train")
    sys.modules.pop("kerasbench.worker.train", None)
    vars(worker).pop("train", None)


@pytest.fixture
def numpy_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keras whose tensors are NumPy's arrays."""
    ops = SimpleNamespace(convert_to_numpy=lambda tensor: np.asarray(getattr(tensor, "value", tensor)))
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(ops=ops))
