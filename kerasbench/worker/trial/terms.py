"""On which terms a model really ran, and whether they are those that were asked for."""

import sys
from typing import Any

from kerasbench.backends import Backend
from kerasbench.exchange.devices import Device
from kerasbench.exchange.measurement import Resolved, Usage
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.options import Options
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.trial import processors

LEAST_BUSY = 0.25  # of what was to be kept busy: a model on all processors leaves others half of them, or less
THREADS_TOLERANCE = 0.1  # of a processor: the clock's own thread and the parent's watcher


def resolve(model: Any, backend: Backend, device: Device) -> Resolved:
    """Read back what was in force while the model was trained."""
    import keras
    import numpy as np

    own = {"python": sys.version.split()[0], "keras": keras.__version__, "numpy": np.__version__}
    with_weights = [layer for layer in model._flatten_layers(include_self=False) if layer.weights]
    return Resolved(
        jit=bool(model.jit_compile),
        dtype_policy=keras.config.dtype_policy().name,
        compute_dtypes=sorted({layer.compute_dtype for layer in with_weights}),
        weight_dtypes=sorted({_dtype(variable.value) for variable in model.weights if "float" in variable.dtype}),
        fp32=backend.fp32(),
        image_data_format=keras.config.image_data_format(),
        threads=backend.threads(),
        versions=own | backend.versions(),
        memory_grows=backend.memory_grows(device),
        processors=processors.in_use(),
    )


def check(asked: Options, got: Resolved, usage: Usage) -> None:
    """Raise TrialFailure (unsupported) where a trial ran on other terms than those that were asked for."""
    for option, wanted, found in differences(asked, got, usage):
        cause = f"asked for {option} {wanted}, but it ran with {found}"
        remedy = f"leave {option} out, or choose another value for this cell"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy, "finish"))


def differences(asked: Options, got: Resolved, usage: Usage) -> list[tuple[str, str, str]]:
    """Return each option that came out otherwise: its name, what was wanted, what was found."""
    found: list[tuple[str, str, str]] = []
    if asked.jit is not None and asked.jit != got.jit:
        found.append(("--jit", _on(asked.jit), _on(got.jit)))
    if asked.dtype is not None and not _computes_in(asked.dtype, got):
        layers, weights = " and ".join(got.compute_dtypes), " and ".join(got.weight_dtypes)
        found.append(("--dtype", asked.dtype, f"{got.dtype_policy}, layers in {layers}, weights in {weights}"))
    if (asked.fp32 == "tf32" and got.fp32 != "tf32") or (asked.fp32 == "ieee" and got.fp32 != "ieee"):
        found.append(("--fp32", asked.fp32, got.fp32))
    if asked.threads is not None and got.threads is not None and got.threads != asked.threads:
        found.append(("--threads", str(asked.threads), f"{got.threads} threads"))
    elif asked.threads is not None and usage.processors > asked.threads + THREADS_TOLERANCE:
        found.append(("--threads", str(asked.threads), f"{usage.processors:.1f} processors busy"))
    if asked.busy_cores and (got.busy_cores or 0) < LEAST_BUSY * asked.busy_cores:
        found.append(("--busy-cores", str(asked.busy_cores), f"{got.busy_cores or 0:.1f} kept busy"))
    return found


def _dtype(tensor: Any) -> str:
    return str(getattr(tensor.dtype, "name", tensor.dtype)).removeprefix("torch.")


def _computes_in(dtype: str, got: Resolved) -> bool:
    """Tell whether layers have the policy, and real weights its dtype: JAX makes float32 of float64 with a warning."""
    computed = dtype.removeprefix("mixed_")
    stored = "float32" if dtype != computed else dtype
    return dtype == got.dtype_policy and computed in got.compute_dtypes and stored in got.weight_dtypes


def _on(jit: bool) -> str:
    return "on" if jit else "off"
