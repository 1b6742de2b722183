"""The backends: one module each, which defines what ``Backend`` lists. A new backend is one more file in this folder.

The parent imports these modules too: the framework itself is imported only inside functions that a child calls.
"""

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from kerasbench.protocol.columns import Device

if TYPE_CHECKING:
    from kerasbench.protocol.measurement import Compiler

Version = tuple[int, ...]
BUILT_IN = "keras>=3.12"


@dataclass(frozen=True)
class Operation:
    """One of a step, as a framework's profiler calls it."""

    name: str
    sizes: tuple[int, ...] = ()  # of its first tensor, with the strides; empty where it has none
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    system: str  # as sys.platform has it
    architecture: str
    python: Version
    gpu: bool = True  # False: an environment for the CPU alone was asked for
    cuda: int | None = None  # the newest major version that the NVIDIA driver speaks; None: no driver
    macos: Version = ()  # empty on other systems

    @property
    def apple_silicon(self) -> bool:
        return self.system == "darwin" and self.architecture == "arm64"


class Backend(Protocol):
    PACKAGE: str  # the package whose presence means that the backend is installed
    MODULE: str  # the framework, which a child imports before Keras
    SPELLED: str  # what sentences call it
    KERAS: str  # the requirement of a Keras that has it
    NEWEST_PYTHON: Version  # for which there are wheels; empty: there are for each new one
    OUTSIDE: bool  # Keras has it by a package of others: it is meant where it is named or installed
    ALWAYS: dict[str, str]  # variables of each of its children: KERAS_BACKEND is Keras' name for it
    VARIABLES: tuple[str, ...]  # patterns of its own variables that change figures: the doctor names those that are set
    HEEDED: tuple[str, ...]  # those of them that environment() takes over from the shell: a user sets them on purpose
    COMPILER: str  # what compiles a step as a whole
    OTHER_JIT: bool | None  # what is tried besides the default; None: not worth the time
    COMPILES_AGAIN: bool  # whether the second step is compiled anew, where steps are compiled
    SEVERAL_STEPS: bool  # whether Keras can run several training steps in one execution
    UNROLLS: bool  # whether it can write them one after another, in place of a loop
    # Whether Keras computes a cross-entropy of probabilities from the logits behind them. Others clip probabilities.
    LOSS_BY_LOGITS: bool
    COPIES_IMAGES: bool  # whether Keras copies images with their channels last before it pools them
    RETURNS_MEMORY: bool  # whether its steps free memory by malloc, which may give it back to the system
    ITERATOR: str  # the method of Keras' adapters for arrays by which ``fit`` has its batches
    CACHED: tuple[str, ...]  # patterns of the files with compiled programs that it keeps in its folder of caches
    UNCACHED: tuple[str, str] | None  # why nothing is kept that is not compiled as a whole, and a remedy; None: it is
    # Variables by which a child keeps in a folder, {caches}, what it compiles, and finds what another has compiled.
    KEEPING: dict[str, str]
    NO_JIT: dict[str, tuple[str, str]]  # by platform, why nothing is compiled there as a whole, and a remedy
    WIDE: dict[str, str]  # variables without which float64 is not to be had
    THREADS: str  # the variable that says how many threads compute; empty: ``set_threads`` does
    set_threads: Callable[[int], None] | None  # in the child, before the first operation
    ON_CPU: str  # the line that keeps a script on the CPU beside an Apple GPU (docs/set-up-machines.md)
    # Makes a CPU take subnormal numbers for zero, before the first operation; None: it does so by itself, or never.
    flush_subnormals: Callable[[], None] | None
    # Takes a training step as a function and returns the operations that the device lacks and the CPU did instead, with
    # their numbers. The step is not run where nothing may fall back. None: nothing may, or nothing tells.
    fallbacks: Callable[[Callable[[], object]], dict[str, int]] | None
    # Takes the same and returns its floating-point operations; None: it cannot.
    count_operations: Callable[[Callable[[], object]], float] | None

    # Takes a step as a function and returns the operations that it ran, by the framework's own profiler. None: it has
    # none that is quick, or does not show which kernels ran.
    operations: Callable[[Callable[[], object]], list[Operation]] | None

    # The variables of a child: this device alone, its compilation caches in a folder, which is empty unless an earlier
    # process was to fill it. processes/variables.py moves the caches of what lies below all backends.
    def environment(self, device: Device, caches: str) -> dict[str, str]: ...
    # What pip installs, beside keras, so that this backend uses the target's devices.
    def requirements(self, target: Target) -> list[str]: ...
    # Does in the child, before the first operation, what the environment cannot.
    def configure(self, device: Device) -> None: ...
    # Says how a GPU rounds the factors of float32 products: ieee, tf32, or as the framework does by itself. By default
    # ``configure`` has said ieee.
    def round_products(self, mode: str) -> None: ...
    # Every device that this process sees, the CPU first.
    def devices(self) -> list[Device]: ...
    # What this backend normally does about compilation on that device.
    def jit_default(self, device: Device) -> bool: ...
    # Returns when all work that was asked of the device is done, in the middle of a ``fit`` too.
    def synchronize(self, model: Any) -> None: ...
    # The model's output for a batch as the backend's own tensor, where the device left it.
    def forward(self, model: Any, x: Any) -> Any: ...
    # A function that calls a Keras model on tensors, without gradients, and waits for the outputs. ``compiled``:
    # as a whole, by the backend's own compiler and by what ``model.jit_compile`` says; None: not then.
    def caller(self, model: Any, compiled: bool) -> Callable[[Any], Any] | None: ...
    # What its compiler has done in this process; None: nothing, as far as it tells.
    def compiler(self, model: Any) -> "Compiler | None": ...
    # Where a tensor lives, in the backend's words; on the CPU it begins with ``cpu``.
    def placement(self, tensor: Any) -> str: ...
    # The devices that this process's runtime would put a new tensor on.
    def runtime_view(self) -> list[str]: ...
    # The live bytes on the device, now or at their peak, by the backend's own counter; None if it has none. On MPS,
    # which counts no peak, it is what the driver holds at the end.
    def device_bytes(self, device: Device, peak: bool) -> int | None: ...

    # Begins that peak anew with what is live; False: it cannot there. None: this backend never can.
    reset_peak: Callable[[Device], bool] | None

    # NumPy arrays, in tuples and dictionaries however nested, as the backend's tensors, on the device.
    def on_device(self, arrays: Any) -> Any: ...
    # What ``fit`` takes to make so many steps an epoch on one batch that lies ready on the device.
    def ready(self, batch: Any, steps: int) -> dict[str, Any]: ...
    # A context whose function makes so many training steps on that batch without ``fit``, and waits. The step is Keras'
    # own, compiled as ``fit`` compiles it; what carries the model's state to the next call is part of none of them.
    # None: this Keras has them by ``fit`` alone.
    def bare_steps(
        self, model: Any, batch: Any
    ) -> Callable[[], AbstractContextManager[Callable[[int], None]]] | None: ...
    # How a GPU rounds the factors of float32 products: ``ieee``, ``tf32``, or ``mixed``.
    def fp32(self) -> str: ...
    # The backend's own setting for computing threads; None if it does not tell.
    def threads(self) -> int | None: ...
    # The versions of the backend's packages and plug-ins.
    def versions(self) -> dict[str, str]: ...


def names() -> list[str]:
    """In the order of the tables."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def built_in() -> list[str]:
    """Return the names of those that Keras has by itself."""
    return [name for name in names() if not get(name).OUTSIDE]


def get(name: str) -> Backend:
    return cast("Backend", importlib.import_module(f"{__name__}.{name}"))


def distribution(name: str) -> str:
    """Return the name by which the package is installed."""
    return get(name).PACKAGE.replace("_", "-")


def counting() -> str:
    return next(name for name in names() if get(name).count_operations is not None)
