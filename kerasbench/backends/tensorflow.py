"""TensorFlow: CPU, CUDA, and the Apple GPU by tensorflow-metal."""

import sys
from contextlib import suppress
from importlib import metadata
from typing import Any

from kerasbench.devices import CPU, GPU, Device, cuda_visibility, processors

PACKAGE = "tensorflow"
METAL_PLUGIN = "tensorflow-metal"


def environment(device: Device, caches: str) -> dict[str, str]:
    return cuda_visibility(device) | {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # the default takes the whole card from a display or a neighbour
        "CUDA_CACHE_PATH": caches,
    }


def hint(versions: dict[str, str]) -> str:
    if sys.platform == "darwin":
        return (
            "pip install 'kerasbench[tensorflow]' on Python 3.11 or 3.12 (tensorflow 2.18-2.19 with tensorflow-metal)"
        )
    return "on a machine with an NVIDIA GPU: pip install 'kerasbench[tensorflow-cuda]'"


def configure(device: Device) -> None:
    """Hide the Apple GPU where the CPU was asked for: no environment variable can."""
    import tensorflow as tf

    if device.platform == CPU:
        tf.config.set_visible_devices([], "GPU")


def devices() -> list[Device]:
    import tensorflow as tf

    platform = "metal" if sys.platform == "darwin" else ("rocm" if tf.test.is_built_with_rocm() else "cuda")
    found = [Device(CPU)]
    for index, gpu in enumerate(tf.config.list_physical_devices("GPU")):
        details = tf.config.experimental.get_device_details(gpu)
        found.append(Device(platform, index, details.get("device_name", "")))
    return found


def jit_default(device: Device) -> bool:
    """XLA with CUDA only: "auto" would decide by physical devices, also by hidden ones (keras trainer.py)."""
    return device.platform in ("cuda", "rocm")


def synchronize(model: Any) -> None:
    import tensorflow as tf

    tf.test.experimental.sync_devices()


def forward(model: Any, x: Any) -> Any:
    return model(x)


def placement(tensor: Any) -> str:
    import tensorflow as tf

    spec = tf.DeviceSpec.from_string(tensor.device)
    return f"{spec.device_type.lower()}:{spec.device_index}"


def runtime_view() -> list[str]:
    import tensorflow as tf

    gpus = [f"{GPU}:{index}" for index, _ in enumerate(tf.config.list_logical_devices("GPU"))]
    return gpus or ["cpu:0"]


def peak_device_bytes(device: Device) -> int | None:
    import tensorflow as tf

    if device.kind == CPU:
        return None
    try:
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
    except Exception:  # a pluggable device without counters: no reason to lose a trial that is over
        return None


def threads() -> int | None:
    import tensorflow as tf

    # 0 means that TensorFlow chooses, which is one for each processor.
    return tf.config.threading.get_intra_op_parallelism_threads() or processors()


def versions() -> dict[str, str]:
    import tensorflow as tf

    found = {"tensorflow": tf.__version__}
    with suppress(metadata.PackageNotFoundError):
        found[METAL_PLUGIN] = metadata.version(METAL_PLUGIN)
    return found
