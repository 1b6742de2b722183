"""Devices as kerasbench names them, and how CUDA devices are hidden or shown.

Imported by the worker: standard library only.
"""

import re
from dataclasses import dataclass

CPU = "cpu"
GPU = "gpu"
CUDA_FAMILY = ("cuda", "rocm")
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
    def label(self) -> str:
        """``cpu``, ``gpu`` or, from the second one on, ``gpu:1``."""
        return self.kind if self.index == 0 else f"{self.kind}:{self.index}"


def cuda_visibility(device: Device) -> dict[str, str]:
    """Return the variables that show one CUDA device to a process, or none of them for any other device."""
    if device.platform in CUDA_FAMILY:
        # Without PCI order, CUDA numbers "fastest first" and gpu:1 is another card than nvidia-smi's.
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(device.index)}
    # "-1", not "": an empty value is easily lost in a shell and then shows everything.
    return {"CUDA_VISIBLE_DEVICES": "-1"}


def parse_label(text: str) -> tuple[str, int]:
    """Split ``cpu``, ``gpu`` or ``gpu:1`` into kind and index.

    Raises:
        ValueError: the text is none of these.
    """
    found = LABEL.fullmatch(text)
    if found is None:
        raise ValueError(f"no device label: {text!r}")
    return found["kind"], int(found["index"] or 0)
