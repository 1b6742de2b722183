"""What a column runs in its child: a Keras model, or what stands in its place. The parent may import this, too."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Compiler, Proof, Resolved
from kerasbench.protocol.requests import TrialRequest
from kerasbench.runners.inputs import leaves
from kerasbench.scenario import Scenario

if TYPE_CHECKING:
    from kerasbench.runners.feed import Fed, Feed, Rows  # which import NumPy

Call = Callable[[Any], Any]
Logs = Mapping[str, Sequence[Any]]  # what each epoch logged, by Keras' names
Bare = Callable[[], AbstractContextManager[Callable[[int], None]]]
Phase = Callable[[str], AbstractContextManager[None]]


@dataclass
class PreparedModel:
    """A scenario's Keras model, compiled, with its weights and what was chosen, before it was run."""

    scenario: Scenario
    given: "Feed"  # as it was before a choice has changed it
    feed: "Feed"
    model: Any


class Hooks:
    """Hear of a `fit`, as Keras' callbacks; not of a step's end, for which Keras would wait on torch and JAX."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None: ...
    def on_train_batch_begin(self, batch: int, logs: object = None) -> None: ...
    def on_train_end(self, logs: object = None) -> None: ...


class Runner(ABC):
    """Trains and predicts, or predicts alone. What it does not have is as it stands here."""

    trains = True
    predicts = True  # False: a script's model that has only a training step of its own
    steps_per_execution = 1
    layers: Sequence[Any] = ()  # of Keras, the model itself among them
    callbacks: Sequence[Any] = ()  # the scenario's own
    queued_batches = 0  # that a feed's workers put by while nobody takes any; 0: it makes each batch when it is asked
    overrides: Sequence[str] = ()  # the methods of Keras' training that the model has of its own
    generate: Callable[[Any, int], Any] | None = None  # the scenario's own way to continue sequences by so many tokens

    # What ``take_model`` sets.
    scenario: Scenario
    feed: "Feed"
    model: Any  # each of its training steps computes the loss by its ``compute_loss``
    parameters: int
    compute_dtypes: set[str]
    to_numpy: Call  # of an array that was predicted on the device
    predict_on_batch: Call  # from NumPy arrays to NumPy arrays

    def __init__(self, backend: Backend, request: TrialRequest) -> None:
        self.backend = backend
        self.request = request
        self.place: Call = backend.on_device

    def load(self, phase: Phase) -> None:  # noqa: B027
        """Import what it needs besides the backend's package, in phases of its own."""

    def wake(self) -> None:  # noqa: B027
        """Compute something, once the device is taken."""

    def take_model(self, prepared: PreparedModel) -> None:
        """Measure it, or what is made of it; raise ScenarioError, or TrialFailure where the options are the cause."""
        raise NotImplementedError

    def build_again(self, clears: bool, fits: bool = False) -> None:
        """Build it once more and drop it; ``clears`` what the library keeps of the one before; ``fits``: train it."""
        raise NotImplementedError

    def fit(
        self, rows: "Fed", hooks: Hooks | None = None, epochs: int = 1, shuffle: bool = True, whole: bool = False
    ) -> Logs:
        """``whole``: with what a published epoch has besides steps: callbacks, validation, a pass over test rows."""
        raise NotImplementedError

    def stop(self) -> None:
        """End a `fit` with the step, or before the epoch, that has just begun."""
        raise NotImplementedError

    def evaluate(self, rows: "Rows") -> float:
        """Return the mean loss."""
        raise NotImplementedError

    def takes_batches(self) -> bool:
        """Whether ``predict_on_batch`` takes a batch as it is; where not, the measurement says so."""
        return True

    def bare_steps(self, batch: Any) -> Bare | None:
        """As ``Backend.bare_steps``; None: its steps cannot be had without a `fit`."""
        return None

    def peak_flops(self) -> float:
        """Return the highest rate of square matrix products on the device, in operations a second."""
        raise NotImplementedError

    def shuffle_ns(self, rows: int, few: int, batch: int) -> int | None:
        """By how much longer it needs to draw the order of so many rows than that of a few; None: it has its own."""
        return None

    def keep_busy(self, ns: int) -> None:  # noqa: B027
        """Keep the device busy for so long: a card that has idled is then at its clocks again."""

    @abstractmethod
    def predictor(self, batch: int) -> Call:
        """Return what predicts any number of rows, so many at a time, from NumPy arrays to NumPy arrays."""

    @abstractmethod
    def caller(self, compiled: bool) -> Call | None:
        """Return what predicts from arrays on the device, and waits; None: it has no such way."""

    def wait(self) -> None:
        """Return when all work that was asked of the device is done, in the middle of a `fit` too."""
        self.backend.synchronize(self.model)

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Return the outputs of a batch where the device left them."""

    @abstractmethod
    def arrays(self) -> tuple[Iterable[Any], Iterable[Any]]:
        """Return the backend's floats of weights and of the optimizer; TensorFlow keeps integers in host memory."""

    def trained_weights(self) -> Sequence[tuple[str, Any]]:
        """Return the path and the backend's array of each weight that training may move; empty: it does not tell."""
        return ()

    def updates(self) -> int | None:
        """Return how often the optimizer has changed the weights, by its own counter; None: it has none."""
        return None

    @abstractmethod
    def resolved(self) -> Resolved:
        """Return the configuration in force, but for what the process alone knows."""

    def proof(self, x: Any) -> Proof:
        def places(arrays: Iterable[Any]) -> list[str]:
            return sorted({self.backend.placement(array) for array in arrays})

        weights, slots = map(places, self.arrays())
        outputs = places(array for _, array in leaves(self.forward(x))) if self.predicts else []
        return Proof(weights, slots, outputs, self.backend.runtime_view())

    def compiler(self) -> Compiler | None:
        return self.backend.compiler(self.model)

    def vanishing(self) -> float | None:
        """Return the share of first moments that have met no gradient for some hundred steps; None: it has none."""
        return None
