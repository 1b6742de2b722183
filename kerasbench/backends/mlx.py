"""MLX, by the package keras-mlx: the Apple GPU and the CPU. Keras has it from 3.16 on.

MLX computes when it is asked to (``mx.eval``), so what is to be inside of a time is evaluated in there.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kerasbench import private
from kerasbench.backends import Target, Version
from kerasbench.protocol.columns import CPU, IEEE, Device, cuda_visibility

if TYPE_CHECKING:
    from kerasbench.protocol.measurement import Compiler

PACKAGE, MODULE = "keras_mlx", "mlx.core"  # which imports Keras by itself: it comes behind it
SPELLED, OUTSIDE = "MLX", True
NEWEST_PYTHON: Version = (3, 14)
KERAS = "keras-nightly>=3.16.0.dev0"  # until 3.16 is out; then keras>=3.16
ALWAYS = {"KERAS_BACKEND": "mlx"}
VARIABLES = ("MLX_*", "VECLIB_*")
HEEDED = ()
COMPILER = "mx.compile"
OTHER_JIT = False
COMPILES_AGAIN = False
SEVERAL_STEPS = True  # in a loop in Python, evaluated once
UNROLLS = False
LOSS_BY_LOGITS = False
COPIES_IMAGES = False
RETURNS_MEMORY = True
ITERATOR = "get_numpy_iterator"
CACHED = ("mlx/*/cpu/*.so",)  # of the CPU; macOS keeps the Apple GPU's where nobody finds them
UNCACHED = ("MLX keeps nothing that is not compiled", "leave out --jit off")
KEEPING = {"TMPDIR": "{caches}"}
NO_JIT: dict[str, tuple[str, str]] = {}
WIDE: dict[str, str] = {}
THREADS, set_threads = "VECLIB_MAXIMUM_THREADS", None  # of Accelerate; what Linux wheels multiply by has one thread
ON_CPU = "mx.set_default_device(mx.cpu)"
flush_subnormals = None  # nothing makes it: its CPU computes with them
fallbacks = None  # nothing tells: keras-mlx itself has the CPU do what the GPU lacks, such as linear algebra
count_operations = operations = None  # it has no profiler but that of Xcode
TF32 = "MLX_ENABLE_TF32"  # read once, before the first product of a GPU; on, unless it is 0
DISTRIBUTIONS = ("keras-mlx", "mlx-metal", "mlx-cpu")  # beside mlx: the last two hold what it computes with


def environment(device: Device, caches: str) -> dict[str, str]:
    return cuda_visibility(device)


def requirements(target: Target) -> list[str]:
    """mlx-metal is for Apple GPUs and computes on the CPU, too; on Linux the CPU has an extra of its own."""
    mlx = "mlx>=0.31,<0.32" if target.system == "darwin" else "mlx[cpu]>=0.31,<0.32"
    return ["keras-mlx>=0.0.1", mlx]


def configure(device: Device) -> None:
    import mlx.core as mx

    mx.set_default_device(mx.cpu if device.platform == CPU else mx.Device(mx.gpu, device.index))
    if device.platform != CPU:
        round_products(IEEE)


def round_products(mode: str) -> None:
    os.environ[TF32] = "0" if mode == IEEE else "1"


def devices() -> list[Device]:
    import mlx.core as mx

    if not mx.metal.is_available():
        return [Device(CPU)]
    names = [mx.device_info(mx.Device(mx.gpu, index))["device_name"] for index in range(mx.device_count(mx.gpu))]
    return [Device(CPU), *(Device("metal", index, name) for index, name in enumerate(names))]


def jit_default(device: Device) -> bool:
    """Always: what Keras' "auto" means on MLX."""
    return True


def synchronize(model: Any) -> None:
    """Compute what is still pending, such as weights that were just set. In a ``fit`` they are in ``_mlx_state``."""
    import mlx.core as mx

    values = [variable._value for variable in model.variables]
    if state := getattr(model, "_mlx_state", None):
        values = [array for arrays in state.values() for array in arrays]
    elif values and all(value is None for value in values):  # a `fit` has taken them to where nobody looks
        raise private.missing("_mlx_state")
    mx.eval([value for value in values if value is not None])
    mx.synchronize()


def forward(model: Any, x: Any) -> Any:
    return _evaluated(model(x))


def caller(model: Any, compiled: bool) -> Callable[[Any], Any] | None:
    import mlx.core as mx

    if compiled and not model.jit_compile:
        return None
    if not compiled:
        return lambda x: _evaluated(model(x, training=False))
    # Weights are arguments: a compiled function keeps what it closes over as it was.
    groups = (model.trainable_variables, model.non_trainable_variables)
    state = [[variable.value for variable in group] for group in groups]
    arguments = {"training": False} if model._call_has_training_arg else {}
    call = mx.compile(lambda *arrays: model.stateless_call(*arrays, **arguments)[0])
    return lambda x: _evaluated(call(*state, x))


def compiler(model: Any) -> "Compiler | None":
    return None


def placement(tensor: Any) -> str:
    """Return where MLX computes: its arrays have no device, for all of Apple's devices share one memory."""
    import mlx.core as mx

    _, kind, index = re.findall(r"\w+", str(mx.default_device()))  # Device(gpu, 0)
    return f"{kind}:{index}"


def runtime_view() -> list[str]:
    return [placement(None)]


def device_bytes(device: Device, peak: bool) -> int | None:
    """MLX counts the arrays of the CPU, too; those of the other backends are in the memory of the process there."""
    import mlx.core as mx

    if device.platform == CPU:
        return None
    return int(mx.get_peak_memory() if peak else mx.get_active_memory())


def reset_peak(device: Device) -> bool:
    import mlx.core as mx

    if device.platform == CPU:
        return False
    mx.reset_peak_memory()
    return True


def on_device(arrays: Any) -> Any:
    import keras

    return _evaluated(keras.tree.map_structure(keras.ops.convert_to_tensor, arrays))


def ready(batch: Any, steps: int) -> dict[str, Any]:
    return {"x": (batch for _ in itertools.repeat(None)), "steps_per_epoch": steps}


def bare_steps(model: Any, batch: Any) -> Callable[[], AbstractContextManager[Callable[[int], None]]]:
    """Hand the step its state, and evaluate it after each, as ``fit`` does."""
    import mlx.core as mx

    groups = [model.trainable_variables, model.non_trainable_variables]
    groups += [model.optimizer.variables, model.metrics_variables]
    model.make_train_function()

    @contextmanager
    def running() -> Iterator[Callable[[int], None]]:
        state = tuple([variable.value for variable in group] for group in groups)

        def run(steps: int) -> None:
            nonlocal state
            for _ in range(max(1, steps // model.steps_per_execution)):
                logs, state = model.train_function(state, itertools.repeat(batch))
                mx.eval(logs, state)

        yield run
        for group, arrays in zip(groups, state, strict=True):
            for variable, array in zip(group, arrays, strict=True):
                variable.assign(array)

    return running


def fp32() -> str:
    """M1 to M4 have no other way than ieee."""
    return "ieee" if placement(None).startswith(CPU) or os.environ.get(TF32) == "0" else "tf32"


def threads() -> int | None:
    return None


def versions() -> dict[str, str]:
    from importlib import metadata

    import mlx.core as mx

    versions = {"mlx": mx.__version__}
    for package in DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions | {"mlx-wheel": "Metal" if mx.metal.is_available() else "CPU"}


def _evaluated(arrays: Any) -> Any:
    import mlx.core as mx

    mx.eval(arrays)
    return arrays
