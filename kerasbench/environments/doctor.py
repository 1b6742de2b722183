"""The doctor: what is wrong with this machine and its environments, and the command that fixes each thing."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from kerasbench import backends, host
from kerasbench.backends import Target, Version
from kerasbench.backends.jax import MPS_MACOS
from kerasbench.backends.tensorflow import METAL_PLUGIN
from kerasbench.backends.torch import FALLBACK
from kerasbench.environments.interpreters import Interpreters, runs
from kerasbench.environments.venvs import KERAS, NEWEST_PYTHON, pip, release
from kerasbench.host import Machine, linux, macos, noise, nvidia
from kerasbench.host.noise import MachineState, WarningKind
from kerasbench.host.nvidia import OLDEST_DRIVER, PACKAGE, Card
from kerasbench.processes import questions
from kerasbench.processes.questions import Tick, together
from kerasbench.processes.variables import KEEP, held_back, own_names
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import FIND, Code, Failure, Inventory, ProbeReport

OLDEST_KERAS = (3, 12)  # what KERAS asks for
TRIED_KERAS = (3, 15)  # the newest that kerasbench was tested with
NVIDIA = "NVIDIA"
VISIBLE = "CUDA_VISIBLE_DEVICES"
METAL_NEEDS_TENSORFLOW = ((2, 18), (2, 20))  # tensorflow-metal 1.2.0: from the first on, and below the second
METAL_ENDS_AT_PYTHON = (3, 13)  # its wheels stop at 3.12
OLDEST_METAL = (1, 2)


@dataclass(frozen=True)
class BackendFacts:
    """One backend: what runs it, what is installed there, and what it said when it was imported."""

    name: str
    interpreter: str
    source: str  # who named the interpreter; empty where nobody did
    inventory: Inventory | Failure
    probe: ProbeReport | Failure

    @property
    def packages(self) -> dict[str, str]:
        return self.inventory.packages if isinstance(self.inventory, Inventory) else {}

    @property
    def keras(self) -> str | None:
        return self.packages.get("keras") or self.packages.get("keras-nightly")

    @property
    def installed(self) -> bool:
        # TensorFlow comes under several names (tensorflow-cpu, tf-nightly): what was imported is there.
        return backends.get(self.name).PACKAGE in self.packages or isinstance(self.probe, ProbeReport)

    @property
    def python(self) -> Version:
        return release(self.inventory.python) if isinstance(self.inventory, Inventory) else ()

    @property
    def too_new(self) -> bool:
        return self.name in NEWEST_PYTHON and self.python[:2] > NEWEST_PYTHON[self.name]

    @property
    def sees_gpu(self) -> bool:
        return isinstance(self.probe, ProbeReport) and any(device.kind != "cpu" for device in self.probe.devices)

    @property
    def wheel(self) -> str:
        """What it was built for: ``CPU``, ``CUDA 12.5.1``, ``jax-cuda13-plugin``; empty where it does not tell."""
        return self.probe.versions.get(f"{self.name}-wheel", "") if isinstance(self.probe, ProbeReport) else ""

    @property
    def cuda(self) -> int | None:
        _, cuda, version = self.wheel.lower().partition("cuda")
        numbers = release(version.strip())
        return numbers[0] if cuda and numbers else None


@dataclass(frozen=True)
class MachineFacts:
    fingerprint: Machine
    system: str
    state: MachineState
    cards: list[Card]  # what the NVIDIA driver lists
    makers: list[str]  # of the display controllers on the bus
    apple_silicon: bool  # whatever the interpreter was built for
    macos: Version  # empty elsewhere
    nvidia_package_missing: bool = False  # there is an NVIDIA driver, and nothing here to ask it with


@dataclass(frozen=True)
class Facts:
    machine: MachineFacts
    backends: list[BackendFacts]
    variables: dict[str, str]  # those of the shell that a child does not get

    def translated(self, backend: BackendFacts) -> bool:
        inventory = backend.inventory
        return self.machine.apple_silicon and isinstance(inventory, Inventory) and inventory.architecture == "x86_64"

    def on_apple_silicon(self, backend: BackendFacts, name: str) -> bool:
        """Tell whether this is that backend, where it may have the Apple GPU: a translated one has no wheels for it."""
        return backend.name == name and self.machine.apple_silicon and not self.translated(backend)

    def target(self, backend: BackendFacts) -> Target:
        here, asked = self.machine, backend.inventory
        architecture = asked.architecture if isinstance(asked, Inventory) else here.fingerprint.architecture
        if here.apple_silicon:
            architecture = "arm64"  # Rosetta calls it x86_64; what is to be installed is for the machine as it is
        return Target(here.system, architecture, backend.python, True, nvidia.cuda_of(here.cards), here.macos)


def gather(names: Sequence[str], interpreters: Interpreters) -> Facts:
    """Look at the machine while it is quiet, then ask every backend's interpreter, in children side by side."""
    machine = look_at_machine()

    def ask(name: str, tick: Tick) -> BackendFacts:
        python, source = interpreters.of(Environment(name)), interpreters.source(Environment(name))
        if not runs(python):
            gone = Failure(Code.UNAVAILABLE, f"no interpreter at {python}", f"correct the path in {source}", "spawn")
            return BackendFacts(name, python, source, gone, gone)
        inventory = questions.inventory(python, tick)
        return BackendFacts(name, python, source, inventory, questions.probe(name, python, tick))

    return Facts(machine, together(ask, names, at_once=len(names)), held_back())


