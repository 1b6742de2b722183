"""What a column is: a device as kerasbench names it, and options; and how CUDA devices are hidden or shown."""

import dataclasses
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

CPU = "cpu"
GPU = "gpu"
CUDA = "cuda"
CUDA_FAMILY = (CUDA, "rocm")
APPLE = ("mps", "metal", "METAL", "mtl")  # torch and jax-mps, tensorflow-metal and metaljax, and others of JAX
# HIP, which ROCm builds use, has a variable of its own and heeds CUDA's too; ROCR's is of the layer below both.
VISIBILITY = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
BELOW = "ROCR_VISIBLE_DEVICES"
# Without it CUDA counts "fastest first", and gpu:1 is another card than nvidia-smi's.
ORDER, BY_BUS = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
LABEL = re.compile(r"(?P<kind>cpu(?=$|:0$)|gpu)(:(?P<index>[0-9]{1,3}))?")


@dataclass(frozen=True)
class Device:
    platform: str  # what the backend calls it: cpu, cuda, rocm, mps, metal
    index: int = 0  # counts within the platform
    name: str = ""  # the chip, such as NVIDIA H200

    @property
    def kind(self) -> str:
        return CPU if self.platform == CPU else GPU

    @property
    def title(self) -> str:
        """The chip, with the platform where the chip's name does not tell it: ``NVIDIA H200``, ``Apple M1 (mps)``."""
        if self.platform in (CPU, "cuda") or not self.name:
            return self.name
        return f"{self.name} ({self.platform})"

    @property
    def label(self) -> str:
        return self.kind if self.index == 0 else f"{self.kind}:{self.index}"

    @property
    def described(self) -> str:
        return f"{self.label} ({self.title})" if self.title else self.label


