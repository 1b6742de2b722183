"""Errors that a user can fix, shown without a traceback, and the exit codes of the command line.

KerasbenchError
├── UsageError           a name or an option that means nothing
├── UnusableScenario     a scenario file that does not load
├── MissingBackend       no backend or no device that was asked for is there
├── EnvironmentFailed    a backend's environment that could not be made
├── MachineBusy          another run is measuring on this machine
├── UnsupportedSystem    kerasbench does not run on this system
├── ResultsError         a results file or folder that cannot be read or written
└── Undecided            a verdict was asked for, and everything is undecided
"""

import os
import sys
from collections.abc import Iterable

EXIT_OK = 0  # everything that was asked for was measured
EXIT_FAILED = 1  # a case failed, or a check found something
EXIT_USAGE = 2  # wrong usage, or something is amiss on this machine; click and most programs mean the same by it
EXIT_REGRESSION = 3  # where asked to fail on one
EXIT_INTERNAL = 70  # an unexpected error, a bug: EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count


# What people call backends and devices elsewhere, and what to type here.
HINTS = {
    "backend": {
        "tf": "TensorFlow is called tensorflow: --backend tensorflow",
        "pytorch": "PyTorch is called torch: --backend torch",
        "pt": "PyTorch is called torch: --backend torch",
        "numpy": "Keras trains nothing on it: leave it out",
        "openvino": "it measures exported models: --runtime openvino",
        "onnxruntime": "it measures exported models: --runtime onnxruntime",
        **dict.fromkeys(("cpu", "gpu"), "this is a device: say --device in place of --backend"),
        **dict.fromkeys(("cuda", "rocm", "mps", "metal"), "this is a GPU, and no backend: --device gpu"),
        "tpu": "kerasbench measures CPUs and GPUs, no TPUs",
    },
    "device": {
        "cuda": "an NVIDIA GPU is called gpu: --device gpu",
        "nvidia": "an NVIDIA GPU is called gpu: --device gpu",
        "rocm": "an AMD GPU is called gpu: --device gpu",
        "amd": "an AMD GPU is called gpu: --device gpu",
        "mps": "the GPU of a Mac is called gpu: --device gpu",
        "metal": "the GPU of a Mac is called gpu: --device gpu",
        "tpu": "kerasbench measures CPUs and GPUs, no TPUs",
        **dict.fromkeys(("tensorflow", "torch", "jax"), "this is a backend: say --backend in place of --device"),
    },
}


class KerasbenchError(Exception):
    """Base of all: says what, where and what to do."""

    exit_code = EXIT_USAGE


class UsageError(KerasbenchError): ...


class UnusableScenario(KerasbenchError): ...


class MissingBackend(KerasbenchError): ...


class EnvironmentFailed(KerasbenchError): ...


class MachineBusy(KerasbenchError): ...


class UnsupportedSystem(KerasbenchError): ...


class ResultsError(KerasbenchError): ...


class Undecided(KerasbenchError):
    exit_code = EXIT_FAILED


def uninstalled(package: str) -> str:
    return f"{sys.executable} has no package {package}: install kerasbench there, with pip install -e . in its folder"


def unknown(what: str, given: str, choices: Iterable[str]) -> UsageError:
    """Return the error for an unknown name, with the nearest known one."""
    import difflib

    names = list(choices)
    there = f"there are: {', '.join(names)}"
    if hint := HINTS.get(what, {}).get(given.lower().partition(":")[0]):
        return UsageError(f"unknown {what} {given!r}: {hint} ({there})")
    guess = "".join(f"; did you mean {name!r}?" for name in difflib.get_close_matches(given, names, n=1, cutoff=0.5))
    return UsageError(f"unknown {what} {given!r}{guess} ({there})")


def require_supported() -> None:
    """Raise UnsupportedSystem on Windows, and on a Linux without /proc: first, as other modules do not load there."""
    if sys.platform == "win32":
        raise UnsupportedSystem("Windows is not supported: run it on Linux or macOS, or in WSL on Windows")
    if sys.platform == "linux" and not os.path.exists("/proc/meminfo"):
        why = "kerasbench reads from it how much memory is free: mount it first"
        raise UnsupportedSystem(f"/proc is not mounted, and {why}")