def look_at_machine() -> MachineFacts:
    apple = sys.platform == "darwin"
    return MachineFacts(
        fingerprint=host.fingerprint(),
        system=sys.platform,
        state=noise.observe(),
        cards=nvidia.cards(),
        makers=[] if apple else linux.display_makers(),
        apple_silicon=apple and macos.is_apple_silicon(),
        macos=(macos.version() or ()) if apple else (),
        nvidia_package_missing=nvidia.package_missing(),
    )


class Gravity(StrEnum):
    ERROR = "error"  # a backend or a device cannot be used
    WARNING = "warning"  # it can, but not as well or not as comparably as it might
    NOTE = "note"  # worth knowing; nothing to fix


@dataclass(frozen=True)
class Problem:
    severity: Gravity
    backend: str  # empty: it is the machine
    cause: str
    remedy: str = ""
    is_command: bool = False  # the remedy can be pasted into a shell; else it is a sentence


def create(backend: str, *arguments: str) -> str:
    """Return the command line that makes an environment for a backend, in the place of one that is there."""
    command = [sys.executable, "-m", "kerasbench", "env", "create"]
    return shlex.join([*command, "--backend", backend, *arguments, "--force"])


def install(facts: Facts, backend: BackendFacts, *options: str, keras: bool = True) -> str:
    wanted = [*(KERAS if keras else ()), *backends.get(backend.name).requirements(facts.target(backend))]
    return pip(backend.interpreter, *options, *wanted)


def update_driver(cuda: int) -> str:
    oldest = f", {OLDEST_DRIVER[cuda]} or newer" if cuda in OLDEST_DRIVER else ""
    return f"update the NVIDIA driver{oldest}"


# What is installed.


