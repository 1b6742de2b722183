"""JAX: CPU, CUDA or ROCm, and the Apple GPU by a plug-in (jax-mps)."""

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kerasbench import private
from kerasbench.backends import BUILT_IN, Target, Version
from kerasbench.protocol.columns import CPU, IEEE, Device, cuda_visibility, processors

if TYPE_CHECKING:
    from kerasbench.protocol.measurement import Compiler

PACKAGE = MODULE = "jax"
SPELLED, KERAS, OUTSIDE = "JAX", BUILT_IN, False
NEWEST_PYTHON: Version = ()
ALWAYS = {"KERAS_BACKEND": "jax"}
VARIABLES = ("JAX_*", "NPROC", "PJRT_*")
HEEDED = ()
COMPILER = "jit"
OTHER_JIT = False
COMPILES_AGAIN = False
SEVERAL_STEPS = True
UNROLLS = False
LOSS_BY_LOGITS = False
COPIES_IMAGES = False
RETURNS_MEMORY = True
ITERATOR = "get_jax_iterator"
CACHED = ("*-cache",)
ON_CPU = "export JAX_PLATFORMS=cpu"
flush_subnormals = None
fallbacks = None  # XLA compiles a step for one device, whole, or fails
count_operations = None  # XLA's own analysis counts a loop's body once
reset_peak = None
operations = None  # a compiled step shows none of its kernels, and compiling it again takes as long as the first
UNCACHED = None
KEEPING = {
    "JAX_ENABLE_COMPILATION_CACHE": "true",
    "JAX_COMPILATION_CACHE_DIR": "{caches}",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # JAX would keep what takes a second or more
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
NO_JIT: dict[str, tuple[str, str]] = {}
WIDE = {"JAX_ENABLE_X64": "true"}  # without it, JAX makes float32 of it
THREADS, set_threads = "NPROC", None
PRECISION = {"ieee": "float32", "tf32": "tensorfloat32"}
MPS_MACOS = (14,)
COMPILING = "/jax/core/compile/"  # how its events begin, but those of its cache, which say what that has saved
TRACED, COMPILED = f"{COMPILING}jaxpr_trace_duration", f"{COMPILING}backend_compile_duration"
_spent_s: dict[str, list[float]] = defaultdict(list)  # by what JAX calls the event
PLUGINS = ("jax-mps", "jax-metal", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm7-plugin")


def environment(device: Device, caches: str) -> dict[str, str]:
    # The first is the default. The CPU stands behind a GPU, as where JAX chooses: callbacks (jax/_src/callback.py),
    # keras.device("cpu") and Keras' sparse batches look for a CPU device, and fail where the list has none.
    platforms = CPU if device.platform == CPU else f"{device.platform},{CPU}"
    return cuda_visibility(device) | {
        "JAX_PLATFORMS": platforms,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # the default takes three quarters of the card at the first operation
        "JAX_ENABLE_COMPILATION_CACHE": "false",  # the first step means a cold compilation, each time
    }


def requirements(target: Target) -> list[str]:
    """jax-mps pairs with the JAX of its own minor version; from 0.11 on it wants Python 3.12, always macOS 14."""
    if target.apple_silicon and target.gpu and target.macos >= MPS_MACOS:
        return ["jax-mps>=0.11,<0.12" if target.python >= (3, 12) else "jax-mps>=0.10,<0.11"]
    cuda = {13: "jax[cuda13]>=0.7", 12: "jax[cuda12]>=0.5"}
    return [cuda.get(target.cuda or 0, "jax>=0.5") if target.gpu else "jax>=0.5"]


def configure(device: Device) -> None:
    """Initialise the platform, which raises where it is missing; JAX itself would pass over ``cuda`` without a word."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(_note)
    jax.devices()
    if device.platform != CPU and jax.default_backend() == CPU:
        raise RuntimeError(f"JAX finds no {device.platform} device here, and would use the CPU")
    if device.platform != CPU:
        round_products(IEEE)


def round_products(mode: str) -> None:
    import jax

    jax.config.update("jax_default_matmul_precision", PRECISION.get(mode))  # None: XLA chooses by the GPU


def _note(event: str, seconds: float, **_: object) -> None:
    if event.startswith(COMPILING):
        _spent_s[event].append(seconds)


def devices() -> list[Device]:
    import jax

    accelerators = [device for device in jax.devices() if device.platform != CPU]
    gpus = [Device(_selector(device), index, device.device_kind) for index, device in enumerate(accelerators)]
    return [Device(CPU), *gpus]


def jit_default(device: Device) -> bool:
    """Always: without jax.jit a small model's step takes 80 times as long."""
    return True


def synchronize(model: Any) -> None:
    """In a ``fit`` the state is in ``_jax_state``; on Keras' containers ``block_until_ready`` silently does nothing.

    Between calls of ``train_on_batch`` it is the last one's, of which another model with the same layers makes its own.
    """
    import jax

    arrays = [array for arrays in (getattr(model, "_jax_state", None) or {}).values() for array in arrays]
    if arrays and not any(array.is_deleted() for array in arrays):
        jax.block_until_ready(arrays)
        return
    values = [variable._value for variable in model.variables]
    if values and all(value is None for value in values):  # a `fit` has taken them to where nobody looks
        raise private.missing("_jax_state")
    jax.block_until_ready([value for value in values if value is not None])


def forward(model: Any, x: Any) -> Any:
    """Compile the pass as a whole: called eagerly, JAX compiles every operation of it by itself."""
    return _compiled(model)(x)


def caller(model: Any, compiled: bool) -> Callable[[Any], Any] | None:
    import jax

    if compiled and not model.jit_compile:
        return None
    call = _compiled(model) if compiled else lambda x: model(x, training=False)
    return lambda x: jax.block_until_ready(call(x))


def _compiled(model: Any) -> Callable[[Any], Any]:
    import jax

    # Weights are arguments: what is closed over becomes a constant. A stateless call hands on what it is given.
    groups = (model.trainable_variables, model.non_trainable_variables)
    state = [[variable.value for variable in group] for group in groups]
    arguments = {"training": False} if model._call_has_training_arg else {}
    call = jax.jit(lambda *arrays: model.stateless_call(*arrays, **arguments)[0])
    return lambda x: call(*state, x)


def compiler(model: Any) -> "Compiler | None":
    """Operations that are called one by one are programs, too."""
    from kerasbench.protocol.measurement import Compiler  # late: the parent lists backends without it

    seconds = sum(map(sum, _spent_s.values()))
    return Compiler(len(_spent_s[TRACED]), len(_spent_s[COMPILED]), seconds) if _spent_s[COMPILED] else None


def placement(tensor: Any) -> str:
    return ",".join(sorted(f"{device.platform}:{device.id}" for device in tensor.devices()))


def runtime_view() -> list[str]:
    """A scenario may have set another default. The CPU beside a GPU (``environment``) is not in it."""
    import jax

    return sorted(f"{place.platform}:{place.id}" for place in {*jax.devices(), *jax.numpy.zeros(()).devices()})


def device_bytes(device: Device, peak: bool) -> int | None:
    import jax

    what = "peak_bytes_in_use" if peak else "bytes_in_use"
    try:
        counters = jax.devices()[0].memory_stats() if device.platform != CPU else None
    except Exception:  # a plug-in without counters: no reason to lose a trial
        return None
    return int(counters[what]) if counters and what in counters else None


def on_device(arrays: Any) -> Any:
    import jax

    return jax.device_put(arrays)


def ready(batch: Any, steps: int) -> dict[str, Any]:
    return {"x": (batch for _ in itertools.repeat(None)), "steps_per_epoch": steps}


def bare_steps(model: Any, batch: Any) -> Callable[[], AbstractContextManager[Callable[[int], None]]] | None:
    """Hand the step its state as ``fit`` does: reading and assigning hundreds of variables takes milliseconds."""
    import jax

    groups = [model.trainable_variables, model.non_trainable_variables]
    groups += [model.optimizer.variables, model.metrics_variables]
    at_once = model.steps_per_execution
    if at_once > 1:
        try:
            batch = _fed(batch, at_once)
        except private.LostNameError:
            return None
    model.make_train_function()

    @contextmanager
    def running() -> Iterator[Callable[[int], None]]:
        state = tuple([variable.value for variable in group] for group in groups)

        def run(steps: int) -> None:
            nonlocal state
            for _ in range(max(1, steps // at_once)):
                _, state = model.train_function(state, itertools.repeat(batch))
            jax.block_until_ready(state)

        yield run
        for group, arrays in zip(groups, state, strict=True):
            for variable, array in zip(group, arrays, strict=True):
                variable.assign(array)

    return running


def _fed(batch: Any, at_once: int) -> Any:
    """Return what `fit` hands an execution of so many steps: a batch, or those of all steps in one."""
    batches = (batch for _ in range(at_once))
    epoch = private.JAX_EPOCH.find()(x=batches, steps_per_epoch=at_once, steps_per_execution=at_once)
    return on_device(next(next(iter(epoch.enumerate_epoch()))[-1]))


def fp32() -> str:
    """Read the mode back. Without one, XLA chooses by the GPU: TF32 where it has it."""
    import jax

    if jax.default_backend() == CPU:
        return "ieee"
    names = {precision: mode for mode, precision in PRECISION.items()}
    return names.get(str(jax.config.jax_default_matmul_precision), "framework-default")


def threads() -> int | None:
    """The CPU client's pool has one for each CPU core that may be used, unless NPROC is set."""
    return int(os.environ.get("NPROC", processors()))


def versions() -> dict[str, str]:
    from importlib import metadata

    import jax

    versions = {"jax": jax.__version__}
    for package in ("jaxlib", *PLUGINS):  # jaxlib holds the compiler, and may be older than jax
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions | {"jax-wheel": ", ".join(plugin for plugin in PLUGINS if plugin in versions) or "CPU"}


def _selector(device: Any) -> str:
    """Return the name that JAX_PLATFORMS takes: a CUDA device calls itself "gpu"."""
    if device.platform != "gpu":
        return str(device.platform)
    return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
