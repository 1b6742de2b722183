"""Which NVIDIA cards CUDA shows to this very process: asked of the driver itself, so the same for every framework.

Which logical processors a trial runs on: of N that were asked for, each a core of its own while there are any.

Two threads of one core share its units for computing: their numbers may be neighbours (0 and 1), or lie half the
machine apart (0 and 64). Linux alone; macOS knows no affinity.

On which terms a model really ran, and whether they are those that were asked for.

Prove where a model really ran: the weights, the optimizer's state, an output, and the backend's own view.

How recurrent layers are computed: by cuDNN, by other code of the backend, or by Keras' own loop over time.

Keras decides it by itself (``use_cudnn="auto"``), at each call, and says nothing. So its functions are watched while
the first step is traced or run. They are no public ones: where they are not found, nothing is said.

Do all backends compute the same? The losses of the first steps, with everything random switched off.
"""

import ctypes
import itertools
import math
import os
import sys
import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from kerasbench.backends import Backend
from kerasbench.protocol.columns import CPU, CUDA, Device, Options
from kerasbench.protocol.measurement import Parity, Proof, Resolved, Usage
from kerasbench.protocol.messages import Code, Failure
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.feed import Feed
from kerasbench.worker.inputs import leaves

LIBRARY = "libcuda.so.1"  # of the driver; a framework that uses CUDA has loaded it
UUID_BYTES = 16
SUCCESS = 0


class _Refused(Exception):
    """The driver does not tell."""


def shown_cards() -> list[str]:
    """Return the UUIDs in the order of CUDA's numbers, without the ``GPU-`` or ``MIG-`` that NVML puts before them.

    A slice of a card (MIG) has one of its own. Empty where the driver is not there, or does not tell.
    """
    try:
        driver = ctypes.CDLL(LIBRARY)
        _ask(driver.cuInit, 0)
        count = ctypes.c_int()
        _ask(driver.cuDeviceGetCount, ctypes.byref(count))
        found = [_uuid(driver, number) for number in range(count.value)]
    except (OSError, AttributeError, _Refused):  # AttributeError: the driver is older than the function
        return []
    return found if all(found) else []


def _uuid(driver: Any, number: int) -> str:
    """Return one card's; empty for nothing but zeros, which is no answer."""
    device, told = ctypes.c_int(), (ctypes.c_ubyte * UUID_BYTES)()
    _ask(driver.cuDeviceGet, ctypes.byref(device), number)
    _ask(driver.cuDeviceGetUuid_v2, ctypes.byref(told), device)  # the first version is blind to slices
    return str(uuid.UUID(bytes=bytes(told))) if any(told) else ""


def _ask(function: Any, *arguments: Any) -> None:
    if function(*arguments) != SUCCESS:
        raise _Refused


CPUS = Path("/sys/devices/system/cpu")


def limit_processors(count: int, root: Path = CPUS) -> None:
    """Keep this process on so many processors; where there is no affinity, on all."""
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, spread(allowed, {cpu: siblings(cpu, root) for cpu in allowed})[:count])


def processors_in_use() -> str:
    """Return the processors that this process may run on, as Linux writes lists; empty where there is no affinity."""
    return ranges(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ""


def spread(allowed: Collection[int], cores: Mapping[int, Collection[int]]) -> list[int]:
    """Return these processors in an order whose first N are on as many cores as N can be on.

    ``cores`` has for each processor all of its core's, itself included. The first of each core come first, by number,
    then the second of each.
    """
    place = {cpu: sum(other < cpu for other in cores[cpu] if other in allowed) for cpu in allowed}
    return sorted(allowed, key=lambda cpu: (place[cpu], cpu))


def siblings(cpu: int, root: Path = CPUS) -> set[int]:
    """Return a core's processors by the number of one; that one alone where the kernel does not tell."""
    try:
        return {cpu} | parse_list((root / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text("ascii"))
    except (OSError, ValueError):
        return {cpu}


def parse_list(text: str) -> set[int]:
    """Return the numbers of Linux's lists, ``0-3,8``; raise ValueError for anything else."""
    found: set[int] = set()
    for part in text.strip().split(","):
        low, dash, high = part.partition("-")
        found |= set(range(int(low), int(high if dash else low) + 1))
    return found


def ranges(cpus: Collection[int]) -> str:
    """Return numbers as Linux writes them, ``0-3,8``."""
    found: list[list[int]] = []
    for cpu in sorted(cpus):
        if found and cpu == found[-1][-1] + 1:
            found[-1].append(cpu)
        else:
            found.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)


LEAST_BUSY = 0.25  # of what was to be kept busy: a model on all processors leaves others half of them, or less
THREADS_TOLERANCE = 0.1  # of a processor: the clock's own thread and the parent's watcher


def resolved_terms(model: Any, backend: Backend, device: Device) -> Resolved:
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
        processors=processors_in_use(),
    )


