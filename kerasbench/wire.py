"""What a child says to its parent: JSON lines, each one message.

The child builds these from standard-library types; the parent validates every line against them. Times are
nanoseconds of the system-wide monotonic clock (``time.monotonic_ns``), so that both processes read the same one.
"""

import dataclasses
import json
import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from kerasbench.devices import Device

EXIT_PIPE_LOST = 203  # a child's status when its pipe was taken from it; no program leaves with it by custom
FIND = "find"  # the phase of a probe in which it turns out whether a backend is installed at all


class Code(StrEnum):
    """Why a cell has no number."""

    UNAVAILABLE = "unavailable"  # the backend or the device is not there
    UNSUPPORTED = "unsupported"  # the backend cannot do this on that device
    OOM = "oom"  # memory ran out
    TIMEOUT = "timeout"  # the child was stopped at its time limit
    CRASH = "crash"  # the child died from a signal or left without a word
    WRONG_DEVICE = "wrong-device"  # it ran, but not where it was asked to
    NONFINITE = "nonfinite"  # a loss that is not a number
    PARITY = "parity"  # it computed something else than the other backends
    INVALID = "invalid"  # the scenario file cannot be used, or the child broke the protocol
    ERROR = "error"  # the scenario or the backend raised an exception


@dataclass(frozen=True)
class Phase:
    """One span of a trial. ``start_ns`` and ``end_ns`` are readings of the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Block:
    """``count`` training steps (or whole epochs) between two synchronisations."""

    count: int
    ns: int


@dataclass(frozen=True)
class Parts:
    """Blocks of steps in turn: fed from arrays, fed with a batch that lies ready on the device, and without ``fit``.

    ``bare`` is the compiled step alone (torch: the eager one). ``peak_flops`` is the highest rate of square matrix
    products on the device, in operations a second, in the same dtype and rounding mode.
    """

    arrays: list[Block]
    ready: list[Block]
    bare: list[Block]
    peak_flops: float


@dataclass(frozen=True)
class Training:
    """Raw readings of the training phases.

    ``unit`` says what a block counts: ``step``, or ``epoch`` where an epoch has too few steps to hold a block.
    ``first_step_ns`` is one `fit` of one batch, cold, None where the published epochs went before; ``again_ns`` is the
    same call right after it, several times. ``epochs_ns`` are short epochs of
    ``epoch_steps`` full steps, the published validation pass and the published partial last batch, from which the
    cost per epoch follows; empty where the unit is the epoch, and in a sweep.
    """

    unit: Literal["step", "epoch"]
    first_step_ns: int | None
    steps_per_block: int
    warmup: list[Block]
    steady: bool
    blocks: list[Block]
    epoch_steps: int
    epochs_ns: list[int]
    again_ns: list[int] = field(default_factory=list)
    parts: Parts | None = None

    @cached_property
    def median_ns(self) -> float:
        """The median over blocks of the time of what they count."""
        return statistics.median(block.ns / block.count for block in self.blocks)


@dataclass(frozen=True)
class Latency:
    """Durations of single ``predict_on_batch`` calls at one batch size, in the order of the calls."""

    batch: int
    calls_ns: list[int]

    @cached_property
    def ordered_ns(self) -> list[int]:
        """The durations from the shortest to the longest."""
        return sorted(self.calls_ns)


@dataclass(frozen=True)
class Throughput:
    """Durations of whole passes of `predict` over the same samples, without the first, which compiles."""

    samples: int
    batch: int
    passes_ns: list[int]


@dataclass(frozen=True)
class Parity:
    """The losses of the first training steps, from the shared weights, on the shared batches in their given order.

    ``silenced`` names the layers whose random numbers (dropout, noise) were switched off for it, in a model of its
    own.
    """

    losses: list[float]
    silenced: list[str]


@dataclass(frozen=True)
class Learning:
    """What a number of steps did to the loss.

    ``first_loss`` is the first step's, as `fit` reports it, or the first epoch's where the published ones were run.
    ``batch_loss_before`` and ``batch_loss_after`` are the loss of the first batch after that step (before any, where
    the published epochs were run) and at the end: equal, if nothing was learned. ``loss`` and ``accuracy`` (None for
    a regression) are of samples that were not trained on, where the publication had any.
    """

    steps: int
    first_loss: float
    batch_loss_before: float
    batch_loss_after: float
    loss: float
    accuracy: float | None


@dataclass(frozen=True)
class Published:
    """All published epochs. ``history`` has each epoch's logs by name; ``predict_ns`` is the test set, twice."""

    total_ns: int
    epochs_ns: list[int]
    history: dict[str, list[float]]
    predict_samples: int
    predict_ns: list[int]


