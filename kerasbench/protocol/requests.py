"""What a user says of a model that comes from a file or by its name: its open dimensions, its batch, its layers.

Imported by the worker: standard library only.

What the parent asks of a child: one JSON line on its standard input.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kerasbench.protocol.columns import DEFAULT as DEFAULT_OPTIONS
from kerasbench.protocol.columns import Device, Options

MAX_NAME = 64  # what a workload's name may have
STRUCTURE = "structure"  # the member of a file of rows that says how its arrays belong together
UNFIT = re.compile(r"[^\w.-]")  # letters and digits of all scripts are fit


@dataclass(frozen=True)
class Input:
    """The shape of one input, as ``--input tokens=128:int32`` has it: without the samples, or with 1 for them.

    ``name`` is empty for the only input, ``dtype`` where the model is to say it.
    """

    name: str
    shape: list[int]
    dtype: str = ""

    @property
    def label(self) -> str:
        """``tokens-128-int32``, fit to be part of a workload's name."""
        size = "x".join(map(str, self.shape))
        return UNFIT.sub("_", "-".join(part for part in (self.name, size, self.dtype) if part))


@dataclass(frozen=True)
class ModelConfig:
    """What is said of a model that is no scenario file. ``batch`` None: 32.

    ``custom`` is a Python file with its own layers, ``rows`` a file with its rows, of which there are ``samples``;
    empty where there is none. ``trust``: load what may run code of its own.
    """

    inputs: list[Input] = field(default_factory=list)
    batch: int | None = None
    custom: str = ""
    trust: bool = False
    rows: str = ""
    samples: int = 0

    @property
    def workload(self) -> str:
        """The name of the workload: what is measured differs by the sizes, so they are in it."""
        parts = [one.label for one in self.inputs] + ([f"batch-{self.batch}"] if self.batch else [])
        return "-".join(parts)[:MAX_NAME].strip("-_.") or "default"


NOTHING = ModelConfig()


def fitting(name: str, default: str = "model") -> str:
    """Return a model's name with what no scenario's has replaced: ``ep=05`` is ``ep_05``."""
    return UNFIT.sub("_", name)[:MAX_NAME].lstrip("-_.") or default


def decode_model_config(fields: Mapping[str, Any]) -> ModelConfig:
    """Rebuild it from the JSON of a request."""
    return ModelConfig(**{**fields, "inputs": [Input(**one) for one in fields["inputs"]]})


DataKind = Literal["synthetic", "real"]
ProtocolKind = Literal["steady", "published", "sweep"]
MIN_STEPS_FOR_SLICES = 8  # in shorter epochs the epochs themselves are counted


def counts_epochs(steps_per_epoch: int) -> bool:
    """Tell whether epochs are too short to hold slices of steps, so that a slice counts whole epochs."""
    return steps_per_epoch < MIN_STEPS_FOR_SLICES


@dataclass(frozen=True)
class Protocol:
    """How much to measure. None for a calibrated value means: calibrate, and report what was found.

    ``steady`` measures steps and what an epoch costs beyond them; ``published`` first runs all published epochs;
    ``sweep`` measures steps alone, at the size that the options name. ``parts``: measure what a step is made of too.
    ``slice_ns`` is how long a slice is to measure; ``slices_max_ns`` how long all slices of a column measure in one
    block, ``min_cycles`` how many of them each stage has at least.
    """

    kind: ProtocolKind = "steady"
    slice_ns: int = 100_000_000
    warmup_min_ns: int = 1_000_000_000
    warmup_max_ns: int = 20_000_000_000
    predict_warmup_ns: int = 200_000_000
    slices_max_ns: int = 15_000_000_000
    min_cycles: int = 6
    steps_per_slice: int | None = None
    warmup_slices: int | None = None
    parts: bool = False


@dataclass(frozen=True)
class TrialRequest:
    """One trial, as the parent asks for it. ``twin_hash`` is of the twin's file, where the twin is asked for.

    ``file`` is a scenario's, a saved model's, or a name such as ``keras.applications.ResNet50``; ``model_config`` is
    what was said of one that is no scenario file.
    """

    scenario: str
    file: str
    file_hash: str
    workload: str
    backend: str
    device: Device
    seed: int
    data: DataKind
    protocol: Protocol
    options: Options = DEFAULT_OPTIONS
    twin_hash: str = ""
    model_config: ModelConfig = NOTHING
    task: Literal["trial"] = "trial"


@dataclass(frozen=True)
class ProbeRequest:
    """Import a backend and say which devices it sees."""

    backend: str
    task: Literal["probe"] = "probe"


@dataclass(frozen=True)
class InventoryRequest:
    """Say what is installed, and import none of it."""

    backend: str
    task: Literal["inventory"] = "inventory"


@dataclass(frozen=True)
class DescribeRequest:
    """Load scenario files and say what is in each; ``model_config`` is said of those that are models."""

    files: list[str]
    model_config: ModelConfig = NOTHING
    task: Literal["describe"] = "describe"


@dataclass(frozen=True)
class FetchRequest:
    """Load a scenario's real rows, so that they are there, and right, before anything is measured."""

    file: str
    workload: str
    task: Literal["fetch"] = "fetch"


@dataclass(frozen=True)
class CountRequest:
    """Count the floating-point operations of a training step; only torch can."""

    file: str
    file_hash: str
    workload: str
    model_config: ModelConfig = NOTHING
    task: Literal["count"] = "count"


Request = CountRequest | TrialRequest | ProbeRequest | InventoryRequest | DescribeRequest | FetchRequest


def encode_request(request: Request) -> bytes:
    """Return the request as one JSON line, for the child's standard input."""
    return json.dumps(dataclasses.asdict(request)).encode() + b"\n"


def decode_request(line: bytes) -> Request:
    """Rebuild the request that the parent wrote."""
    fields: dict[str, Any] = json.loads(line)
    if "model_config" in fields:
        fields["model_config"] = decode_model_config(fields["model_config"])
    match fields["task"]:
        case "describe":
            return DescribeRequest(**fields)
        case "probe":
            return ProbeRequest(**fields)
        case "inventory":
            return InventoryRequest(**fields)
        case "count":
            return CountRequest(**fields)
        case "fetch":
            return FetchRequest(**fields)
        case _:
            nested = {
                "device": Device(**fields["device"]),
                "protocol": Protocol(**fields["protocol"]),
                "options": Options(**fields["options"]),
            }
            return TrialRequest(**(fields | nested))