def interpreter(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    if isinstance(backend.inventory, Failure):
        yield Problem(Gravity.ERROR, backend.name, backend.inventory.cause, backend.inventory.remedy)
    elif backend.too_new and not backend.installed:
        newest = ".".join(map(str, NEWEST_PYTHON[backend.name]))
        cause = f"Python {backend.inventory.python} is too new: {backend.name} has wheels for {newest} and older"
        another_python = create(backend.name, "--interpreter", f"python{newest}")
        yield Problem(Gravity.ERROR, backend.name, cause, another_python, True)


def missing(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    intel_mac = facts.machine.system == "darwin" and not facts.machine.apple_silicon
    wheels = not (intel_mac or facts.translated(backend) or backend.too_new)
    if isinstance(backend.inventory, Inventory) and not backend.installed and wheels:
        severity = Gravity.ERROR if backend.source else Gravity.NOTE
        cause = f"{backend.name} is not installed in {backend.inventory.prefix}"
        yield Problem(severity, backend.name, cause, install(facts, backend), True)


def unknown_keras(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    version = backend.keras
    if backend.installed and (version is None or release(version) < OLDEST_KERAS):
        cause = f"keras {version} is too old" if version else f"keras is not installed beside {backend.name}"
        yield Problem(Gravity.ERROR, backend.name, cause, pip(backend.interpreter, *KERAS), True)
    elif backend.installed and version and release(version)[:2] > TRIED_KERAS:
        tried = ".".join(map(str, TRIED_KERAS))
        cause = f"keras {version} is newer than {tried}, the newest that kerasbench was tested with"
        remedy = f"nothing, unless workloads fail; then {pip(backend.interpreter, f'keras=={tried}.*')}"
        yield Problem(Gravity.WARNING, backend.name, cause, remedy)


def keras_differs(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    """Another keras than that of other backends: its versions differ in what a step costs."""
    versions = (other.keras for other in facts.backends if other.installed)
    newest = max(filter(None, versions), key=release, default="")
    version = backend.keras or newest
    if backend.installed and version != newest:
        cause = f"keras {version} here and {newest} elsewhere: ratios would compare these too, not the backends alone"
        yield Problem(Gravity.WARNING, backend.name, cause, pip(backend.interpreter, f"keras=={newest}"), True)


def does_not_load(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    """An installed backend that does not load. ``diagnose`` asks this where no other rule knows why."""
    if backend.installed and isinstance(backend.probe, Failure) and backend.probe.phase != FIND:
        cause = f"{backend.name} does not load: {backend.probe.cause}"
        last = backend.probe.detail.strip().splitlines()[-1:]
        if last and last[0] not in backend.probe.cause:
            cause += f" ({last[0]})"
        yield Problem(Gravity.ERROR, backend.name, cause, install(facts, backend, "--force-reinstall"), True)


# NVIDIA GPUs: the driver, the wheels, what hides a card.


def nvidia_cards(facts: Facts) -> Iterator[Problem]:
    machine, visible = facts.machine, facts.variables.get(VISIBLE)
    if machine.nvidia_package_missing:
        unchecked = "trials on its GPUs are not checked for heat, for other processes and for the right GPU"
        cause = f"there is an NVIDIA driver, but {PACKAGE} is not installed: {unchecked}"
        yield Problem(Gravity.WARNING, "", cause, pip(sys.executable, PACKAGE), True)
    elif NVIDIA in machine.makers and not machine.cards:
        cause = "there is an NVIDIA GPU, but no driver lists it: the driver is not installed or not loaded"
        remedy = f"install NVIDIA's driver, version {OLDEST_DRIVER[13]} or newer, and restart"
        yield Problem(Gravity.WARNING, "", cause, remedy)
    # CUDA takes the list up to the first name that means no device.
    shown = len(list(takewhile(lambda name: name.strip() not in ("", "-1"), (visible or "").split(","))))
    if visible is not None and shown < len(machine.cards):
        cause = f"{VISIBLE}={visible} shows {shown} of {len(machine.cards)} NVIDIA GPUs"
        yield Problem(Gravity.NOTE, "", cause, f"unset {VISIBLE}", True)
    if any(card.exclusive for card in machine.cards):
        how = "its backends are measured one after another and not in turns, so their ratios are less precise"
        cause = f"a GPU is in compute mode EXCLUSIVE_PROCESS: {how}"
        yield Problem(Gravity.WARNING, "", cause, "sudo nvidia-smi -c DEFAULT", True)


def cpu_wheel(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    if facts.machine.cards and backend.wheel == "CPU":
        cause = f"this {backend.name} is a CPU build, on a machine with {facts.machine.cards[0].name}"
        has_cuda = nvidia.cuda_of(facts.machine.cards) is not None
        remedy = create(backend.name, "--cuda") if has_cuda else update_driver(min(OLDEST_DRIVER))
        yield Problem(Gravity.WARNING, backend.name, cause, remedy, has_cuda)


def driver_too_old(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    """A build for a newer CUDA than the driver speaks; NVIDIA's forward compatibility may let it run."""
    spoken, wanted = nvidia.cuda_of(facts.machine.cards), backend.cuda or 0
    # Of a driver that is older than all in the list nothing is known but that it speaks none of these.
    too_old = wanted >= min(OLDEST_DRIVER) and wanted > (spoken or 0)
    if facts.machine.cards and too_old and not backend.sees_gpu:
        driver = facts.machine.cards[0].driver
        cause = f"this {backend.name} is built for CUDA {wanted}, which driver {driver} does not support"
        remedy = update_driver(wanted) if spoken is None else create(backend.name, "--cuda")
        yield Problem(Gravity.ERROR, backend.name, cause, remedy, spoken is not None)


def blind(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    wanted, spoken = backend.cuda, nvidia.cuda_of(facts.machine.cards)
    fits = wanted is not None and spoken is not None and wanted <= spoken
    if fits and isinstance(backend.probe, ProbeReport) and not backend.sees_gpu and VISIBLE not in facts.variables:
        cause = f"this {backend.name} is built for CUDA {wanted} and sees no GPU, though the driver lists one"
        yield Problem(Gravity.ERROR, backend.name, cause, create(backend.name, "--cuda"), True)


def two_cudnns(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    """Both cuDNN wheels in one environment: they own the same files, and the last one that came won."""
    both = {"nvidia-cudnn-cu12", "nvidia-cudnn-cu13"} <= backend.packages.keys()
    # The wrong one of them may be why a backend does not load, and then it cannot tell what it was built for.
    concerned = backend.cuda is not None or (backend.installed and isinstance(backend.probe, Failure))
    if facts.machine.cards and both and concerned:
        cause = "nvidia-cudnn-cu12 and nvidia-cudnn-cu13 overwrite each other's files in one environment"
        yield Problem(Gravity.ERROR, backend.name, cause, create(backend.name, "--cuda"), True)


# Macs: the interpreter's architecture, and the plug-ins that bring the Apple GPU.


def rosetta(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    if facts.translated(backend):
        cause = f"{backend.interpreter} is an x86-64 Python, which Rosetta translates: slow, and without the Apple GPU"
        remedy = "install an arm64 Python 3.12 (python.org, or Homebrew in /opt/homebrew) and recreate the environment"
        yield Problem(Gravity.ERROR, backend.name, cause, remedy)


def metal_plugin(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    """A tensorflow-metal that is missing, or that this TensorFlow cannot load: not even the CPU works then."""
    if not facts.on_apple_silicon(backend, "tensorflow"):
        return
    ended = backend.python >= METAL_ENDS_AT_PYTHON
    another_python = create("tensorflow", "--interpreter", "python3.12")
    remedy = another_python if ended else install(facts, backend, keras=False)
    metal, version = backend.packages.get(METAL_PLUGIN), backend.packages.get("tensorflow", "")
    numbers = release(version)
    least, below = METAL_NEEDS_TENSORFLOW
    if metal and numbers and (numbers >= below or (numbers >= least and release(metal) < OLDEST_METAL)):
        cause = f"{METAL_PLUGIN} {metal} cannot be loaded by TensorFlow {version}, and stops its import"
        yield Problem(Gravity.ERROR, backend.name, cause, remedy, True)
    if backend.installed and not metal and not backend.sees_gpu:
        ends = ", which ends at Python 3.12" if ended else ""
        cause = f"TensorFlow sees no Apple GPU without {METAL_PLUGIN}{ends}"
        yield Problem(Gravity.WARNING, backend.name, cause, remedy, True)


def jax_plugin(facts: Facts, backend: BackendFacts) -> Iterator[Problem]:
    """jax-metal, broken since JAX 0.5.1 (jax issues 27062, 34109); a jax-mps that is missing or of another version."""
    if not facts.on_apple_silicon(backend, "jax"):
        return
    metal, mps, jax = (backend.packages.get(name, "") for name in ("jax-metal", "jax-mps", "jax"))
    if metal:
        cause = f"jax-metal {metal} is broken since JAX 0.5.1 and no longer maintained"
        yield Problem(Gravity.ERROR, backend.name, cause, create("jax"), True)
    if mps and jax and release(mps)[:2] != release(jax)[:2]:
        major, minor = release(mps)[:2]
        cause = f"jax-mps {mps} needs JAX {major}.{minor}, this is {jax}"
        command = pip(backend.interpreter, f"jax>={major}.{minor},<{major}.{minor + 1}")
        yield Problem(Gravity.ERROR, backend.name, cause, command, True)
    lacks = backend.installed and not (mps or metal) and not backend.sees_gpu
    if lacks and facts.machine.macos >= MPS_MACOS:
        cause = "JAX sees no Apple GPU without jax-mps"
        yield Problem(Gravity.WARNING, backend.name, cause, install(facts, backend, keras=False), True)


def mac(facts: Facts) -> Iterator[Problem]:
    if facts.machine.system == "darwin" and not facts.machine.apple_silicon:
        cause = "an Intel Mac: TensorFlow ended there at 2.16, PyTorch at 2.2 and JAX at 0.4; kerasbench needs newer"
        yield Problem(Gravity.WARNING, "", cause, "measure on another machine")
    elif facts.machine.apple_silicon and facts.machine.macos and facts.machine.macos < MPS_MACOS:
        version = ".".join(map(str, facts.machine.macos))
        cause = f"macOS {version}: jax-mps, and PyTorch from 2.12 on, need macOS 14"
        yield Problem(Gravity.NOTE, "", cause, "update macOS, or measure only PyTorch 2.11 and TensorFlow")
    if facts.machine.apple_silicon and facts.variables.get(FALLBACK, "0") != "0":
        cause = f"{FALLBACK} is set: operations that PyTorch lacks on the Apple GPU run on the CPU; the page lists them"
        yield Problem(Gravity.WARNING, "torch", cause, f"unset {FALLBACK}", True)


# What surrounds a measurement: power, heat, quotas, variables of the shell.


def surroundings(facts: Facts) -> Iterator[Problem]:
    """What speaks against measuring here now: the signals that a run would record; variables of the shell."""
    for signal in noise.of_machine(facts.machine.state, facts.machine.fingerprint.cores):
        kind = WarningKind(signal.name)
        yield Problem(Gravity.WARNING, "", signal.reason, kind.remedy, kind.is_command)
    level = facts.machine.state.thermal_level
    if level is not None and level >= noise.THERMAL_WARN:
        cause = f"macOS reports thermal pressure, level {level}"
        yield Problem(Gravity.WARNING, "", cause, WarningKind.HEAT.remedy)
    heeded = {VISIBLE, *(name for backend in backends.names() for name in backends.get(backend).HEEDED)}
    others = [name for name in facts.variables if name not in heeded]
    if others:
        keepable = ",".join(name for name in others if name not in own_names())
        cause = f"set in this shell, but not passed to trials, because they change results: {', '.join(others)}"
        remedy = f"nothing, or pass them on with {KEEP} {keepable}" if keepable else ""
        yield Problem(Gravity.NOTE, "", cause, remedy)


MACHINE_RULES: tuple[Callable[[Facts], Iterator[Problem]], ...] = (nvidia_cards, mac, surroundings)
BACKEND_RULES: tuple[Callable[[Facts, BackendFacts], Iterator[Problem]], ...] = (
    *(interpreter, missing, unknown_keras, keras_differs),
    *(cpu_wheel, driver_too_old, blind, two_cudnns),
    *(rosetta, metal_plugin, jax_plugin),
)


def diagnose(facts: Facts) -> list[Problem]:
    """Return what every rule finds, the gravest first. What one command fixes for several backends is said once."""
    problems = [problem for rule in BACKEND_RULES for backend in facts.backends for problem in rule(facts, backend)]
    problems += [problem for rule in MACHINE_RULES for problem in rule(facts)]
    explained = {problem.backend for problem in problems if problem.severity is Gravity.ERROR}
    for backend in facts.backends:
        if backend.name not in explained:
            problems += does_not_load(facts, backend)
    backends_of: dict[Problem, list[str]] = {}
    for problem in problems:
        backends_of.setdefault(replace(problem, backend=""), []).append(problem.backend)
    merged = [replace(problem, backend=", ".join(filter(None, names))) for problem, names in backends_of.items()]
    return sorted(merged, key=lambda problem: list(Gravity).index(problem.severity))
