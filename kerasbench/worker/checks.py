"""Proof that a trial ran as requested: on the device, with the options, and computing what other backends compute.

- Cards and processors: which of them the process can see and may use.
- Configuration: what was in force, against the options.
- Placement: where weights, optimizer state and outputs live.
- Recurrent layers: which code computed them.
- Parity: the losses of the first steps with everything random switched off.
"""

import ctypes
import itertools
import math
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from kerasbench import variants
from kerasbench.backends import Backend
from kerasbench.protocol.columns import CPU, CUDA, Device, Options, has_glibc
from kerasbench.protocol.measurement import Proof, Resolved, Usage
from kerasbench.protocol.messages import Code, Failure
from kerasbench.text import format_ranges
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.feed import Feed
from kerasbench.worker.inputs import dtype_name, leaves

CUDA_LIBRARY = "libcuda.so.1"  # of the driver; a framework that uses CUDA has loaded it

SUBNORMAL = 1e-39  # a number of float32 that is too small for its usual form: processors need many times as long
MOMENTUM, VELOCITY = "_momentum", "_velocity"  # how Keras calls first and second moments
VANISHING = 1e-20  # of a first moment: no gradient has reached it for some 400 steps

MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")

RECURRENT_KINDS = ("lstm", "gru")
BY_CUDNN, BY_BACKEND, BY_KERAS = "cudnn", "backend", "keras"

# How far an output may lie from that of another way to predict, as a share of the largest: what compiles otherwise sums
# in another order, and rounds otherwise.
CALLED_FULL, CALLED_ROUNDED, TINY = 1e-3, 1e-1, 1e-6
REPEATED = 1e-5  # by one program on one CPU, which differs by less from one run to the next
OUTPUT_NUMBERS = 64  # of each output: enough to see another computation, few enough to be kept
# Attributes of Keras' random layers that say how much: Dropout and its kin, GaussianNoise, LSTM and its cells.
RANDOM_AMOUNTS = ("rate", "stddev", "dropout", "recurrent_dropout")
# Layers by which backends differ more than by others; analysis/cases.py says why, and how much.
SENSITIVE_LAYERS = ("BatchNormalization", "Embedding")

Function = Callable[..., Any]


class _Mallinfo(ctypes.Structure):  # malloc.h
    _fields_ = tuple((name, ctypes.c_int) for name in MALLINFO)


def visible_cards() -> list[str]:
    """Return the UUIDs of the NVIDIA cards that CUDA shows to this process, in the order of its numbers.

    The driver itself is asked, so the answer is the same for every framework. A part of a card (MIG) has a UUID of its
    own. The prefixes of NVML (``GPU-``, ``MIG-``) are left out. Empty without a driver, or if it does not answer.
    """
    try:
        driver = ctypes.CDLL(CUDA_LIBRARY)
        _call(driver.cuInit, 0)
        count = ctypes.c_int()
        _call(driver.cuDeviceGetCount, ctypes.byref(count))
        cards = []
        for number in range(count.value):
            device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
            _call(driver.cuDeviceGet, ctypes.byref(device), number)
            _call(driver.cuDeviceGetUuid_v2, ctypes.byref(raw), device)  # the first version knows no parts of cards
            if not any(raw):  # nothing but zeros is no answer
                return []
            cards.append(str(uuid.UUID(bytes=bytes(raw))))
    except (OSError, AttributeError):  # AttributeError: the driver is older than the function
        return []
    return cards


def _call(function: Any, *arguments: Any) -> None:
    if function(*arguments) != 0:
        raise OSError("the driver returned an error")


