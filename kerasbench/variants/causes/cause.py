"""What a cause is: a variant whose column stands beside another one, and does without what may make that slow."""

import hashlib
import importlib
import inspect
from collections.abc import Collection
from types import ModuleType
from typing import Any, ClassVar

from kerasbench.backends import Backend
from kerasbench.protocol.columns import Device
from kerasbench.variants.variant import CaseFacts, Variant


class Cause(Variant[bool]):
    """Its name is that of the alternative: ``without_pooling_copy``."""

    added, explains = True, True
    files = ("variants/causes/cause.py",)
    backends: ClassVar[tuple[str, ...]]  # that have it
    predicts: ClassVar[bool] = False  # it is about a prediction, not about a training step

    # What is said of it, as sentences without a full stop: what slows; who takes that away, in which thread or version;
    # and what a user can do today besides what is ``written``.
    says: ClassVar[str]
    upstream: ClassVar[str] = ""
    today: ClassVar[str] = ""

    # The function of Keras that the alternative takes the place of, and the hashes of the sources that it is known to
    # compute the same as. Another source is left alone.
    function: ClassVar[tuple[str, str]] = ("", "")  # a module, and a name in it; empty: it replaces none
    sources: ClassVar[Collection[str]] = ()

    @property
    def title(self) -> str:
        return self.name.removeprefix("without_").replace("_", " ")

    def said(self, value: bool, backend: str) -> str:
        return f"without {self.title}"

    def is_there(self, facts: CaseFacts) -> bool:
        return facts.name in self.backends

    def concerns(self, model: Any) -> bool:
        """In a child of the backend, before anything is measured: tell whether this compiled model may have it."""
        return True

    def obstacle(self) -> str:
        """In the child: return why the alternative cannot be tried there; empty where it can."""
        module, name = self.function
        if not name:
            return ""
        original = getattr(importlib.import_module(module), name, None)
        if original is not None and source_hash(original) in self.sources:
            return ""
        import keras

        has = "another function" if original is not None else "no function"
        return f"Keras {keras.__version__} has {has} {name} than the one that kerasbench can replace"

    def replacement(self, module: ModuleType) -> Any:
        """Return what takes the place of the function."""
        raise NotImplementedError

    def apply(self, value: bool, backend: Backend, device: Device) -> None:
        place, name = self.function
        if name and not self.obstacle():
            module = importlib.import_module(place)
            setattr(module, name, self.replacement(module))


def source_hash(function: Any) -> str:
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