@dataclass(frozen=True)
class Batch:
    """What a step was given, as the model's loss function saw it: ``float32[32, 28, 28]``."""

    x: str
    y: str


@dataclass(frozen=True)
class Proof:
    """Where things were found to live at the end of a trial, in the backend's own words (``cpu:0``, ``cuda:0``).

    ``cards`` are the UUIDs of the cards that CUDA showed to the process; empty: not on CUDA, or not told.
    """

    weights: list[str]
    optimizer: list[str]
    output: list[str]
    runtime: list[str]
    cards: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Resolved:
    """The configuration that was really in force.

    ``compute_dtypes`` are those of all layers that have weights, ``weight_dtypes`` those of the weights' real arrays;
    ``fp32`` is how a GPU rounds the factors of float32 products: ``ieee``, ``tf32``, ``mixed`` (by operation) or
    ``framework-default``; ``memory_grows`` is whether the GPU's memory was taken as it was needed, None on the CPU;
    ``processors`` are the logical ones that the process might run on, as Linux writes lists (``0,2`` or ``0-3``), empty
    where the system knows no affinity, and in older files.
    """

    jit: bool
    dtype_policy: str
    compute_dtypes: list[str]
    weight_dtypes: list[str]
    fp32: str
    image_data_format: str
    threads: int | None
    versions: dict[str, str]
    memory_grows: bool | None = None
    processors: str = ""


@dataclass(frozen=True)
class Usage:
    """What the process used while steps were measured.

    ``involuntary_switches`` count how often the kernel took a processor away from it; None where it was not counted.
    """

    cpu_ns: int
    wall_ns: int
    involuntary_switches: int | None

    @property
    def processors(self) -> float:
        """How many processors were busy for it, on average."""
        return self.cpu_ns / self.wall_ns


@dataclass(frozen=True)
class Measurement:
    """Everything that a trial that succeeded has to say. None: what an older kerasbench did not measure.

    A trial of a sweep has no prediction.

    ``fallbacks`` are the operations of one training step that the GPU lacks and the CPU did, with their numbers.
    """

    training: Training
    published: Published | None
    batch: Batch
    prediction: list[Latency]
    throughput: Throughput | None
    learning: Learning
    parity: Parity | None
    proof: Proof
    resolved: Resolved
    parameters: int
    train_samples: int
    steps_per_epoch: int
    full_steps_per_epoch: int
    peak_rss_bytes: int
    peak_device_bytes: int | None
    usage: Usage
    fallbacks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why there is no measurement: a code, one line each of cause and remedy, and what the child said last."""

    code: Code
    cause: str
    remedy: str
    phase: str = ""
    detail: str = ""


@dataclass(frozen=True)
class RegimeDescription:
    """One regime. ``keras_only`` is what it needs that no twin without Keras has, empty where there is nothing."""

    name: str
    train: int
    batch: int
    full_batch: bool
    steps: int
    epochs: int
    validation: int
    test: int
    data: str
    has_real_data: bool
    keras_only: str = ""


@dataclass(frozen=True)
class Description:
    """What a scenario file says of itself."""

    name: str
    title: str
    text: str
    source: str
    parameters: int | None
    learnable: bool
    regimes: list[RegimeDescription]
    scalable: bool = False


@dataclass(frozen=True)
class ProbeReport:
    """What a backend said when it was imported."""

    backend: str
    python: str
    versions: dict[str, str]
    devices: list[Device]


@dataclass(frozen=True)
class Inventory:
    """What an interpreter is and has installed. ``packages`` has versions by normalised name.

    ``tags`` say for which interpreters and systems the backend's own wheel was built.
    """

    python: str
    prefix: str
    architecture: str
    packages: dict[str, str]
    tags: list[str]


@dataclass(frozen=True)
class Message:
    """One line on the pipe: exactly one of its fields is set."""

    phase: Phase | None = None
    begun: str | None = None
    measurement: Measurement | None = None
    failure: Failure | None = None
    description: Description | None = None
    fetched: str | None = None
    counted: float | None = None
    probe: ProbeReport | None = None
    inventory: Inventory | None = None

    def encode(self) -> bytes:
        """Return the JSON line; raise ValueError for a number that JSON does not know (NaN, infinity)."""
        said = {kind: value for kind, value in dataclasses.asdict(self).items() if value is not None}
        line = json.dumps(said, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return line.encode("utf-8", "replace") + b"\n"  # a file name that is no text has lone surrogates, JSON has none
