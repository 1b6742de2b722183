"""What a cell's number depends on beside its scenario, backend and device: compilation, precision, threads, size.

Imported by the worker: standard library only.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Fp32 = Literal["ieee", "tf32", "framework-default"]
Axis = Literal["batch", "width"]
AXES: tuple[Axis, ...] = ("batch", "width")
IEEE = "ieee"
MIXED = "mixed"  # a backend's operations differ: torch's default multiplies in full and convolves in TF32
CONTROL = "control=on"  # the last of a label's terms
AT = "@"  # stands before the label of an interpreter
DTYPES = ("float32", "float16", "bfloat16", "float64", "mixed_float16", "mixed_bfloat16")


@dataclass(frozen=True)
class Size:
    """What a sweep varies: the samples of a batch, and a factor on the hidden layers. None: as the regime has it."""

    batch: int | None = None
    width: float | None = None

    @property
    def label(self) -> str:
        """``batch=64 width=2``."""
        return _label({"batch": self.batch, "width": None if self.width is None else f"{self.width:g}"})

    @property
    def order(self) -> tuple[float, float]:
        """What sizes are sorted by."""
        return (self.batch or 0, self.width or 0.0)

    def along(self, axis: Axis) -> float | None:
        """Return the batch, or the width."""
        return self.batch if axis == "batch" else self.width

    def exceeds(self, other: "Size") -> bool:
        """Tell whether nothing of it is smaller than the other's, and something larger."""
        return self != other and all(a >= b for a, b in zip(self.order, other.order, strict=True))


@dataclass(frozen=True)
class Options:
    """What is asked of a cell.

    ``jit``: compile the training step or not; None is the backend's normal default on the device. ``dtype``: the
    Keras dtype policy; None is Keras' default, float32, or what the scenario sets. ``fp32``: whether a GPU may round
    the factors of float32 products to TF32's ten bits. ``threads``: how many processors the child may use; None is all.
    ``batch`` and ``width`` are the size at which a sweep measures the cell. ``native``: the scenario's twin in the
    backend's own framework, without Keras. ``control``: the same cell a second time, which should measure the same.
    ``busy_cores``: how many processors kerasbench itself keeps busy in the cell's turns.
    ``environment``: the label of the interpreter that runs it; empty where that has none.
    """

    jit: bool | None = None
    dtype: str | None = None
    fp32: Fp32 = "ieee"
    threads: int | None = None
    batch: int | None = None
    width: float | None = None
    native: bool = False
    control: bool = False
    environment: str = ""
    busy_cores: int = 0

    @property
    def label(self) -> str:
        """What differs from the default, ``@keras-3.14 jit=off batch=64``; empty where nothing does."""
        return " ".join(part for part in (self.terms, self.size.label if self.size else "") if part)

    @property
    def terms(self) -> str:
        """The label without the size: what the cells of a series have in common."""
        differing = _label(
            {
                "jit": None if self.jit is None else ("on" if self.jit else "off"),
                "dtype": self.dtype,
                "fp32": None if self.fp32 == "ieee" else self.fp32,
                "threads": self.threads,
                "native": "on" if self.native else None,
                "busy-cores": self.busy_cores or None,
                "control": "on" if self.control else None,
            }
        )
        return " ".join(part for part in (f"{AT}{self.environment}" if self.environment else "", differing) if part)

    @property
    def size(self) -> Size | None:
        """The size in a sweep, None outside of one."""
        return None if self.batch is None and self.width is None else Size(self.batch, self.width)

    def at(self, size: Size) -> "Options":
        """Return the same terms at that size."""
        return dataclasses.replace(self, batch=size.batch, width=size.width)


def _label(parts: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in parts.items() if value is not None)


DEFAULT = Options()


def is_native(label: str) -> bool:
    """Tell whether a label of options is that of a native twin."""
    return "native=on" in label.split()


def is_beside_busy_cores(label: str) -> bool:
    """Tell whether a label of options is that of a column beside which kerasbench keeps processors busy."""
    return "busy-cores=" in label


def competes(label: str) -> bool:
    """Tell whether a column of these options is asked who is fastest: no twin, no control, nothing that was slowed."""
    return not (is_native(label) or is_control(label) or is_beside_busy_cores(label))


def is_control(label: str) -> bool:
    """Tell whether a label of options is that of a column that was measured a second time."""
    return CONTROL in label.split()


def environment_of(label: str) -> str:
    """Return the label of the interpreter in a label of options, empty where it has none."""
    return next((word.removeprefix(AT) for word in label.split() if word.startswith(AT)), "")


def without_environment(label: str) -> str:
    """Return a label of options but for that of the interpreter."""
    return " ".join(word for word in label.split() if not word.startswith(AT))


def subject(backend: str, environment: str) -> str:
    """Return whom an interpreter is for: ``torch``, or ``torch@keras-3.14`` where it has a label."""
    return f"{backend}{AT}{environment}" if environment else backend


def parted(subject: str) -> tuple[str, str]:
    """Return the backend and the label of an interpreter, which is empty where it has none."""
    backend, _, label = subject.partition(AT)
    return backend, label
