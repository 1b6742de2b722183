"""Devices as kerasbench names them, and how CUDA devices are hidden or shown.

Imported by the worker: standard library only.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

CPU = "cpu"
GPU = "gpu"
CUDA = "cuda"
CUDA_FAMILY = (CUDA, "rocm")
APPLE = ("mps", "metal", "METAL", "mtl")  # torch and jax-mps, tensorflow-metal and metaljax, and others of JAX
# HIP, which ROCm builds use, has a variable of its own and heeds CUDA's too; ROCR's is of the layer below both.
VISIBILITY = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
BELOW = "ROCR_VISIBLE_DEVICES"
LABEL = re.compile(r"(?P<kind>cpu(?=$|:0$)|gpu)(:(?P<index>[0-9]{1,3}))?")


@dataclass(frozen=True)
class Device:
    """One device of one backend.

    ``platform`` is what the backend calls it (``cpu``, ``cuda``, ``rocm``, ``mps``, ``metal``),
    ``index`` counts within the platform, ``name`` is the chip (``NVIDIA H200``) where it is known.
    """

    platform: str
    index: int = 0
    name: str = ""

    @property
    def kind(self) -> str:
        """``cpu`` or ``gpu``: what a user asks for."""
        return CPU if self.platform == CPU else GPU

    @property
    def title(self) -> str:
        """The chip, with the platform where the chip's name does not tell it: ``NVIDIA H200``, ``Apple M1 (mps)``."""
        if self.platform in (CPU, "cuda") or not self.name:
            return self.name
        return f"{self.name} ({self.platform})"

    @property
    def label(self) -> str:
        """``cpu``, ``gpu`` or, from the second one on, ``gpu:1``."""
        return self.kind if self.index == 0 else f"{self.kind}:{self.index}"

    @property
    def described(self) -> str:
        """The label with the chip where it is known: ``gpu (NVIDIA H200)``."""
        return f"{self.label} ({self.title})" if self.title else self.label


def visible_cuda(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that show a process every CUDA or ROCm device that the user has left visible."""
    # Without PCI order, CUDA numbers "fastest first" and gpu:1 is another card than nvidia-smi's.
    shown = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return shown | {name: inherited[name] for name in (*VISIBILITY, BELOW) if name in inherited}


def cuda_visibility(device: Device, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that show one CUDA or ROCm device to a process, or none of them for any other device.

    ``gpu:1`` is the second of those that the user has left visible: the others may be somebody else's.
    """
    if device.platform in CUDA_FAMILY:
        heeded = VISIBILITY[:1] if device.platform == "cuda" else VISIBILITY[::-1]  # HIP heeds both, its own first
        left = next((inherited[name] for name in heeded if name in inherited), None)
        chosen = str(device.index) if left is None else left.split(",")[device.index].strip()
        below = {BELOW: inherited[BELOW]} if BELOW in inherited else {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | dict.fromkeys(VISIBILITY, chosen) | below
    # "-1", not "": an empty value is easily lost in a shell and then shows everything.
    return dict.fromkeys(VISIBILITY, "-1")


def parse_label(text: str) -> tuple[str, int]:
    """Split ``cpu``, ``gpu`` or ``gpu:1`` into kind and index.

    Raises:
        ValueError: the text is none of these.
    """
    found = LABEL.fullmatch(text)
    if found is None:
        raise ValueError(f"no device label: {text!r}")
    return found["kind"], int(found["index"] or 0)


def processors() -> int:
    """Return how many logical processors this process may use; macOS knows no affinity and has them all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
