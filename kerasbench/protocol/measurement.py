"""What a trial measured, raw; and turns, for which a child of a block waits that has said ``ready`` or ``slice``."""

import itertools
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cached_property
from typing import Literal, Self

from kerasbench.protocol.requests import Sizes
from kerasbench.protocol.stages import standing


@dataclass(frozen=True)
class Slice:
    """Training steps (or epochs, or calls) between two synchronisations."""

    count: int
    ns: int
    cycle: int | None = None  # of its stage, from 0; None for a warm-up, as the next two
    position: int | None = None  # the column's place in the cycle, from 0
    cpu_ns: int | None = None  # processor time of the process and its helpers
    others_ns: int | None = None  # of all other processes, on the processors of this one; below 0 by rounding
    steal_ns: int | None = None  # what a hypervisor kept of these processors
    throttled: int | None = None  # how often heat slowed the machine's first processor down
    disturbed: bool = False  # others took so much that it does not count if enough slices are left
    card_share: float | None = None  # the most that other processes used of an NVIDIA card
    done: int | None = None  # of a long block: how many units the process has done by its end, also between slices
    rss_bytes: int | None = None  # of a long block: the memory that the process holds at its end (macOS: its footprint)
    page_faults: int = 0  # pages of memory that the kernel gave the process; those that it read from a disk not counted
    device_bytes: int | None = None  # of a long block on a GPU: the live bytes there, by the backend's own counter

    @property
    def unit_ns(self) -> float:
        return self.ns / self.count


@dataclass(frozen=True)
class Samples:
    """Slices as columns: a list for each field of a slice. One that says nothing is None, and in no file."""

    count: list[int]
    ns: list[int]
    cycle: list[int | None] | None = None
    position: list[int | None] | None = None
    cpu_ns: list[int | None] | None = None
    others_ns: list[int | None] | None = None
    steal_ns: list[int | None] | None = None
    throttled: list[int | None] | None = None
    disturbed: list[bool] | None = None
    card_share: list[float | None] | None = None
    done: list[int | None] | None = None
    rss_bytes: list[int | None] | None = None
    page_faults: list[int] | None = None
    device_bytes: list[int | None] | None = None

    def __post_init__(self) -> None:
        columns = vars(self)
        for name in [name for name, column in columns.items() if column is None]:
            del columns[name]  # the class has the same None; what is not in here is in no JSON
        if len(set(map(len, columns.values()))) > 1:
            raise ValueError("its columns differ in length")

    @classmethod
    def of(cls, slices: Iterable[Slice]) -> Self:
        rows, columns = list(slices), {}
        for field_ in fields(Slice):
            column = [getattr(slice_, field_.name) for slice_ in rows]
            if field_.default is MISSING or any(value != field_.default for value in column):
                columns[field_.name] = column
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.count)

    def __iter__(self) -> Iterator[Slice]:
        columns = {name: column for name, column in vars(self).items() if name in Slice.__dataclass_fields__}
        return (Slice(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True))

    @property
    def units_ns(self) -> list[float]:
        return [ns / count for ns, count in zip(self.ns, self.count, strict=True)]

    @cached_property
    def ns_by_cycle(self) -> dict[int, float]:
        """What a step, epoch or call of each cycle took on average."""
        cycles = self.cycle or []
        if len(set(cycles)) == len(cycles):  # nearly always, and in a report this is most of the time
            times = zip(cycles, self.units_ns, strict=False)
            return {cycle: unit_ns for cycle, unit_ns in times if cycle is not None}
        ns, units = Counter[int](), Counter[int]()
        for cycle, of_slice_ns, count in zip(cycles, self.ns, self.count, strict=False):
            if cycle is not None:
                ns[cycle] += of_slice_ns
                units[cycle] += count
        return {cycle: ns[cycle] / units[cycle] for cycle in units}

    @cached_property
    def disturbed_cycles(self) -> set[int]:
        cycles = zip(self.cycle or (), self.disturbed or (), strict=False)
        return {cycle for cycle, disturbed in cycles if disturbed and cycle is not None}


