"""The environment that a child starts in: what the backend and the device need, and nothing that leaks in."""

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kerasbench import backends
from kerasbench.errors import UsageError

# Each of these, and of the backends' own VARIABLES, can change what is measured, or where, without a word: devices,
# threads, precision, compilation, kernels, allocators, caches, caps on epochs. A child gets only those that its
# backend's environment() sets.
SCRUBBED = (
    "CUDA_CACHE_",
    "CUDA_DEVICE_",
    "CUDA_LAUNCH_",
    "CUDA_VISIBLE_",
    "HIP_LAUNCH_",
    "HIP_VISIBLE_",
    "KERAS_",
    "KMP_",
    "MKL_",
    "NCCL_",
    "NUMEXPR_",
    "NVIDIA_TF32",
    "OMP_",
    "OPENBLAS_",
    "ROCR_",
    "VECLIB_",
    "XLA_",
)
# Where CUDA and ROCm keep what they have compiled for this very card, and MIOpen which of its kernels it has found to
# be the quickest: a first step is to find them empty. Metal's cache has no such variable.
CACHES = ("CUDA_CACHE_PATH", "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "AMD_COMGR_CACHE_DIR")
# These lead one interpreter to its packages, and another one astray.
OF_THIS_INTERPRETER = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__")


def clean(python: str = sys.executable, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the inherited variables without those that would change a measurement, for a child of an interpreter."""
    scrubbed = _scrubbed() if python == sys.executable else _scrubbed() + OF_THIS_INTERPRETER
    return {name: value for name, value in inherited.items() if not name.startswith(scrubbed)}


@cache
def _scrubbed() -> tuple[str, ...]:
    return (*SCRUBBED, *(variable for name in backends.names() for variable in backends.get(name).VARIABLES))


def share_datasets(folder: str, inherited: Mapping[str, str] = os.environ) -> None:
    """Put the user's own folder of downloaded data sets into a private KERAS_HOME, so that each is downloaded once.

    Raises:
        UsageError: there is no such folder and it cannot be made.
    """
    home = inherited.get("KERAS_HOME") or "~/.keras"
    shared = Path(home).expanduser() / "datasets"
    try:
        shared.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{shared}: no place for data sets: {error.strerror}; set KERAS_HOME to another folder"
        ) from None
    Path(folder, "datasets").symlink_to(shared.resolve())


def for_scratch(folder: str) -> dict[str, str]:
    """Return the variables that make a child keep its files and caches in one folder and show where a crash happened.

    A private KERAS_HOME, because an existing keras.json overrides floatx and the image data format even where
    KERAS_BACKEND is set.
    """
    kept = dict.fromkeys(("KERAS_HOME", "TMPDIR", *CACHES), folder)
    return kept | {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
