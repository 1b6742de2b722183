"""What a column runs in its child: a Keras model, or what stands in its place. The parent may import this, too."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from kerasbench.protocol.measurement import Compiler, Proof, Resolved

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed  # which imports NumPy

Call = Callable[[Any], Any]
Logs = Mapping[str, Sequence[Any]]  # what each epoch logged, by Keras' names
Bare = Callable[[], AbstractContextManager[Callable[[int], None]]]
Phase = Callable[[str], AbstractContextManager[None]]


class Hooks:
    """Hear of a `fit`, as Keras' callbacks; not of a step's end, for which Keras would wait on torch and JAX."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None: ...
    def on_train_batch_begin(self, batch: int, logs: object = None) -> None: ...
    def on_train_end(self, logs: object = None) -> None: ...


class Predictor(ABC):
    """Predicts. What trains, too, is a ``Trainer`` (runners/trainer.py)."""

    predicts = True  # False: a script's model that has only a training step of its own
    overrides: Sequence[str] = ()  # the methods of Keras' training that the model has of its own
    new_tokens = 0  # by which sequences are continued; 0: they are not
    generate: Callable[[Any, int], Any] | None = None  # the scenario's own way to do so

    layers: Sequence[Any] = ()  # of Keras, the model itself among them

    feed: "Feed"
    parameters: int
    compute_dtypes: set[str]
    place: Call  # moves arrays to the device
    to_numpy: Call  # of an array that was predicted on the device
    predict_on_batch: Call  # from NumPy arrays to NumPy arrays

    def takes_batches(self) -> bool:
        """Whether ``predict_on_batch`` takes a batch as it is; where not, the measurement says so."""
        return True

    def keep_busy(self, ns: int) -> None:  # noqa: B027
        """Keep the device busy for so long: a card that has idled is then at its clocks again."""

    @abstractmethod
    def predictor(self, batch: int) -> Call:
        """Return what predicts any number of rows, so many at a time, from NumPy arrays to NumPy arrays."""

    @abstractmethod
    def caller(self, compiled: bool) -> Call | None:
        """Return what predicts from arrays on the device, and waits; None: it has no such way."""

    @abstractmethod
    def wait(self) -> None:
        """Return when all work that was asked of the device is done, in the middle of a `fit` too."""

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Return the outputs of a batch where the device left them."""

    @abstractmethod
    def resolved(self) -> Resolved:
        """Return the configuration in force, but for what the process alone knows."""

    @abstractmethod
    def proof(self, x: Any) -> Proof: ...

    @abstractmethod
    def compiler(self) -> Compiler | None:
        """Return what its compiler has done in this process; None: nothing, as far as it tells."""

    def vanishing(self) -> float | None:
        """Return the share of first moments that have met no gradient for some hundred steps; None: it has none."""
        return None