@dataclass(frozen=True)
class EpochEnds:
    """What the ends of epochs took beyond their steps in the `fit` whose slices were measured."""

    count: int
    more_ns: int  # of all of them; below 0 where they took less than steps do
    steps: int  # that this `fit` made


@dataclass(frozen=True)
class Training:
    """Beside its slices (``TRAIN``)."""

    unit: Literal["step", "epoch"]  # what a slice counts: epochs if they have too few steps to hold a slice
    first_step_ns: int | None  # one fit of one batch, cold; None after published epochs
    steps_per_slice: int
    warmup: Samples
    again_ns: list[int] = field(default_factory=list)  # the same call as the first step's, right after it
    epoch_ends: EpochEnds | None = None  # None: whole epochs are measured, or by an earlier kerasbench
    streamed: bool = False  # its model was given a stream, of which no short epochs are measured


@dataclass(frozen=True)
class ShortEpoch:
    """Beside its slices (``EPOCH``), with the published validation and partial batch."""

    steps: int  # full ones
    shuffle_ns: int | None = None  # how much longer drawing the order takes for an epoch of the published rows


@dataclass(frozen=True)
class FeedAlone:
    """Beside its slices (``FEED``), each of which counts batches that only a loop takes."""

    ready_ns: list[float]  # of a step on a batch that lies ready on the device, in the same turns


KEPT_CALLS = 167  # of a slice, at most: six slices have 1,000. A prime, so that inputs in turn are all met