def visible_cuda(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that show a process every CUDA or ROCm device that the user has left visible."""
    return {ORDER: BY_BUS} | {name: inherited[name] for name in (*VISIBILITY, BELOW) if name in inherited}


def cuda_visibility(device: Device, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Hide all from a device that is none. ``gpu:1`` is the second that the user has left visible."""
    if device.platform in CUDA_FAMILY:
        heeded = VISIBILITY[:1] if device.platform == "cuda" else VISIBILITY[::-1]  # HIP heeds both, its own first
        left = next((inherited[name] for name in heeded if name in inherited), None)
        chosen = str(device.index) if left is None else left.split(",")[device.index].strip()
        below = {BELOW: inherited[BELOW]} if BELOW in inherited else {}
        return {ORDER: BY_BUS} | dict.fromkeys(VISIBILITY, chosen) | below
    # "-1", not "": an empty value is easily lost in a shell and then shows everything.
    return dict.fromkeys(VISIBILITY, "-1")


def parse_label(text: str) -> tuple[str, int]:
    """Split ``cpu``, ``gpu`` or ``gpu:1`` into kind and index; raise ValueError for another text."""
    match = LABEL.fullmatch(text)
    if match is None:
        raise ValueError(f"no device label: {text!r}")
    return match["kind"], int(match["index"] or 0)


def processors() -> int:
    """Return how many logical processors this process may use; macOS knows no affinity and has them all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"


Axis = Literal["batch", "width"]
AXES: tuple[Axis, ...] = ("batch", "width")
Value = bool | int | float | str
LAST, FIRST = "channels_last", "channels_first"  # where images have their channels, in Keras' words
IEEE = "ieee"  # how float32 products are rounded where nothing else is chosen
AT = "@"  # stands before the label of an interpreter


@dataclass(frozen=True)
class Size:
    """What a sweep varies: the samples of a batch, and a factor on the hidden layers. None: as the workload has it."""

    batch: int | None = None
    width: float | None = None

    @property
    def label(self) -> str:
        return _label({"batch": self.batch, "width": None if self.width is None else f"{self.width:g}"})

    @property
    def order(self) -> tuple[float, float]:
        return (self.batch or 0, self.width or 0.0)

    def along(self, axis: Axis) -> float | None:
        return self.batch if axis == "batch" else self.width

    def exceeds(self, other: "Size") -> bool:
        """Tell whether nothing of it is smaller than the other's, and something larger."""
        return self != other and all(a >= b for a, b in zip(self.order, other.order, strict=True))


class Options(Mapping[str, Value]):
    """What a case has that its backend has not by default, by name; what is None is not there.

    Choices, in a sweep its size, ``environment``, the label of its interpreter, and ``control``: the same once more.
    """

    def __init__(self, **chosen: Value | None) -> None:
        self._chosen = {name: value for name in sorted(chosen) if (value := chosen[name]) is not None}
        self._hash = hash(tuple(self._chosen.items()))

    def __getitem__(self, name: str) -> Value:
        return self._chosen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self._chosen == other._chosen if isinstance(other, Options) else super().__eq__(other)

    def __repr__(self) -> str:
        return f"Options({', '.join(f'{name}={value!r}' for name, value in self._chosen.items())})"

    def but(self, **changes: Value | None) -> "Options":
        return Options(**{**self._chosen, **changes})

    @property
    def environment(self) -> str:
        return str(self.get("environment", ""))

    @property
    def control(self) -> bool:
        return "control" in self

    @property
    def choices(self) -> dict[str, Value]:
        """What was chosen of variants."""
        return {name: value for name, value in self._chosen.items() if name not in APART}

    @property
    def label(self) -> str:
        """What differs from the default, ``@keras-3.14 jit=off batch=64``; empty where nothing does."""
        environment = f"{AT}{self.environment}" if self.environment else ""
        control = "control=on" if self.control else ""
        parts = (environment, _label(self.choices), control, self.size.label if self.size else "")
        return " ".join(filter(None, parts))

    @property
    def unsized(self) -> "Options":
        """What the cases of a series have in common."""
        return self.but(batch=None, width=None) if self.size else self  # nearly always itself

    @property
    def size(self) -> Size | None:
        batch, width = self.get("batch"), self.get("width")
        if batch is None and width is None:
            return None
        return Size(None if batch is None else int(batch), None if width is None else float(width))

    def at(self, size: Size) -> "Options":
        return self.but(batch=size.batch, width=size.width)


WITHOUT = "without_"  # begins the name of what is tried without a cause
APART = ("batch", "control", "environment", "width")  # what is no variant


def _label(parts: Mapping[str, Value | None]) -> str:
    words = {True: "on", False: "off"}
    return " ".join(
        # ``without-pooling-copy=on`` would say twice that something is not there.
        name.replace("_", "-")
        + ("" if name.startswith(WITHOUT) else f"={words[value] if isinstance(value, bool) else value}")
        for name, value in parts.items()
        if value is not None
    )


DEFAULT = Options()


@dataclass(frozen=True)
class Environment:
    """What an interpreter is for: a backend, with a label where that has several. Written ``torch@keras-3.14``."""

    backend: str
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> "Environment":
        backend, _, label = text.partition(AT)
        return cls(backend, label)

    def __str__(self) -> str:
        return f"{self.backend}{AT}{self.label}" if self.label else self.backend


@dataclass(frozen=True)
class Column:
    backend: str
    device: str  # its label, such as gpu:1
    options: Options = DEFAULT  # without a size, which makes a row of its own

    @property
    def order(self) -> tuple[str, str, str]:
        return (self.backend, self.device, self.options.label)

    @property
    def label(self) -> str:
        return " ".join(part for part in self.order if part)

    @property
    def environment(self) -> Environment:
        return Environment(self.backend, self.options.environment)

    @cached_property
    def paired(self) -> "Column":
        """What it has in common with the version that it is compared with."""
        return self.with_options(environment=None, control=None)

    def with_options(self, **changes: Value | None) -> "Column":
        return dataclasses.replace(self, options=self.options.but(**changes))


@dataclass(frozen=True)
class CaseKey:
    """What tells a case from all others of a run. ``size`` is None outside of a sweep."""

    scenario: str
    workload: str
    column: Column
    size: Size | None = None

    @property
    def options(self) -> Options:
        return self.column.options.at(self.size) if self.size else self.column.options
