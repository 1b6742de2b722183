"""A stand-in for keras, of which the phases of a trial take the base of their callbacks alone."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

MODULES = ("train",)  # of kerasbench.worker: those that are imported only after keras


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
def imported(name: str) -> Iterator[ModuleType]:
    """Import a module of the worker with this keras; afterwards nothing of it is left."""
    from kerasbench import worker

    keras = SimpleNamespace(callbacks=SimpleNamespace(Callback=Callback))
    with patch.dict(sys.modules, {"keras": keras}):
        for module in MODULES:
            sys.modules.pop(f"kerasbench.worker.{module}", None)
        yield importlib.import_module(f"kerasbench.worker.{name}")
        for module in MODULES:
            vars(worker).pop(module, None)
