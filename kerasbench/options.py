"""What a cell's number depends on beside its scenario, backend and device: compilation, precision, threads.

Imported by the worker: standard library only.
"""

from dataclasses import dataclass
from typing import Literal

Fp32 = Literal["ieee", "tf32", "framework-default"]
IEEE = "ieee"
MIXED = "mixed"  # a backend's operations differ: torch's default multiplies in full and convolves in TF32
DTYPES = ("float32", "float16", "bfloat16", "float64", "mixed_float16", "mixed_bfloat16")


@dataclass(frozen=True)
class Options:
    """What is asked of a cell.

    ``jit``: compile the training step or not; None is the backend's normal default on the device. ``dtype``: the
    Keras dtype policy; None is Keras' default, float32, or what the scenario sets. ``fp32``: whether a GPU may round
    the factors of float32 products to TF32's ten bits. ``threads``: how many processors the child may use; None is all.
    """

    jit: bool | None = None
    dtype: str | None = None
    fp32: Fp32 = "ieee"
    threads: int | None = None

    @property
    def label(self) -> str:
        """What differs from the default, ``jit=off dtype=mixed_bfloat16``; empty where nothing does."""
        parts = {
            "jit": None if self.jit is None else ("on" if self.jit else "off"),
            "dtype": self.dtype,
            "fp32": None if self.fp32 == "ieee" else self.fp32,
            "threads": self.threads,
        }
        return " ".join(f"{name}={value}" for name, value in parts.items() if value is not None)


DEFAULT = Options()
