"""What an environment is made for: a system, a Python, and the CUDA that the driver speaks.

Imported by the worker: standard library only.
"""

import re
from dataclasses import dataclass

KERAS = ("keras>=3.12,<3.17", "numpy>=1.26")
NEWEST_PYTHON = (3, 13)  # TensorFlow 2.21 ends there
Version = tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """``gpu`` is False where an environment for the CPU alone was asked for.

    ``system`` is ``sys.platform``'s word. ``cuda`` is the newest major version that the NVIDIA driver speaks, None
    where there is none; ``macos`` is macOS' version, empty elsewhere.
    """

    system: str
    architecture: str
    python: Version
    gpu: bool = True
    cuda: int | None = None
    macos: Version = ()

    @property
    def apple_silicon(self) -> bool:
        return self.system == "darwin" and self.architecture == "arm64"


def release(version: str) -> Version:
    """Return the numbers that a version begins with: (2, 13, 0) of ``2.13.0+cpu``, none of what is no version."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()
