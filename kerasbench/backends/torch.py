"""PyTorch: CPU, CUDA or ROCm, and the Apple GPU by MPS."""

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from kerasbench import private
from kerasbench.backends import BUILT_IN, Operation, Target, Version
from kerasbench.protocol.columns import CPU, CUDA_FAMILY, IEEE, Device, cuda_visibility

if TYPE_CHECKING:
    from kerasbench.protocol.measurement import Compiler

PACKAGE = MODULE = "torch"
SPELLED, KERAS, OUTSIDE = "PyTorch", BUILT_IN, False
NEWEST_PYTHON: Version = ()
ALWAYS = {"KERAS_BACKEND": "torch"}
VARIABLES = ("PYTORCH_*", "TORCH*")
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
HEEDED = (FALLBACK,)
COMPILER = "torch.compile"
OTHER_JIT = None  # compiling takes 20 s a trial on two cores and a C++ compiler; --jit on has it where it is wanted
COMPILES_AGAIN = True  # the first step has no gradients yet that Keras would set to zero
SEVERAL_STEPS = False  # Keras 3.15 refuses more than one, and 3.16 has a loop in Python
UNROLLS = False
LOSS_BY_LOGITS = False
COPIES_IMAGES = True  # mended after Keras 3.15.1
RETURNS_MEMORY = True
ITERATOR = "get_torch_dataloader"
CACHED = ("aotautograd/*/*", "fxgraph/*/*/*")
UNCACHED = ("torch compiles nothing without --jit on, so it leaves no cache", "--jit on --warm-cache")
KEEPING: dict[str, str] = {}  # its compiler always keeps what it has compiled
NO_JIT: dict[str, tuple[str, str]] = {}
WIDE: dict[str, str] = {}
THREADS, set_threads = "OMP_NUM_THREADS", None
ON_CPU = "export KERAS_TORCH_DEVICE=cpu"
MIXED = "mixed"  # by operation: torch multiplies in full by default, and convolves in TF32
REASONS = 3  # of graph breaks: the most frequent ones
# What torch counts where it compiles a function no further, and runs it eagerly from then on (torch 2.13, 2.6).
OVER_LIMIT = re.compile(r"recompile limit exceeded|(recompile|cache_size)_limit reached")
AT_LIMIT, NO_GRAPH = "it has hit its limit of recompilations", "none of it could be compiled"
FELL_BACK = re.compile(r"operator '([^']+)' is not currently supported on the MPS backend and will fall back")


def environment(device: Device, caches: str) -> dict[str, str]:
    keras_name = "cuda" if device.platform == "rocm" else device.platform  # ROCm builds of torch call themselves cuda
    variables = cuda_visibility(device) | {
        "KERAS_TORCH_DEVICE": keras_name,
        "TORCHINDUCTOR_CACHE_DIR": caches,
        "TRITON_CACHE_DIR": caches,
        "PYTORCH_KERNEL_CACHE_PATH": caches,  # of kernels that torch itself compiles, with CUDA and ROCm
    }
    if device.platform == "mps" and FALLBACK in os.environ:
        variables[FALLBACK] = os.environ[FALLBACK]  # torch's own switch, set on purpose
    return variables


def requirements(target: Target) -> list[str]:
    """Since 2.11, torch's Linux wheels are built for CUDA 13."""
    return ["torch>=2.6,<2.11" if target.gpu and target.cuda == 12 else "torch>=2.6"]


def configure(device: Device) -> None:
    if device.platform != CPU:
        round_products(IEEE)


def round_products(mode: str) -> None:
    """Set both; those of torch's own default differ. See https://docs.pytorch.org/docs/stable/notes/cuda.html."""
    import torch

    products, convolutions = {"framework-default": (False, True)}.get(mode, (mode == "tf32",) * 2)
    torch.backends.cuda.matmul.allow_tf32 = products
    torch.backends.cudnn.allow_tf32 = convolutions


def flush_subnormals() -> None:
    import torch

    torch.set_flush_denormal(True)  # of this thread, and of those that it starts


def devices() -> list[Device]:
    import torch

    platform = "rocm" if torch.version.hip else "cuda"
    cards = range(torch.cuda.device_count())
    gpus = [Device(platform, index, torch.cuda.get_device_name(index)) for index in cards]
    if torch.backends.mps.is_available():
        gpus.append(Device("mps", 0, "Apple GPU"))
    return [Device(CPU), *gpus]


def jit_default(device: Device) -> bool:
    """Eager: what Keras' "auto" means on torch."""
    return False


def synchronize(model: Any) -> None:
    import torch

    if _default_device() == "mps":
        # Wait for an operation behind all others: beside Keras' pool thread, which copies logs to the host,
        # ``torch.mps.synchronize()`` may have Metal abort the process (pytorch issue 197805, pull request 197836).
        torch.zeros((), device="mps").cpu()
    elif _default_device() != CPU and torch.accelerator.is_available():
        torch.accelerator.synchronize()