def configuration_in_force(model: Any, backend: Backend) -> Resolved:
    import keras

    arrays = [variable.value for variable in model.weights if "float" in variable.dtype]
    return Resolved(
        jit=bool(model.jit_compile),
        dtype_policy=keras.config.dtype_policy().name,
        compute_dtypes=sorted({layer.compute_dtype for layer in _layers(model) if layer.weights}),
        weight_dtypes=sorted({dtype_name(array) for array in arrays}),
        fp32=backend.fp32(),
        image_data_format=keras.config.image_data_format(),
        threads=backend.threads(),
        versions={"python": sys.version.split()[0], "keras": keras.__version__, "numpy": np.__version__}
        | backend.versions(),
        steps_per_execution=model.steps_per_execution,
        processors=format_ranges(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "",
        subnormals=_subnormals(),
        malloc=_malloc(),
    )


def _malloc() -> Literal["keep"] | None:
    """Return ``keep`` if glibc has mapped nothing by itself, as it does with what is large."""
    if not has_glibc():
        return None
    ask = ctypes.CDLL(None).mallinfo
    ask.restype = _Mallinfo
    return None if ask().hblks else "keep"


def _subnormals() -> Literal["flushed", "kept"]:
    """Tell what becomes of a subnormal number that the backend halves."""
    import keras

    half = keras.ops.convert_to_tensor(np.full(8, SUBNORMAL, "float32")) * 0.5
    return "kept" if np.any(keras.ops.convert_to_numpy(half)) else "flushed"


def vanishing(optimizer: Any) -> float | None:
    """Return the share of an optimizer's first moments that have met no gradient for some hundred steps.

    A weight of a unit that no longer reacts has the gradient zero. Its first moment becomes a tenth smaller with each
    step: below 1e-20 after about 400 steps and, where such numbers are kept, subnormal for good after about 800.
    None: it has no such moments in float32, or is no optimizer of Keras.
    """
    import keras

    variables = getattr(optimizer, "variables", [])
    of_path = {getattr(moment, "path", ""): moment for moment in variables if getattr(moment, "dtype", "") == "float32"}
    gone = total = 0
    for path in [path for path in of_path if path.endswith(MOMENTUM)]:
        first = np.abs(keras.ops.convert_to_numpy(of_path[path]))
        second = of_path.get(path.removesuffix(MOMENTUM) + VELOCITY)  # shrinks by a thousandth; it tells what has lived
        lived = first if second is None else keras.ops.convert_to_numpy(second)
        gone += int(np.count_nonzero((first < VANISHING) & (lived != 0)))
        total += first.size
    return gone / total if total else None


def check_options(options: Options, actual: Resolved, usage: Usage) -> None:
    """Raise TrialFailure (unsupported) for a choice that came out otherwise."""
    for variant, value in variants.chosen(options):
        if used := variant.ran_as(value, actual, usage):
            cause = f"asked for --{variant.flag} {variant.word(value)}, but it ran with {used}"
            remedy = f"leave --{variant.flag} out, or choose another value for this case"
            raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy))


def gather_proof(backend: Backend, device: Device, model: Any, output: Any) -> Proof:
    """Leave integer variables out (step counters, seeds): TensorFlow keeps them in host memory by design."""

    def places(variables: list[Any]) -> list[str]:
        floating = [variable for variable in variables if "float" in str(variable.dtype)]
        return sorted({backend.placement(variable.value) for variable in floating})

    return Proof(
        weights=places(model.variables),
        optimizer=places(getattr(getattr(model, "optimizer", None), "variables", [])),
        output=sorted({backend.placement(tensor) for _, tensor in leaves(output)}),
        runtime=backend.runtime_view(),
        cards=visible_cards() if device.platform == CUDA else [],
    )


def check_device(device: Device, proof: Proof) -> None:
    """Raise TrialFailure (wrong-device). Which of several NVIDIA cards it was, only the parent can check."""
    wanted, cause = f"{device.platform}:{device.index}", ""
    for part in ("weights", "optimizer", "output", "runtime"):
        strays = [place for place in getattr(proof, part) if place.startswith(CPU) != (device.platform == CPU)]
        if strays:
            cause = f"asked for {wanted}, but found {part} on {', '.join(strays)}"
            break
    else:
        if device.platform != CPU and len(proof.runtime) > 1:
            cause = f"asked for {wanted} alone, but the process sees {', '.join(proof.runtime)}"
        elif len(proof.cards) > 1:
            cause = f"asked for {wanted} alone, but CUDA shows {', '.join(proof.cards)}"
    if cause:
        raise TrialFailure(Failure(Code.WRONG_DEVICE, cause, f"--device {CPU}, to measure the CPU"))


class RecurrentSpy:
    """Note how recurrent layers are computed in the step that runs while the spy is there.

    By cuDNN, by other code of the backend, or by Keras' own loop over time: Keras decides at each call
    (``use_cudnn="auto"``) and says nothing. So its functions are replaced by ones that take notes. They are not public:
    where they are not found, nothing is noted.
    """

    def __init__(self, model: Any) -> None:
        bases = {base.lower() for base in _class_names(model)}
        self._kinds = [kind for kind in RECURRENT_KINDS if kind in bases]
        self._computed_by: dict[str, str] = {}
        self._originals: list[tuple[Any, str, Function]] = []

    @property
    def notes(self) -> list[str]:
        return [f"{kind}: {code}" for kind, code in self._computed_by.items()]

    def __enter__(self) -> "RecurrentSpy":
        functions = sys.modules.get("keras.src.backend")
        for kind in self._kinds:
            whole: Function | None = getattr(functions, kind, None)
            if whole is not None:
                self._computed_by[kind] = BY_KERAS
                # JAX's function is cuDNN's alone, and refuses what cuDNN cannot do.
                self._replace(functions, kind, kind, BY_CUDNN if whole.__module__.endswith("jax.rnn") else BY_BACKEND)
                self._replace(sys.modules.get(whole.__module__), f"_cudnn_{kind}", kind, BY_CUDNN)
        return self

    def __exit__(self, *raised: object) -> None:
        for module, name, function in reversed(self._originals):
            setattr(module, name, function)

    def _replace(self, module: Any, name: str, kind: str, code: str) -> None:
        function: Function | None = getattr(module, name, None)
        if function is None:
            return

        def noting(*args: Any, **named: Any) -> Any:
            result = function(*args, **named)  # it raises NotImplementedError where it cannot
            if self._computed_by[kind] != BY_CUDNN:
                self._computed_by[kind] = code
            return result

        self._originals.append((module, name, function))
        setattr(module, name, noting)


