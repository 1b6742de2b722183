"""TensorFlow: CPU, CUDA, and the Apple GPU by tensorflow-metal."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from kerasbench import private
from kerasbench.backends import BUILT_IN, Target, Version
from kerasbench.protocol.columns import CPU, CUDA_FAMILY, GPU, IEEE, Device, cuda_visibility, processors

if TYPE_CHECKING:
    from kerasbench.protocol.measurement import Compiler

PACKAGE = MODULE = "tensorflow"
SPELLED, KERAS, OUTSIDE = "TensorFlow", BUILT_IN, False
NEWEST_PYTHON: Version = (3, 13)
ALWAYS = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}  # 2: errors alone
VARIABLES = ("TF_*", "TF2_*")
HEEDED = ()
COMPILER = "XLA"
OTHER_JIT = True
COMPILES_AGAIN = False
SEVERAL_STEPS = True
UNROLLS = True
LOSS_BY_LOGITS = True
COPIES_IMAGES = False
RETURNS_MEMORY = False
ITERATOR = "get_tf_dataset"
CACHED = ("*.pb",)
UNCACHED = ("TensorFlow keeps only what XLA has compiled, and XLA is off here", "--jit on --warm-cache")
KEEPING = {"TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory={caches}"}
METAL_PLUGIN = "tensorflow-metal"
NO_JIT = {
    "metal": ("XLA does not compile for Metal", f"to compile for the CPU, use an environment without {METAL_PLUGIN}")
}
WIDE: dict[str, str] = {}
THREADS = ""
ON_CPU = 'tf.config.set_visible_devices([], "GPU")'
flush_subnormals = None
fallbacks = None  # TensorFlow only logs where each operation goes; weights and outputs are proven
count_operations = None  # its profiler counts a loop's body once
operations = None  # it is slow, and TensorFlow has one kernel for each operation but for recurrent layers


def environment(device: Device, caches: str) -> dict[str, str]:
    # TensorFlow's default takes the whole card from a display or a neighbour.
    return cuda_visibility(device) | {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}


def requirements(target: Target) -> list[str]:
    """tensorflow-metal 1.2.0 needs symbols that TensorFlow 2.20 no longer exports, and has no wheel for Python 3.13."""
    if target.apple_silicon and target.python >= (3, 13):
        return ["tensorflow>=2.20"]  # the first with wheels for it
    if target.apple_silicon and target.gpu:
        return ["tensorflow>=2.18,<2.20", "tensorflow-metal==1.2.0"]
    return ["tensorflow[and-cuda]>=2.18" if target.gpu and target.cuda else "tensorflow>=2.18"]


def set_threads(number: int) -> None:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(number)
    tf.config.threading.set_inter_op_parallelism_threads(number)


def configure(device: Device) -> None:
    """Hide the Apple GPU where the CPU was asked for: no environment variable can. Set rounding on a GPU."""
    import tensorflow as tf

    if device.platform == CPU:
        tf.config.set_visible_devices([], "GPU")
    else:
        round_products(IEEE)


def round_products(mode: str) -> None:
    import tensorflow as tf

    tf.config.experimental.enable_tensor_float_32_execution(mode != IEEE)  # it is TensorFlow's own default


def devices() -> list[Device]:
    import tensorflow as tf

    platform = "metal" if sys.platform == "darwin" else ("rocm" if tf.test.is_built_with_rocm() else "cuda")
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    gpus = [Device(platform, index, gpu.get("device_name", "")) for index, gpu in enumerate(details)]
    return [Device(CPU), *gpus]


def jit_default(device: Device) -> bool:
    """XLA with CUDA only: "auto" would decide by physical devices, also by hidden ones (keras trainer.py)."""
    return device.platform in CUDA_FAMILY


def synchronize(model: Any) -> None:
    """Wait for CUDA's streams; on Metal, for which sync_devices has no kernel, for an operation behind all others."""
    import tensorflow as tf

    tf.test.experimental.sync_devices()
    for gpu in tf.config.list_logical_devices("GPU") if sys.platform == "darwin" else []:
        with tf.device(gpu.name):
            (tf.ones(()) + 1).numpy()


def forward(model: Any, x: Any) -> Any:
    return model(x)