def kept_calls(count: int) -> list[int]:
    """Return which of a slice's calls a file keeps, spread evenly: all of them would nearly double it."""
    kept = min(count, KEPT_CALLS)
    return [index * count // kept for index in range(kept)]


@dataclass(frozen=True)
class Calls:
    """Beside the slices of a stage that predicts one batch after another; each slice counts the calls of one turn."""

    batch: int
    calls_ns: list[int]  # in the order of the calls; of a slice 167 at most, spread evenly
    first_ns: int | None = None  # the first call, which may compile; None: not measured

    @cached_property
    def ordered_ns(self) -> list[int]:
        return sorted(self.calls_ns)

    def by_slice(self, slices: Samples) -> list[list[int]]:
        """Return the calls that are kept of each slice, in ns; empty where the file does not hold them."""
        kept = [min(count, KEPT_CALLS) for count in slices.count]
        ends = list(itertools.accumulate(kept))
        if not ends or ends[-1] != len(self.calls_ns):
            return []
        return [self.calls_ns[end - count : end] for count, end in zip(kept, ends, strict=True)]


@dataclass(frozen=True)
class Passes:
    """Whole passes of ``predict`` over the same samples, without the first, which compiles; each slice counts some."""

    samples: int
    batch: int
    passes_ns: list[int]


@dataclass(frozen=True)
class Texts:
    """Beside the slices of a stage that writes texts; each counts the new tokens of one text."""

    batch: int
    counts: list[int]  # of new tokens of each text, ascending
    times_ns: list[list[int]]  # of each slice: how long it took until there were so many
    tokens: list[list[int]]  # the new tokens of the first texts

    def __post_init__(self) -> None:
        if len(set(self.counts)) < 2 or not self.times_ns:
            raise ValueError("it has too few times for a line")
        if not self.tokens or any(len(times) != len(self.counts) for times in self.times_ns):
            raise ValueError("it has no tokens, or its times are not of its counts")


@dataclass(frozen=True)
class Parity:
    """What the first training steps computed from the shared weights, on the shared batches in their given order."""

    losses: list[float]
    silenced: list[str]  # layers whose random numbers (dropout, noise) were switched off for it
    outputs: list[list[float]] = field(default_factory=list)  # of models with weights: a few numbers of each output
    sensitive: list[str] = field(default_factory=list)  # kinds of layers by which backends may differ more


@dataclass(frozen=True)
class Learning:
    """What a number of steps did to the loss. The two of the first batch are equal if nothing was learned."""

    steps: int
    batch_loss_before: float  # of the first batch in or after the first step; before any of published epochs
    batch_loss_after: float  # of the first batch at the end
    loss: float  # of samples that were not trained on, if the publication had any
    accuracy: float | None  # of the same samples; None for a regression


@dataclass(frozen=True)
class Movement:
    """How far training moved each trainable weight: the root mean square over up to some thousand of its numbers."""

    weights: list[str]  # their paths in Keras, in the model's order
    sizes: list[int]  # how many numbers each has
    first: list[float]  # by the steps before the slices, of which all columns train the same number
    later: list[float]  # from there to the end of the slices
    steps: int  # that `fit` made in this later time
    updates: int | None  # of them those that the optimizer has counted; None: it counts none

    def __post_init__(self) -> None:
        if len({len(self.weights), len(self.sizes), len(self.first), len(self.later)}) > 1:
            raise ValueError("its lists differ in length")


@dataclass(frozen=True)
class Published:
    total_ns: int
    epochs_ns: list[int]
    history: dict[str, list[float]]  # the logs of each epoch by name
    predict_ns: list[int]  # the test set, twice


@dataclass(frozen=True)
class Batch:
    """What a step was given, as the model's loss function saw it: ``float32[32, 28, 28]``."""

    x: str
    y: str
    digest: str = ""  # of a script's first batches: columns with another trained on other data


@dataclass(frozen=True)
class Proof:
    """Where things were found to live at the end of a trial, in the backend's own words (``cpu:0``, ``cuda:0``)."""

    weights: list[str]
    optimizer: list[str]
    output: list[str]
    runtime: list[str]
    cards: list[str] = field(default_factory=list)  # UUIDs of the cards that CUDA showed to the process


@dataclass(frozen=True)
class Resolved:
    """The configuration that was really in force."""

    jit: bool
    dtype_policy: str
    compute_dtypes: list[str]  # of all layers that have weights
    weight_dtypes: list[str]  # of the weights' real arrays
    fp32: str  # how a GPU rounds the factors of float32 products: ieee, tf32, mixed (by operation), framework-default
    image_data_format: str
    threads: int | None
    versions: dict[str, str]
    processors: str = ""  # the logical ones that the process might run on, as Linux writes lists: 0,2 or 0-3
    recurrent: list[str] = field(default_factory=list)  # by an earlier kerasbench: what ``facts`` says of such layers
    steps_per_execution: int = 1  # training steps between two looks of `fit`
    unrolled_steps: int = 1  # of these, so many stand in TensorFlow's program one after another
    feed: str = "arrays"  # what `fit` was given, in words
    workers: int = 0  # of this feed
    subnormals: Literal["", "flushed", "kept"] = ""  # flushed: they are taken for zero; empty: not recorded
    malloc: Literal["keep"] | None = None  # keep: freed memory stays with the process; None: the system may get it
    cached: int | None = 0  # files with compiled programs of earlier processes that were read; None: nobody knows


@dataclass(frozen=True)
class Compiler:
    """What a backend's compiler has done in a process, as far as it tells. None: it does not."""

    traces: int | None = None  # how often JAX or TensorFlow has run Python code to make a program of it
    programs: int | None = None  # compiled: graphs of torch, programs of XLA
    seconds: float | None = None  # that tracing and compiling took
    breaks: dict[str, int] = field(default_factory=dict)  # of torch: why a graph ended early, and how often
    while_measured: int = 0  # programs, or traces, that were made or given up while slices were measured
    given_up: int = 0  # of torch: pieces of code that it runs eagerly, for it could not compile them
    eager: str = ""  # why what was to be compiled ran eagerly in the end; empty: it did not, or nothing tells

    @property
    def made(self) -> int:
        """Programs, or traces where these are not told, with those that were given up."""
        return (self.programs if self.programs is not None else self.traces or 0) + self.given_up


@dataclass(frozen=True)
class Exported:
    """A model that a runtime predicts from, as the process says that has exported it."""

    exporter: str  # what has really made it, with its version
    bytes: int  # of the largest batch's program, with the weights
    seconds: float  # that exporting has taken, for all sizes of batches
    batches: list[int]  # of which there is a program each, with static shapes
    parameters: int
    image_data_format: str
    versions: dict[str, str]
    compute_dtypes: list[str] = field(default_factory=lambda: ["float32"])  # of the model
    first_ns: int | None = None  # the first call, of one sample; the measuring process adds it


@dataclass(frozen=True)
class Usage:
    """What the process used in its own turns, of the stage that stands for the trial."""

    cpu_ns: int
    wall_ns: int

    @classmethod
    def of(cls, samples: Samples) -> Self:
        return cls(cpu_ns=sum(ns or 0 for ns in samples.cpu_ns or ()), wall_ns=sum(samples.ns))

    @property
    def processors(self) -> float:
        return self.cpu_ns / self.wall_ns


@dataclass(frozen=True)
class Measurement:
    samples: dict[str, Samples]  # the slices of each stage; of PARTS those of PARTS_OF_STEP
    training: Training | None  # None, as learning, for a model that is not trained
    published: Published | None
    batch: Batch
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
    short_epoch: ShortEpoch | None = None
    calls: dict[str, Calls] = field(default_factory=dict)  # by stage
    passes: Passes | None = None
    texts: dict[str, Texts] = field(default_factory=dict)  # by stage, of models that write texts
    peak_flops: float | None = None  # with PARTS: the highest rate of square matrix products on the device, same dtype
    fallbacks: dict[str, int] = field(default_factory=dict)  # operations of a step that the GPU lacks and the CPU did
    sizes: Sizes | None = None  # None: by an earlier kerasbench, or after published epochs
    compiler: Compiler | None = None  # None: nothing was compiled, or not recorded
    vanishing: float | None = None  # the share of first moments that a long training makes subnormal; None: not asked
    exported: Exported | None = None  # None: a Keras model predicted, or its baseline
    feed: FeedAlone | None = None  # None: no feeds were compared
    movement: Movement | None = None  # None: not trained, not the case's first trial, or by an earlier kerasbench
    facts: dict[str, str] = field(default_factory=dict)  # which code ran, by kerasbench.facts; empty: no Keras model
    lost: list[str] = field(default_factory=list)  # what this Keras has elsewhere, and what was not looked at for it

    def __post_init__(self) -> None:
        for stage, texts in self.texts.items():
            if stage in self.samples and len(texts.times_ns) != len(self.samples[stage]):
                raise ValueError("its texts are not as many as their slices")

    @property
    def slices(self) -> Samples:
        """Those of the stage that stands for the trial."""
        stage = standing(self.samples)
        return self.samples[stage] if stage else Samples([], [])

    @property
    def usage(self) -> Usage:
        return Usage.of(self.slices)

    @cached_property
    def median_ns(self) -> dict[str, float]:
        """The median step, epoch or call by stage, of those stages that have slices."""
        return {stage: statistics.median(samples.units_ns) for stage, samples in self.samples.items() if samples.ns}

    @cached_property
    def call_medians_ns(self) -> dict[str, dict[int, float]]:
        """By stage and cycle the median of a slice's calls; their mean where a file does not hold the calls."""
        return {stage: self._call_medians_ns(self.samples[stage], calls) for stage, calls in self.calls.items()}

    def _call_medians_ns(self, slices: Samples, calls: Calls) -> dict[int, float]:
        by_slice = calls.by_slice(slices)
        if not by_slice:
            return slices.ns_by_cycle
        cycles = zip(slices.cycle or (), by_slice, strict=False)
        return {cycle: statistics.median(calls_ns) for cycle, calls_ns in cycles if cycle is not None}


@dataclass(frozen=True)
class Turn:
    cycle: int  # of the stage, from 0
    position: int  # the column's place in the cycle, from 0
    lead_ns: int = 0  # keep the device busy for so long first, which is not measured


def encode_turn(turn: Turn | Sizes | None) -> bytes:
    """Return a turn as a line; None, or sizes, end the stage: the child goes on to what comes after it."""
    return json.dumps(None if turn is None else asdict(turn)).encode() + b"\n"


def decode_turn(line: bytes) -> Turn | Sizes | None:
    fields = json.loads(line)
    if fields is None:
        return None
    return Turn(**fields) if "cycle" in fields else Sizes(**fields)
