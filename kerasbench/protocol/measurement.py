"""What a trial measured, raw: slices in ns, losses, where things lived, what was really in force.

How a parent lets the columns of a block measure in turn: lines on a child's standard input.

A child that has said ``ready`` or ``slice`` waits for such a line. Imported by the worker: standard library only.
"""

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Literal


@dataclass(frozen=True)
class Slice:
    """``count`` training steps (or epochs, or calls) between two synchronisations.

    ``cycle`` and ``position`` tell when it was measured: in which cycle of its stage, as the how-manieth column of the
    block, both from 0 on. ``cpu_ns`` is the processor time of the process and its helpers meanwhile. All three are None
    for a warm-up.

    ``others_ns`` is the processor time of all other processes meanwhile, ``steal_ns`` what a hypervisor kept, both on
    the processors that the process may use; ``throttled`` counts how often heat slowed them down. None: not told.
    ``card_share`` is what they used of an NVIDIA card at most. ``disturbed``: others took so much that the slice is not
    counted where enough others are left.
    """

    count: int
    ns: int
    cycle: int | None = None
    position: int | None = None
    cpu_ns: int | None = None
    others_ns: int | None = None
    steal_ns: int | None = None
    throttled: int | None = None
    disturbed: bool = False
    card_share: float | None = None

    @property
    def unit_ns(self) -> float:
        """The time of one of them."""
        return self.ns / self.count


def disturbed_cycles(columns: Iterable[Iterable[Slice]]) -> set[int]:
    """Return the cycles in which others disturbed a slice of any of these columns."""
    return {slice_.cycle for column in columns for slice_ in column if slice_.disturbed and slice_.cycle is not None}


@dataclass(frozen=True)
class Parts:
    """Blocks of steps in turn: fed from arrays, fed with a batch that lies ready on the device, and without ``fit``.

    ``bare`` is the compiled step alone (torch: the eager one). ``peak_flops`` is the highest rate of square matrix
    products on the device, in operations a second, in the same dtype and rounding mode.
    """

    arrays: list[Slice]
    ready: list[Slice]
    bare: list[Slice]
    peak_flops: float


@dataclass(frozen=True)
class Training:
    """Raw readings of the training phases.

    ``unit`` says what a slice counts: ``step``, or ``epoch`` where an epoch has too few steps to hold a slice.
    ``first_step_ns`` is one `fit` of one batch, cold, None where the published epochs went before; ``again_ns`` is the
    same call right after it, several times. ``slices`` are the measured slices. ``epochs`` count short epochs of
    ``epoch_steps`` full steps, the published validation pass and the published partial last batch, from which the
    cost per epoch follows; empty where the unit is the epoch, and in a sweep. ``shuffle_ns`` is by how much longer an
    epoch of the published rows takes to draw their order than a short one: each of ``epochs`` has it added. None: not
    measured.
    """

    unit: Literal["step", "epoch"]
    first_step_ns: int | None
    steps_per_slice: int
    warmup: list[Slice]
    slices: list[Slice]
    epoch_steps: int
    epochs: list[Slice]
    again_ns: list[int] = field(default_factory=list)
    parts: Parts | None = None
    shuffle_ns: int | None = None

    @cached_property
    def median_ns(self) -> float:
        """The median over slices of the time of what they count."""
        return statistics.median(slice_.unit_ns for slice_ in self.slices)


@dataclass(frozen=True)
class Latency:
    """Durations of single ``predict_on_batch`` calls at one batch size, in the order of the calls.

    ``slices`` tell which of them were made in one turn: each counts its calls.
    """

    batch: int
    calls_ns: list[int]
    slices: list[Slice] = field(default_factory=list)

    @cached_property
    def ordered_ns(self) -> list[int]:
        """The durations from the shortest to the longest."""
        return sorted(self.calls_ns)


@dataclass(frozen=True)
class Throughput:
    """Durations of whole passes of `predict` over the same samples, without the first, which compiles.

    ``slices`` tell which of them were made in one turn: each counts its passes.
    """

    samples: int
    batch: int
    passes_ns: list[int]
    slices: list[Slice] = field(default_factory=list)