def check_terms(asked: Options, got: Resolved, usage: Usage) -> None:
    """Raise TrialFailure (unsupported) where a trial ran on other terms than those that were asked for."""
    for option, wanted, found in differences(asked, got, usage):
        cause = f"asked for {option} {wanted}, but it ran with {found}"
        remedy = f"leave {option} out, or choose another value for this case"
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


def gather(backend: Backend, device: Device, model: Any, output: Any) -> Proof:
    """Ask every floating-point weight and optimizer variable, an output, and the backend where they live.

    Integer variables (step counters, seeds) are left out: TensorFlow keeps them in host memory by design.
    """
    return Proof(
        weights=_places(backend, model.variables),
        optimizer=_places(backend, getattr(getattr(model, "optimizer", None), "variables", [])),
        output=sorted({backend.placement(tensor) for _, tensor in leaves(output)}),
        runtime=backend.runtime_view(),
        cards=shown_cards() if device.platform == CUDA else [],
    )


def check_device(asked: Device, got: Proof) -> None:
    """Raise TrialFailure (wrong-device) unless everything lives on the one device that was asked for.

    Which of several NVIDIA cards that is, the parent knows: it compares the one that CUDA shows with the one that it
    asked for.
    """
    for what in ("weights", "optimizer", "output", "runtime"):
        strays = [place for place in getattr(got, what) if place.startswith(CPU) != (asked.platform == CPU)]
        if strays:
            raise _failure(f"asked for {asked.platform}:{asked.index}, but {what} lived on {', '.join(strays)}")
    if asked.platform != CPU and len(got.runtime) > 1:
        raise _failure(f"asked for {asked.platform}:{asked.index} alone, but the process sees {', '.join(got.runtime)}")
    if len(got.cards) > 1:
        raise _failure(f"asked for {asked.platform}:{asked.index} alone, but CUDA shows {', '.join(got.cards)}")


def _failure(cause: str) -> TrialFailure:
    remedy = f"--device {CPU} measures the CPU; no row is shown for a device that was not used"
    return TrialFailure(Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))


def _places(backend: Backend, variables: list[Any]) -> list[str]:
    floating = [variable for variable in variables if "float" in str(variable.dtype)]
    return sorted({backend.placement(variable.value) for variable in floating})


KINDS = ("lstm", "gru")
BY_CUDNN, BY_BACKEND, BY_KERAS = "cudnn", "backend", "keras"
Function = Callable[..., Any]


class RecurrentSpy:
    """Note how the recurrent layers of a model are computed in the step that is made while the spy is there."""

    def __init__(self, model: Any) -> None:
        bases = {base.__name__.lower() for layer in _layers(model) for base in type(layer).__mro__}
        self._kinds = [kind for kind in KINDS if kind in bases]
        self._ways: dict[str, str] = {}
        self._replaced: list[tuple[Any, str, Function]] = []

    @property
    def found(self) -> list[str]:
        """Return ``lstm: cudnn`` and the like, for each kind of layer that the model has."""
        return [f"{kind}: {way}" for kind, way in self._ways.items()]

    def __enter__(self) -> "RecurrentSpy":
        functions = sys.modules.get("keras.src.backend")
        for kind in self._kinds:
            whole: Function | None = getattr(functions, kind, None)
            if whole is not None:
                self._ways[kind] = BY_KERAS
                # JAX's function is cuDNN's alone, and refuses what cuDNN cannot do.
                self._watch(functions, kind, kind, BY_CUDNN if whole.__module__.endswith("jax.rnn") else BY_BACKEND)
                self._watch(sys.modules.get(whole.__module__), f"_cudnn_{kind}", kind, BY_CUDNN)
        return self

    def __exit__(self, *raised: object) -> None:
        for place, name, function in reversed(self._replaced):
            setattr(place, name, function)

    def _watch(self, place: Any, name: str, kind: str, way: str) -> None:
        function: Function | None = getattr(place, name, None)
        if function is None:
            return

        def watched(*args: Any, **named: Any) -> Any:
            computed = function(*args, **named)  # it raises NotImplementedError where it cannot
            if self._ways[kind] != BY_CUDNN:
                self._ways[kind] = way
            return computed

        self._replaced.append((place, name, function))
        setattr(place, name, watched)


