"""The environment that a child starts in: what programs need in order to run, and nothing that changes a figure."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType

from kerasbench import backends, sources, variants
from kerasbench.errors import UsageError
from kerasbench.processes.group import MARK
from kerasbench.processes.process import SAFE_PATH, Limits, Task
from kerasbench.protocol.columns import BELOW, CPU, VISIBILITY, Device
from kerasbench.protocol.requests import TrialRequest, encode_request

# What leads a child to its files, libraries, devices and the network, not what makes a library quicker or slower.
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "CONDA_PREFIX"),
    *("*_proxy", "*_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    # Where libraries lie; DYLD_INSERT_LIBRARIES and LD_PRELOAD would bring others along.
    *("LD_LIBRARY_PATH", "NIX_LD", "NIX_LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    *("DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH", "DEVELOPER_DIR", "SDKROOT"),
    *("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    *("ROCM_PATH", "ROCM_HOME", "HIP_PATH", "HIP_PLATFORM", "HIP_DEVICE_LIB_PATH", "GPU_DEVICE_ORDINAL"),
    "HSA_OVERRIDE_GFX_VERSION*",  # without it, ROCm does not run at all on the cards that need it
    *("PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONUTF8", "PYTHONIOENCODING"),
)
# Of CUDA, ROCm and MIOpen, which a first step is to find empty; Metal's cache has no such variable.
CACHES = ("CUDA_CACHE_PATH", "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "AMD_COMGR_CACHE_DIR")
# These lead one interpreter to its packages, and another one astray.
OF_THIS_INTERPRETER = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__")
# Known to do so, beside each backend's VARIABLES: none of it reaches a child, and the doctor names what is set.
CHANGE_FIGURES = (
    *("ATEN_*", "CC", "CXX", "CFLAGS", "CXXFLAGS", "CUBLAS*", "CUDNN_*", "DNNL_*", "DYLD_*", "GLIBC_TUNABLES"),
    *("CUDA_CACHE_*", "CUDA_DEVICE_*", "CUDA_DISABLE_*", "CUDA_FORCE_*", "CUDA_LAUNCH_*", "CUDA_MODULE_*"),
    *("CUDA_MPS_*", "CUDA_SCALE_*", "CUDA_VISIBLE_*", "GOMP_*", "HIP_*", "HIPBLASLT_*", "HSA_*", "INDUCTOR_*"),
    *("KERAS_*", "KMP_*", "LD_*", "MALLOC_*", "METAL_*", "MIMALLOC_*", "MIOPEN_*", "MKL_*", "MTL_*", "NCCL_*"),
    *("NUMEXPR_*", "NVIDIA_TF32*", "OMP_*", "ONEDNN_*", "OPENBLAS_*", "PYTHONDEVMODE", "PYTHONMALLOC*"),
    *("PYTHONOPTIMIZE", "PYTHONTRACEMALLOC", "PYTHON_GIL", "PYTHON_JIT", "ROCBLAS_*", "ROCR_*", "TCMALLOC_*"),
    *("TRITON_*", "VECLIB_*", "XLA_*"),
)
# They begin like these: Terraform's may hold secrets, images of containers say what is in them, KERAS_HOME is heeded.
HARMLESS = ("TF_CLI_*", "TF_TOKEN_*", "TF_VAR_*", "*_VERSION", "KERAS_HOME")
KEEP = "--keep-env"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOTHING: Mapping[str, str] = MappingProxyType({})


def clean(
    python: str = sys.executable, kept: Mapping[str, str] = NOTHING, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    passed_on = PASSED_ON + OF_THIS_INTERPRETER if python == sys.executable else PASSED_ON
    return {name: value for name, value in inherited.items() if _matches(name, passed_on)} | dict(kept)


def held_back(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    patterns = (*CHANGE_FIGURES, *(variable for name in backends.names() for variable in backends.get(name).VARIABLES))
    kept_out = sorted(inherited.keys() - clean(inherited=inherited).keys())
    return {name: inherited[name] for name in kept_out if _matches(name, patterns) and not _matches(name, HARMLESS)}


def kept(names: Sequence[str], inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a user passes through, with their values; raise UsageError for one that cannot be."""
    for name in names:
        if not NAME.fullmatch(name):
            raise UsageError(f"{KEEP} takes the names of variables, such as OMP_PROC_BIND, not {name!r}")
        if name in own_names():
            raise UsageError(f"{KEEP} {name}: kerasbench sets this variable itself, for each trial; leave it out")
        if name not in inherited:
            raise UsageError(f"{KEEP} {name}: this variable is not set here; export it, or leave it out")
        if not inherited[name].isprintable():
            raise UsageError(f"{KEEP} {name}: its value cannot be written down, for not all of it is text")
    return {name: inherited[name] for name in names}


def require_same(kept: Mapping[str, str], inherited: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError if a variable that an interrupted run passed through has another value now, or none."""
    for name, value in kept.items():
        if inherited.get(name) != value:
            here = f"is {inherited[name]!r} here" if name in inherited else "is not set here"
            raise UsageError(f"the interrupted run had {name}={value}, which {here}; set it so again to go on")


@cache
def own_names() -> frozenset[str]:
    """Return the variables that kerasbench sets for every trial, or heeds in a way of its own."""
    names = {MARK, SAFE_PATH, BELOW, *VISIBILITY, *for_scratch("")}
    for backend in map(backends.get, backends.names()):
        names |= backend.ALWAYS.keys()
        for device in (Device(CPU), Device("cuda")):
            names |= backend.environment(device, "").keys()
    return frozenset(names)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def share_datasets(folder: str) -> None:
    """Put the user's own folder of downloaded data sets into a private KERAS_HOME, so that each is downloaded once."""
    shared = Path(os.environ.get("KERAS_HOME") or "~/.keras").expanduser() / "datasets"
    try:
        shared.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"no place for data sets: {error.strerror}; set KERAS_HOME to another folder"
        raise UsageError(f"{shared}: {why}") from None
    Path(folder, "datasets").symlink_to(shared.resolve())


def for_scratch(folder: str, caches: str = "") -> dict[str, str]:
    """``caches``: another folder, for what CUDA and ROCm compile."""
    # KERAS_HOME, because a keras.json overrides floatx and the image data format even where KERAS_BACKEND is set.
    kept = dict.fromkeys(("KERAS_HOME", "TMPDIR"), folder) | dict.fromkeys(CACHES, caches or folder)
    return kept | {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}


def task_of(
    python: str, request: TrialRequest, limits: Limits, token: bytes, kept: Mapping[str, str], scratch: str
) -> Task:
    backend, caches = backends.get(request.backend), request.caches or scratch
    variables = clean(python, kept) | for_scratch(scratch, caches)
    variables |= backend.ALWAYS | backend.environment(request.device, caches)
    for variant, value in variants.chosen(request.options):
        variables |= variant.variables(value, backend, caches)
    if request.data == "real" or sources.of_config(request.model_config).runs:
        share_datasets(scratch)
    return Task(python, variables, token + b" " + encode_request(request), limits)