@dataclass(frozen=True)
class Parity:
    """The losses of the first training steps, from the shared weights, on the shared batches in their given order.

    ``silenced`` names the layers whose random numbers (dropout, noise) were switched off for it, in a model of its
    own. ``outputs`` has of each output some numbers of the first batch's prediction, before any training, where a model
    brings its own weights. ``sensitive`` names the kinds of layers by which backends may differ more than others do.
    """

    losses: list[float]
    silenced: list[str]
    outputs: list[list[float]] = field(default_factory=list)
    sensitive: list[str] = field(default_factory=list)


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
    where the system knows no affinity; ``recurrent`` is how recurrent layers were
    computed: ``lstm: cudnn``, ``lstm: backend`` (the backend's own code without cuDNN) or ``lstm: keras`` (Keras' loop
    over time); ``busy_cores`` is how many processors kerasbench kept busy beside it on average, None where it was to
    keep none.
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
    recurrent: list[str] = field(default_factory=list)
    busy_cores: float | None = None


@dataclass(frozen=True)
class Usage:
    """What the process used while steps were measured, in its own turns.

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
    """Everything that a trial that succeeded has to say.

    A trial of a sweep has no prediction. One of a model that is not trained has no ``training`` and no ``learning``.

    ``fallbacks`` are the operations of one training step that the GPU lacks and the CPU did, with their numbers.
    """

    training: Training | None
    published: Published | None
    batch: Batch
    prediction: list[Latency]
    throughput: Throughput | None
    learning: Learning | None
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

    @property
    def slices(self) -> list[Slice]:
        """The measured slices of what stands for a trial: training steps, or predictions of the largest batch."""
        if self.training is not None:
            return self.training.slices
        return self.prediction[-1].slices if self.prediction else []


def steady_step_ns(measurement: Measurement) -> float | None:
    """Return b, the time of a step inside an epoch: the median over slices; None where slices are epochs."""
    training = measurement.training
    return None if training is None or training.unit == "epoch" else training.median_ns


def epoch_overhead_ns(measurement: Measurement) -> float | None:
    """Return a, what an epoch costs beyond its full steps (validation and a partial last batch are part of it).

    The median short epoch less its full steps. Where a is far smaller than a step, noise can make it negative.
    """
    step_ns, training = steady_step_ns(measurement), measurement.training
    if step_ns is None or training is None or not training.epochs:
        return None
    return statistics.median(slice_.unit_ns for slice_ in training.epochs) - training.epoch_steps * step_ns


def steady_epoch_ns(measurement: Measurement) -> float | None:
    """Return what an epoch of the published length takes by a + b * full steps, or the measured epoch itself.

    None in a sweep, which measures b alone.
    """
    if measurement.training is not None and measurement.training.unit == "epoch":
        return measurement.training.median_ns
    step_ns, overhead_ns = steady_step_ns(measurement), epoch_overhead_ns(measurement)
    if step_ns is None or overhead_ns is None:
        return None
    return overhead_ns + step_ns * measurement.full_steps_per_epoch


def epoch_ns(measurement: Measurement) -> float | None:
    """Return the time of a published epoch: the mean of those run in full, or a + b * steps; None in a sweep."""
    published = measurement.published
    if published is None:
        return steady_epoch_ns(measurement)
    return published.total_ns / len(published.epochs_ns)


def step_ns(measurement: Measurement) -> float:
    """Return what stands for a trial: a published epoch over its steps, in a sweep the step inside an epoch.

    Of a model that is not trained, a prediction of its batch.
    """
    whole_ns = epoch_ns(measurement)
    if whole_ns is not None:
        return whole_ns / measurement.steps_per_epoch
    return statistics.median(slice_.unit_ns for slice_ in measurement.slices)


# What is measured in slices, in this order: steps, short epochs, single predictions, predictions of a batch, whole
# passes of predict, and what a step is made of. A trial has those that its protocol asks for.
STAGES = ("train", "epoch", "predict_one", "predict_batch", "predict_all", "parts")


@dataclass(frozen=True)
class Turn:
    """Measure one slice.

    ``cycle`` is the stage's, ``position`` the column's place in it, both from 0. ``lead_ns``: keep the device busy for
    so long first, which is not measured.
    """

    cycle: int
    position: int
    lead_ns: int = 0


def encode_turn(turn: Turn | None) -> bytes:
    """Return a turn as one line; None ends the stage: the child goes on to what comes after it."""
    return json.dumps(None if turn is None else asdict(turn)).encode() + b"\n"


def decode_turn(line: bytes) -> Turn | None:
    """Rebuild what the parent wrote."""
    found = json.loads(line)
    return None if found is None else Turn(**found)