def _layers(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False))


OUTPUT_NUMBERS = 64  # of each output: enough to see another computation, few enough to be kept

# What Keras' layers that draw random numbers call the amount: Dropout and its kin, GaussianNoise, LSTM and its cases.
AMOUNTS = ("rate", "stddev", "dropout", "recurrent_dropout")

# What Keras' layers are called by which backends differ more than others; analysis/parity.py says why, and how much.
SENSITIVE = ("BatchNormalization", "Embedding")


def sensitive(model: Any) -> list[str]:
    """Return which of these kinds a model has, layers derived from them included."""
    bases = {base.__name__ for layer in model._flatten_layers(include_self=False) for base in type(layer).__mro__}
    return [kind for kind in SENSITIVE if kind in bases]


def random_layers(model: Any) -> list[Any]:
    """Return the layers that draw random numbers in training, cases of recurrent layers included."""
    return [
        layer
        for layer in model._flatten_layers(include_self=False)
        if _has_generator(layer) and (_amounts(layer) or not _has_amount(layer))
    ]


def can_be_silenced(model: Any) -> bool:
    """Tell whether each of these layers has an amount that can be set to zero."""
    return all(_has_amount(layer) for layer in random_layers(model))


def check_silenced(model: Any, feed: Feed) -> Parity:
    """Train the first steps on a fresh model without its random numbers.

    Every backend draws its own: with dropout on, the very first losses differ.
    """
    from kerasbench.worker.train import PARITY_STEPS, single_steps

    silenced = random_layers(model)
    for layer in silenced:
        for amount in _amounts(layer):
            setattr(layer, amount, 0.0)
    losses = single_steps(model, feed, 1 + PARITY_STEPS).losses
    return Parity(losses, [layer.name for layer in silenced], sensitive=sensitive(model))


def parity_outputs(model: Any, feed: Feed) -> list[list[float]]:
    """Return some numbers of each output of the first batch, evenly spread, by a model that was not trained here.

    Raises:
        TrialFailure: one of them is not finite.
    """
    rows = feed.train[: feed.batch]
    found = model.predict(feed.inputs(rows), batch_size=feed.predict_batch, verbose=0)
    return [_some(name, array) for name, array in leaves(found, "output")]


def _some(name: str, array: Any) -> list[float]:
    flat = array.reshape(-1)
    # By a stride that has no factor in common with any dimension: it comes past every column.
    stride = next(one for one in itertools.count(len(flat) // OUTPUT_NUMBERS + 1) if math.gcd(one, len(flat)) == 1)
    numbers = [float(flat[index * stride % len(flat)]) for index in range(min(OUTPUT_NUMBERS, len(flat)))]
    if not all(map(math.isfinite, numbers)):
        cause = f"{name} has numbers that are not finite"
        raise TrialFailure(Failure(Code.NONFINITE, cause, "rows of your own, by kerasbench.run(model, data=...)"))
    return numbers


def _has_generator(layer: Any) -> bool:
    # Dropout and its kin call it seed_generator, the layers that distort pictures generator.
    return any(type(value).__name__ == "SeedGenerator" for value in vars(layer).values())


def _has_amount(layer: Any) -> bool:
    return any(isinstance(getattr(layer, amount, None), int | float) for amount in AMOUNTS)


def _amounts(layer: Any) -> list[str]:
    """Return the names of those amounts that are not zero."""
    found = {amount: getattr(layer, amount, None) for amount in AMOUNTS}
    return [amount for amount, value in found.items() if isinstance(value, int | float) and value > 0]