def caller(model: Any, compiled: bool) -> Callable[[Any], Any] | None:
    """A compiled call is a graph, with XLA where ``model.jit_compile`` says so."""
    import tensorflow as tf

    def plain(x: Any) -> Any:
        return model(x, training=False)

    graph = tf.function(plain, jit_compile=bool(model.jit_compile) or None, reduce_retracing=True)
    run = graph if compiled else plain
    if not tf.config.list_logical_devices("GPU"):
        return run  # a CPU's calls return when they are done

    def call(x: Any) -> Any:
        outputs = run(x)
        synchronize(model)
        return outputs

    return call


def compiler(model: Any) -> "Compiler | None":
    """Only a function's traces are told, and only by Keras' own. One that Keras makes anew begins at none."""
    from kerasbench.protocol.measurement import Compiler  # late: the parent lists backends without it

    for name in ("train", "predict"):  # a validation is traced at the end of the first epoch, which may be in a stage
        if graphs := _graphs_of(getattr(model, f"{name}_function", None)):
            _graphs[id(graphs[0])] = graphs
    # Of those of one function the outermost that was called: what it calls is traced with it.
    counts = ([graph.experimental_get_tracing_count() for graph in graphs] for graphs in _graphs.values())
    return Compiler(traces=sum(next(filter(None, of_function), 0) for of_function in counts)) if _graphs else None


_graphs: dict[int, list[Any]] = {}  # every function of Keras' that was seen in this process, by its identity


def _graphs_of(function: Any) -> list[Any]:
    """Return what TensorFlow traces: the function itself, or what Keras' plain one calls (keras trainer.py)."""
    if function is None:
        return []
    counter = "experimental_get_tracing_count"
    return [function] if hasattr(function, counter) else private.TRACED.find(function, counter)


def placement(tensor: Any) -> str:
    import tensorflow as tf

    spec = tf.DeviceSpec.from_string(tensor.device)
    return f"{spec.device_type.lower()}:{spec.device_index}"


def runtime_view() -> list[str]:
    import tensorflow as tf

    gpus = [f"{GPU}:{index}" for index, _ in enumerate(tf.config.list_logical_devices("GPU"))]
    return gpus or ["cpu:0"]


def device_bytes(device: Device, peak: bool) -> int | None:
    import tensorflow as tf

    if device.kind == CPU:
        return None
    try:
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak" if peak else "current"])
    except Exception:  # a pluggable device without counters: no reason to lose a trial
        return None


def reset_peak(device: Device) -> bool:
    import tensorflow as tf

    if device.kind == CPU:
        return False
    try:
        tf.config.experimental.reset_memory_stats("GPU:0")
    except Exception:  # a pluggable device without counters
        return False
    return True


def on_device(arrays: Any) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(tf.identity, arrays)


def ready(batch: Any, steps: int) -> dict[str, Any]:
    import tensorflow as tf

    return {"x": tf.data.Dataset.from_tensors(batch).repeat(steps)}


def bare_steps(model: Any, batch: Any) -> Callable[[], AbstractContextManager[Callable[[int], None]]]:
    import tensorflow as tf

    at_once = model.steps_per_execution
    step = tf.function(model.train_step, jit_compile=model.jit_compile)

    def several(batch: Any) -> None:
        def body(done: Any) -> list[Any]:
            step(batch)
            return [done + 1]

        tf.while_loop(lambda done: done < at_once, body, [0])

    execution = step if at_once == 1 else tf.function(several, autograph=False)  # Keras loops over compiled steps, too

    def run(steps: int) -> None:
        for _ in range(max(1, steps // at_once)):
            execution(batch)
        synchronize(model)

    return lambda: nullcontext(run)  # variables are trained where they lie


def fp32() -> str:
    """Read the mode back; on CPUs and on Metal, which know no TF32, TensorFlow's flag means nothing."""
    import tensorflow as tf

    on_cuda = sys.platform != "darwin" and bool(tf.config.list_logical_devices("GPU"))
    return "tf32" if on_cuda and tf.config.experimental.tensor_float_32_execution_enabled() else "ieee"


def threads() -> int | None:
    import tensorflow as tf

    # 0 means that TensorFlow chooses, which is one for each CPU core.
    return tf.config.threading.get_intra_op_parallelism_threads() or processors()


def versions() -> dict[str, str]:
    from importlib import metadata

    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    wheel = f"CUDA {build.get('cuda_version')}" if build.get("is_cuda_build") else "CPU"
    versions = {"tensorflow": tf.__version__, "tensorflow-wheel": wheel}
    with suppress(metadata.PackageNotFoundError):
        versions[METAL_PLUGIN] = metadata.version(METAL_PLUGIN)
    return versions
