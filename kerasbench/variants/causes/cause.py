"""What a cause is: a variant whose column stands beside another one, and does without what may make that slow."""

import hashlib
import inspect
from collections.abc import Collection
from typing import Any, ClassVar

from kerasbench.private import LostNameError, PrivateName
from kerasbench.protocol.columns import WITHOUT, Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.variants.variant import CaseFacts, Refusal, Variant


class Cause(Variant[bool]):
    """Its name is that of the alternative, ``without_pooling_copy``, which ``on_model`` or another hook makes.

    One without an alternative is ``noticed`` in what was measured.
    """

    added, explains = True, True
    files: ClassVar[tuple[str, ...]] = ("variants/causes/cause.py",)
    backends: ClassVar[tuple[str, ...]] = ()  # that have it; empty: all do
    predicts: ClassVar[bool] = False  # it is about a prediction, not about a training step

    # What is said of it, in sentences without a full stop: what slows, which stands behind a colon; who takes that
    # away, in which thread or version; and what a user can do today besides what is ``written``.
    says: ClassVar[str]
    upstream: ClassVar[str] = ""
    today: ClassVar[str] = ""

    # The function of Keras that the alternative changes, and the hashes of its sources that it is known to fit. In
    # another source it may change what is computed, and is not tried.
    function: ClassVar[PrivateName | None] = None  # None: it changes none
    sources: ClassVar[Collection[str]] = ()

    @property
    def title(self) -> str:
        return self.name.removeprefix(WITHOUT).replace("_", " ")

    def describe(self, value: bool, backend: str) -> str:
        return f"without {self.title}"

    def occurs_on(self, backend: str) -> bool:
        return not self.backends or backend in self.backends

    def is_there(self, facts: CaseFacts) -> bool:
        """Tell whether it can be, as far as is known without a model."""
        return self.occurs_on(facts.name)

    def concerns(self, model: Any) -> bool:
        """In a child of the backend, before anything is measured: tell whether this compiled model may have it."""
        return False

    def noticed(self, device: Device, measurement: Measurement, epoch_cost: float) -> str:
        """Return how a measured column shows it, in a sentence; ``epoch_cost``: the share that an epoch costs once."""
        return ""

    def obstacle(self) -> str:
        """In the child: return why the alternative cannot be tried there; empty where it can."""
        if self.function is None:
            return ""
        try:
            if source_hash(self.function.find()) in self.sources:
                return ""
        except LostNameError as error:
            return str(error)
        import keras

        return f"Keras {keras.__version__} has another {self.function.name} than kerasbench can change"

    def on_model(self, value: bool, model: Any, backend: str) -> Refusal:
        obstacle = self.obstacle()
        return (obstacle, "leave it as it is") if obstacle else self.take_away(model)

    def take_away(self, model: Any) -> Refusal:
        """In the child, on a compiled model that was not run yet; return why the alternative cannot be had."""
        return None


def source_hash(function: Any) -> str:
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()


def ancestors(layer: Any) -> set[str]:
    return {kind.__name__ for kind in type(layer).__mro__}