def forward(model: Any, x: Any) -> Any:
    return model(x)


def caller(model: Any, compiled: bool) -> Callable[[Any], Any] | None:
    import torch

    if compiled and not model.jit_compile:
        return None
    module, on_cpu = torch.compile(model) if compiled else model, _default_device() == CPU

    def call(x: Any) -> Any:
        with torch.inference_mode():
            outputs = module(x, training=False)
        if not on_cpu:
            synchronize(model)
        return outputs

    return call


def compiler(model: Any) -> "Compiler | None":
    from kerasbench.protocol.measurement import Compiler  # late: the parent lists backends without it

    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None or not dynamo.counters["frames"]["total"]:
        return None
    counters = dynamo.counters
    graphs, breaks, frames = counters["stats"]["unique_graphs"], Counter(counters["graph_break"]), counters["frames"]
    eager = "" if graphs else NO_GRAPH
    if any(map(OVER_LIMIT.search, counters["unimplemented"])):
        eager = AT_LIMIT
    return Compiler(
        programs=graphs,
        seconds=dynamo.calculate_time_spent().get("total_wall_time"),
        breaks={reason.splitlines()[0]: times for reason, times in breaks.most_common(REASONS)},
        given_up=frames["total"] - frames["ok"],
        eager=eager,
    )


def placement(tensor: Any) -> str:
    place = str(tensor.device)
    return place if ":" in place else f"{place}:0"


def runtime_view() -> list[str]:
    import torch

    place = _default_device()
    if place == CPU and torch.cuda.is_initialized():
        return ["cuda:0"]  # something in this process woke the GPU up although the CPU was asked for
    return [place if ":" in place else f"{place}:0"]


def device_bytes(device: Device, peak: bool) -> int | None:
    import torch

    if device.platform in CUDA_FAMILY:
        return int(torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated())
    if device.platform == "mps":
        # No peak counter: the driver's pool grows to the peak, and nothing here gives any of it back.
        return int(torch.mps.driver_allocated_memory() if peak else torch.mps.current_allocated_memory())
    return None


def reset_peak(device: Device) -> bool:
    import torch

    if device.platform not in CUDA_FAMILY:
        return False
    torch.cuda.reset_peak_memory_stats()
    return True


def on_device(arrays: Any) -> Any:
    import keras
    import torch

    return keras.tree.map_structure(lambda array: torch.as_tensor(array).to(_default_device()), arrays)


def ready(batch: Any, steps: int) -> dict[str, Any]:
    import torch

    return {"x": torch.utils.data.DataLoader([batch] * steps, batch_size=None)}


def bare_steps(model: Any, batch: Any) -> Callable[[], AbstractContextManager[Callable[[int], None]]]:
    model.make_train_function()

    def run(steps: int) -> None:
        for _ in range(steps):
            model.train_function([batch])
        synchronize(model)

    return lambda: nullcontext(run)  # variables are trained where they lie


def fallbacks(step: Callable[[], object]) -> dict[str, int]:
    """Count torch's warnings of MPS, which it gives once in a process unless it is told to warn each time."""
    import torch

    if _default_device() != "mps" or os.environ.get(FALLBACK, "0") == "0":
        return {}
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            step()
    finally:
        torch.set_warn_always(False)
    return dict(Counter(match[1] for warning in given if (match := FELL_BACK.search(str(warning.message)))))


def count_operations(step: Callable[[], object]) -> float:
    """Count products, convolutions and attention, in a loop as often as it runs; what is elementwise is left out."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # The flash kernel of the CPU is not counted; the plain one does the same products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        step()
    return float(counter.get_total_flops())


def operations(step: Callable[[], object]) -> list[Operation]:
    from torch.autograd import profiler

    with profiler.profile(record_shapes=True) as profile:  # of the CPU alone, which chooses kernels on every device
        step()
    found, events = [], list(profile.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        events += event.children
        tensor = next(iter(getattr(event.extra_fields, "inputs", None) or [None]))
        found.append(Operation(event.name, tuple(getattr(tensor, "sizes", ())), tuple(getattr(tensor, "strides", ()))))
    return found


def fp32() -> str:
    import torch

    if not _default_device().startswith("cuda"):
        return "ieee"
    try:
        products, convolutions = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    except RuntimeError:  # a scenario has set fp32_precision, torch's other way to say this
        return MIXED
    if products != convolutions:
        return MIXED
    return "tf32" if products else "ieee"


def threads() -> int | None:
    import torch

    return int(torch.get_num_threads())


def versions() -> dict[str, str]:
    import torch

    built = {"CUDA": torch.version.cuda, "ROCm": torch.version.hip}
    wheel = next((f"{name} {version}" for name, version in built.items() if version), "CPU")
    return {"torch": torch.__version__, "torch-wheel": wheel}


def _default_device() -> str:
    try:
        return str(private.TORCH_DEVICE.find()())
    except private.LostNameError:
        import keras

        return str(keras.ops.zeros(()).device)
