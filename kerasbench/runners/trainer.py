"""What trains: a Keras model, or what is made of one, in a process that has Keras."""

import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Compiler, Proof, Resolved
from kerasbench.protocol.requests import TrialRequest
from kerasbench.runners import Bare, Hooks, Logs, Phase, Predictor
from kerasbench.runners.feed import Fed, Feed, Rows
from kerasbench.runners.inputs import dtype_name, leaves
from kerasbench.runners.weights import remember_origins
from kerasbench.scenario import Scenario

# Small, because it lies in the memory of the process that is measured: 256 KiB, and as much for a product. Many are in
# the queue before one is waited for: waiting for each would leave a card idle most of the time.
BUSY_SIDE, BUSY_PRODUCTS = 256, 32
SUBNORMAL = 1e-39  # a number of float32 that is too small for its usual form: processors need many times as long


@dataclass
class PreparedModel:
    """A scenario's Keras model, compiled, with its weights and what was chosen, before it was run."""

    scenario: Scenario
    given: Feed  # as it was before a choice has changed it
    feed: Feed
    model: Any


class Trainer(Predictor):
    """What it does not have is as it stands here."""

    keras: Any
    steps_per_execution = 1
    callbacks: Sequence[Any] = ()  # the scenario's own
    fed = "arrays"  # what `fit` was given last
    fed_by = 0  # workers of it
    queued_batches = 0  # that a feed's workers put by while nobody takes any; 0: it makes each batch when it is asked

    # What ``take_model`` sets.
    scenario: Scenario
    model: Any  # each of its training steps computes the loss by its ``compute_loss``
    jit: bool

    def __init__(self, backend: Backend, request: TrialRequest) -> None:
        self.backend = backend
        self.request = request
        self.place = backend.on_device

    def load(self, phase: Phase) -> None:
        """Import what it needs besides the backend's package, in phases of its own."""
        with phase("keras"):  # apart: another Keras does not change how long the backend takes
            import keras

            remember_origins()
        self.keras, self.to_numpy = keras, keras.ops.convert_to_numpy

    def wake(self) -> None:
        """Compute something, once the device is taken."""
        self.to_numpy(self.keras.ops.sum(self.keras.ops.ones((2, 2))))

    @abstractmethod
    def take_model(self, prepared: PreparedModel) -> None:
        """Train it, or what is made of it; raise ScenarioError, or TrialFailure where the options are the cause."""

    def build_again(self, clears: bool, fits: bool = False) -> None:
        """Build it once more and drop it; ``clears`` what the library keeps of the one before; ``fits``: train it."""
        raise NotImplementedError

    @abstractmethod
    def fit(
        self, rows: Fed, hooks: Hooks | None = None, epochs: int = 1, shuffle: bool = True, whole: bool = False
    ) -> Logs:
        """``whole``: with what a published epoch has besides steps: callbacks, validation, a pass over test rows."""

    @abstractmethod
    def stop(self) -> None:
        """End a `fit` with the step, or before the epoch, that has just begun."""

    @abstractmethod
    def evaluate(self, rows: Rows) -> float:
        """Return the mean loss."""

    def bare_steps(self, batch: Any) -> Bare | None:
        """As ``Backend.bare_steps``; None: its steps cannot be had without a `fit`."""
        return None

    def peak_flops(self) -> float:
        """Return the highest rate of square matrix products on the device, in operations a second."""
        raise NotImplementedError

    def shuffle_ns(self, rows: int, few: int, batch: int) -> int | None:
        """By how much longer it needs to draw the order of so many rows than that of a few; None: it has its own."""
        return None

    def epochs(self, rows: Rows) -> Callable[[], Iterator[Any]] | None:
        """Return what begins an epoch of the batches that `fit` takes of these rows; None: they cannot be had alone."""
        return None

    def keep_busy(self, ns: int) -> None:
        ops = self.keras.ops
        product = ops.full((BUSY_SIDE, BUSY_SIDE), 1 / BUSY_SIDE)  # its square is itself, so that it stays finite
        until_ns = time.perf_counter_ns() + ns
        while time.perf_counter_ns() < until_ns:
            for _ in range(BUSY_PRODUCTS):
                product = ops.matmul(product, product)
            self.to_numpy(product[0, 0])  # waits for them

    def wait(self) -> None:
        self.backend.synchronize(self.model)

    @abstractmethod
    def arrays(self) -> tuple[Iterable[Any], Iterable[Any]]:
        """Return the backend's floats of weights and of the optimizer; TensorFlow keeps integers in host memory."""

    def trained_weights(self) -> Sequence[tuple[str, Any]]:
        """Return the path and the backend's array of each weight that training may move; empty: it does not tell."""
        return ()

    def updates(self) -> int | None:
        """Return how often the optimizer has changed the weights, by its own counter; None: it has none."""
        return None

    def resolved(self) -> Resolved:
        keras = self.keras
        half = keras.ops.convert_to_tensor(np.full(8, SUBNORMAL, "float32")) * 0.5
        # Where none of its inputs is an image, a Flatten has one that says nothing.
        ordered = [layer for layer in self.layers if not isinstance(layer, keras.layers.Flatten)]
        formats = sorted({str(layer.data_format) for layer in ordered if hasattr(layer, "data_format")})
        versions = {"python": sys.version.split()[0], "keras": keras.__version__, "numpy": np.__version__}
        versions |= self.feed.feeder.versions() if self.feed.feeder else {}
        return Resolved(
            jit=self.jit,
            dtype_policy=keras.config.dtype_policy().name,
            compute_dtypes=sorted(self.compute_dtypes),
            weight_dtypes=sorted({dtype_name(array) for array in self.arrays()[0]}),
            fp32=self.backend.fp32(),
            image_data_format=" and ".join(formats or [keras.config.image_data_format()]),
            threads=self.backend.threads(),
            versions=versions | self.backend.versions(),
            steps_per_execution=self.steps_per_execution,
            unrolled_steps=getattr(self.model, "unrolled_steps_per_execution", 1),
            feed=self.fed,
            workers=self.fed_by,
            subnormals="kept" if np.any(self.to_numpy(half)) else "flushed",
        )

    def proof(self, x: Any) -> Proof:
        def places(arrays: Iterable[Any]) -> list[str]:
            return sorted({self.backend.placement(array) for array in arrays})

        weights, slots = map(places, self.arrays())
        outputs = places(array for _, array in leaves(self.forward(x))) if self.predicts else []
        return Proof(weights, slots, outputs, self.backend.runtime_view())

    def compiler(self) -> Compiler | None:
        return self.backend.compiler(self.model)
