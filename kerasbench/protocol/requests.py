"""What the parent asks of a child: one JSON line on its standard input."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from kerasbench.protocol.columns import DEFAULT as DEFAULT_OPTIONS
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.stages import AGENDAS, BATCH, ONE, STAGES, Agenda

MAX_NAME = 64  # what a workload's name may have
STRUCTURE = "structure"  # the member of a file of rows that says how its arrays belong together
UNFIT = re.compile(r"[^\w.-]")  # letters and digits of all scripts are fit


@dataclass(frozen=True)
class Input:
    """As ``--input tokens=128:int32`` has it."""

    name: str  # empty for the only input
    shape: list[int]  # without the samples, or with 1 for them
    dtype: str = ""  # empty: the model says it

    @property
    def label(self) -> str:
        """``tokens-128-int32``, fit to be part of a workload's name."""
        size = "x".join(map(str, self.shape))
        return UNFIT.sub("_", "-".join(part for part in (self.name, size, self.dtype) if part))


@dataclass(frozen=True)
class ScriptConfig:
    """How a training script is run, and which call of its is measured."""

    arguments: list[str] = field(default_factory=list)  # its own
    fit: int = 1  # the number of the call of ``fit``
    callbacks: bool = False  # keep those that it gives to ``fit``


@dataclass(frozen=True)
class ModelConfig:
    """How a model is measured that comes from a file or by its name, and not from a scenario file."""

    inputs: list[Input] = field(default_factory=list)  # the sizes of its open dimensions
    batch: int | None = None  # None: 32
    custom: str = ""  # a Python file with its own layers
    trust: bool = False  # load what may run code of its own
    rows: str = ""  # a file with its rows
    samples: int = 0  # of these rows
    script: ScriptConfig | None = None
    source: str = ""  # what kind of thing it is; empty: a scenario file, or several kinds

    @property
    def workload(self) -> str:
        """The name of the workload: what is measured differs by the sizes, so they are in it."""
        script = self.script or ScriptConfig()
        number = [f"fit-{script.fit}"] if script.fit > 1 else []
        words = [UNFIT.sub("_", word).strip("-_.") for word in script.arguments]
        batch = [f"batch-{self.batch}"] if self.batch else []
        parts = [*number, *filter(None, words), *(size.label for size in self.inputs), *batch]
        return "-".join(parts)[:MAX_NAME].strip("-_.") or "default"

    @property
    def script_words(self) -> list[str]:
        """Return what a command says of a script: options, and its own arguments, which come last."""
        script = self.script or ScriptConfig()
        number = ["--fit", str(script.fit)] if script.fit > 1 else []
        callbacks = ["--callbacks"] if script.callbacks else []
        return [*number, *callbacks, *(["--", *script.arguments] if script.arguments else [])]


NOTHING = ModelConfig()


def fitting(name: str) -> str:
    """Return a model's name as a scenario may have it: ``ep_05`` for ``ep=05``."""
    return UNFIT.sub("_", name)[:MAX_NAME].lstrip("-_.") or "model"


DataKind = Literal["synthetic", "real"]
TrialKind = Literal[
    "steady", "published", "sweep", "calls", "builds", "predictions", "predict_calls", "sweep_predictions"
]
MIN_STEPS_FOR_SLICES = 8  # in shorter epochs the epochs themselves are counted


def counts_epochs(steps_per_epoch: int) -> bool:
    """Tell whether epochs are too short to hold slices of steps, so that a slice counts whole epochs."""
    return steps_per_epoch < MIN_STEPS_FOR_SLICES