def _layers(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False))


def _class_names(model: Any) -> set[str]:
    return {base.__name__ for layer in _layers(model) for base in type(layer).__mro__}


def sensitive_layers(model: Any) -> list[str]:
    """Return which kinds of SENSITIVE_LAYERS a model has, layers derived from them included."""
    names = _class_names(model)
    return [kind for kind in SENSITIVE_LAYERS if kind in names]


def random_layers(model: Any) -> list[Any]:
    """Return the layers that draw random numbers in training, cells of recurrent layers and the model included."""
    drawing = []
    for layer in model._flatten_layers():
        amounts = _amounts(layer).values()
        is_silent = bool(amounts) and not any(value > 0 for value in amounts)
        if getattr(layer, "_seed_generators", ()) and not is_silent:  # whatever they are called, also in a list
            drawing.append(layer)
    return drawing


def _amounts(layer: Any) -> dict[str, float]:
    """Return the layer's amounts of randomness that are numbers, by name; in a model such names may mean anything."""
    if hasattr(layer, "fit"):
        return {}
    amounts = {name: getattr(layer, name, None) for name in RANDOM_AMOUNTS}
    return {name: value for name, value in amounts.items() if isinstance(value, int | float)}


def can_be_silenced(model: Any) -> bool:
    return all(_amounts(layer) for layer in random_layers(model))


def silence(model: Any) -> list[str]:
    """Return the layers' names. Every backend draws its own numbers: with dropout, the first losses differ."""
    silenced = random_layers(model)
    for layer in silenced:
        for name, value in _amounts(layer).items():
            if value > 0:
                setattr(layer, name, 0.0)
    return [layer.name for layer in silenced]


def require_equal(way: str, outputs: Any, expected: Any, model: Any) -> None:
    """Raise TrialFailure (parity) where one way to predict gives something else than ``predict_on_batch``."""
    from keras import ops

    bound = rounding(model)
    for (name, array), (_, tensor) in zip(leaves(expected, "output"), leaves(outputs), strict=True):
        apart, largest = _apart(array, ops.convert_to_numpy(tensor))
        if not apart <= bound * largest:
            cause = f"{name} of {way} lies {apart:.2g} from that of predict_on_batch, with the same weights and samples"
            remedy = "look for a layer that computes something else when it is called"
            raise TrialFailure(Failure(Code.PARITY, cause, remedy))


def rounding(model: Any) -> float:
    """Return by what share of the largest two ways to compute the same may differ."""
    computed = {layer.compute_dtype for layer in _layers(model) if layer.weights}
    return CALLED_FULL if computed <= {"float32", "float64"} else CALLED_ROUNDED


def draws(outputs: Any, again: Any, bound: float) -> bool:
    """Tell whether two predictions of the same rows differ by more than that: the model draws random numbers."""
    pairs = zip(leaves(outputs), leaves(again), strict=True)
    distances = (_apart(output, repeated) for (_, output), (_, repeated) in pairs)
    return any(apart > bound * largest for apart, largest in distances)


def _apart(expected: Any, array: Any) -> tuple[float, float]:
    """Return by how much two arrays differ at most, and the largest number of the first."""
    numbers = np.asarray(expected, np.float64)
    apart = float(np.max(np.abs(np.asarray(array, np.float64) - numbers), initial=0.0))
    return apart, max(float(np.max(np.abs(numbers), initial=0.0)), TINY)


def sample_outputs(model: Any, feed: Feed, device: Device) -> list[list[float]]:
    """Return some numbers of each output of the first batch, evenly spread, by a model that was not trained here.

    None of a model that predicts at random, by a layer of its own or by dropout that is always on: backends draw
    different numbers.
    """
    bound = rounding(model)
    if device.kind == CPU and bound == CALLED_FULL:
        bound = REPEATED
    x = feed.inputs(feed.train[: feed.batch])
    outputs, again = (model.predict(x, batch_size=feed.predict_batch, verbose=0) for _ in range(2))
    if draws(outputs, again, bound) or not can_be_silenced(model):
        return []
    return [_sample(name, array.reshape(-1)) for name, array in leaves(outputs, "output")]


def _sample(name: str, flat: Any) -> list[float]:
    size = len(flat)
    # A stride that has no factor in common with any dimension comes past every column.
    stride = next(step for step in itertools.count(size // OUTPUT_NUMBERS + 1) if math.gcd(step, size) == 1)
    numbers = [float(flat[index * stride % size]) for index in range(min(OUTPUT_NUMBERS, size))]
    if not all(map(math.isfinite, numbers)):
        cause = f"{name} has numbers that are not finite"
        raise TrialFailure(Failure(Code.NONFINITE, cause, "samples of your own, by kerasbench.run(model, data=...)"))
    return numbers
