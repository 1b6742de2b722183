"""The environment that a child starts in: what the backend and the device need, and nothing that leaks in."""

import os
from collections.abc import Mapping
from pathlib import Path

# Each of these changes what is measured, or where, without a word (docs/method.md has the list with reasons).
SCRUBBED = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "KERAS_BACKEND",
    "KERAS_HOME",
    "KERAS_MAX_EPOCHS",
    "KERAS_MAX_STEPS_PER_EPOCH",
    "KERAS_NNX_ENABLED",
    "KERAS_TORCH_DEVICE",
    "KERAS_USE_BACKEND_AGNOSTIC_OPS",
    "MKL_NUM_THREADS",
    "NPROC",
    "NUMEXPR_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PJRT_NPROC",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "PYTORCH_MPS_FAST_MATH",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "PYTORCH_MPS_PREFER_METAL",
    "TF_NUM_INTEROP_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_XLA_FLAGS",
    "VECLIB_MAXIMUM_THREADS",
    "XLA_FLAGS",
)


def clean(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the inherited variables without those that would change a measurement."""
    return {name: value for name, value in inherited.items() if name not in SCRUBBED}


def share_datasets(folder: str, inherited: Mapping[str, str] = os.environ) -> None:
    """Put the user's own folder of downloaded data sets into a private KERAS_HOME, so that each is downloaded once."""
    home = inherited.get("KERAS_HOME") or "~/.keras"
    shared = Path(home).expanduser() / "datasets"
    shared.mkdir(parents=True, exist_ok=True)
    Path(folder, "datasets").symlink_to(shared.resolve())


def for_scratch(folder: str) -> dict[str, str]:
    """Return the variables that make a child keep its files in one folder and show where a crash happened.

    A private KERAS_HOME, because an existing keras.json overrides floatx and the image data format even where
    KERAS_BACKEND is set.
    """
    return {"KERAS_HOME": folder, "TMPDIR": folder, "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