def too_few_executions(steps_per_epoch: int, steps_per_execution: int) -> str:
    """Say that an epoch that is not counted as a whole has too few executions for slices; empty where it has enough."""
    if counts_epochs(steps_per_epoch) or not counts_epochs(steps_per_epoch // steps_per_execution):
        return ""
    needed = f"{MIN_STEPS_FOR_SLICES} executions of {steps_per_execution} steps"
    return f"an epoch has {steps_per_epoch} steps: too few for {needed}"


TURNS_FOR_ONE = 9  # of a column in a long block, for one of its control, which is to stay as fresh as it was


@dataclass(frozen=True)
class Sizes:
    """How much the columns of a row do besides their slices: the same for all of them, less where steps are slow."""

    step_ns: int  # of the slowest column; of a model that is not trained, a prediction of its batch
    parity_steps: int  # whose losses are compared, with the first
    learn_steps: int  # that are trained before slices, with the first, at most
    silenced_steps: int  # of a second model without its random numbers; 0: there is none
    evaluated_batches: int  # of samples that learning is judged by, at most
    pass_batches: int  # of a pass of predict, at most
    warmup_calls: int  # of each sort of prediction
    left_out: list[str] = field(default_factory=list)  # stages that would take too long

    def ending_with(self, stage: str) -> "Sizes":
        """Return those of a column that measures nothing after this stage."""
        names = list(STAGES)
        return dataclasses.replace(self, silenced_steps=0, left_out=names[1 + names.index(stage) :])


@dataclass(frozen=True)
class TrialPlan:
    """What the trials of a case measure, and for how long."""

    kind: TrialKind = "steady"  # see ``protocol.stages``
    stages: tuple[str, ...] = tuple(AGENDAS["steady"].shares)  # in this order; nothing else says what is measured
    slice_ns: int = 100_000_000  # how long a slice is to measure
    warmup_min_ns: int = 1_000_000_000
    warmup_max_ns: int = 20_000_000_000
    predict_warmup_ns: int = 200_000_000
    slices_max_ns: int = 8_000_000_000  # how long all slices of a column measure in one block
    min_cycles: int = 6  # of each stage
    column_max_ns: int = 240_000_000_000  # how long slow steps may keep a column in one block, about
    steps_per_slice: int | None = None  # None, as the next two: calibrate it, and report what was found
    warmup_slices: int | None = None
    sizes: Sizes | None = None
    repeats_first_step: bool = True  # its call over again, which tells what of it was compiling; and all of learning
    compares_outputs: bool = False  # what weights of its own predict too, though the model brings none
    fixed_time: bool = False  # measure for as long as slices_max_ns says, however precise slices are
    reads_memory: bool = False  # with each slice, what the process holds
    keeps_subnormals: bool = False

    @property
    def agenda(self) -> Agenda:
        return AGENDAS[self.kind]

    @property
    def needs_training(self) -> bool:
        """Whether a model that is not trained cannot be measured by its predictions in its place."""
        trains = self.agenda.trains and (self.agenda.sized or self.fixed_time)
        return trains or any(STAGES[stage].fits for stage in self.stages)

    @property
    def is_quick(self) -> bool:
        """Whether it is of a quick look, which predicts no batches of a trained model, and leaves slow columns."""
        return self.agenda.usual and ONE in self.stages and BATCH not in self.stages

    def of_kind(self, kind: TrialKind) -> "TrialPlan":
        return dataclasses.replace(self, kind=kind, stages=tuple(AGENDAS[kind].shares))

    def leaving_out(self, *stages: str) -> "TrialPlan":
        return dataclasses.replace(self, stages=tuple(stage for stage in self.stages if stage not in stages))


@dataclass(frozen=True)
class TrialRequest:
    scenario: str
    file: str  # a scenario's, a saved model's, or a name such as keras.applications.ResNet50
    file_hash: str
    workload: str
    backend: str
    device: Device
    seed: int
    data: DataKind
    plan: TrialPlan
    options: Options = DEFAULT_OPTIONS
    baseline_hash: str = ""  # of the baseline's file, if the baseline is asked for
    model_config: ModelConfig = NOTHING
    # A folder with what earlier processes have compiled or exported; empty: its own, in which there is nothing.
    caches: str = ""
    fills_caches: bool = False  # it is there to leave something in them, and its figures are not kept
    card: str = ""  # UUID of its NVIDIA card; empty: it is on none, or the driver does not tell
    # Processes that were on its NVIDIA card before the block, by the driver's numbers; None: it does not tell.
    neighbours: list[int] | None = None


@dataclass(frozen=True)
class ProbeRequest:
    """Import a backend and say which devices it sees."""

    backend: str
    imports: bool = True  # False: there is a CPU alone, whatever it is built for


@dataclass(frozen=True)
class InventoryRequest:
    """Say what is installed, and import none of it."""


@dataclass(frozen=True)
class DescribeRequest:
    """Load scenario files or models and say what is in each."""

    files: list[str]
    model_config: ModelConfig = NOTHING
    bare: bool = False  # import neither Keras nor a backend: what uses them to describe itself is not described


@dataclass(frozen=True)
class FetchRequest:
    """Load a scenario's real rows, so that they are there, and right, before anything is measured."""

    file: str
    workload: str


@dataclass(frozen=True)
class CountRequest:
    """Count the floating-point operations of a training step; only torch can."""

    file: str
    file_hash: str
    workload: str
    model_config: ModelConfig = NOTHING


@dataclass(frozen=True)
class LookRequest:
    """Build a workload's model, and say which of these causes it may have on the backend."""

    file: str
    file_hash: str
    workload: str
    backend: str
    device: Device
    seed: int
    causes: list[str]  # by their names
    options: Options  # with which the model is measured
    model_config: ModelConfig = NOTHING


Request = CountRequest | LookRequest | TrialRequest | ProbeRequest | InventoryRequest | DescribeRequest | FetchRequest


def encode_request(request: Request) -> bytes:
    fields = {"kind": type(request).__name__, **dataclasses.asdict(request)}
    return json.dumps(fields, default=dict).encode() + b"\n"


def decode_request(line: bytes) -> Request:
    fields = json.loads(line)
    kinds = {kind.__name__: kind for kind in get_args(Request)}
    request: Request = from_dict(kinds[fields.pop("kind")], fields)
    return request


Data = TypeVar("Data")


def from_dict(kind: type[Data], fields: Mapping[str, Any]) -> Data:
    """Rebuild a dataclass from what ``dataclasses.asdict`` made of it; raise TypeError for a field that it lacks."""
    hints = get_type_hints(kind)
    return kind(**{name: _rebuilt(hints.get(name), value) for name, value in fields.items()})


def _rebuilt(hint: Any, value: Any) -> Any:
    if get_origin(hint) is UnionType and isinstance(value, dict):
        hint = next(kind for kind in get_args(hint) if dataclasses.is_dataclass(kind))
    if hint is Options:
        return Options(**value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return from_dict(hint, value)
    if get_origin(hint) is tuple:
        return tuple(value)
    if get_origin(hint) is list:
        return [_rebuilt(get_args(hint)[0], member) for member in value]
    return value
