"""The doctor: what is wrong with this machine and its environments, and the command that fixes each thing."""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from packaging.requirements import Requirement

from kerasbench import backends, host
from kerasbench.backends import Target, Version
from kerasbench.backends.jax import MPS_MACOS
from kerasbench.backends.tensorflow import METAL_PLUGIN
from kerasbench.backends.torch import FALLBACK
from kerasbench.environments import venvs
from kerasbench.environments.interpreters import Interpreters, runs
from kerasbench.environments.venvs import NIGHTLY, pip, release
from kerasbench.host import Machine, linux, macos, noise, nvidia
from kerasbench.processes import questions
from kerasbench.processes.variables import KEEP, held_back, own_names
from kerasbench.protocol.columns import Device, Environment
from kerasbench.protocol.messages import FIND, Code, Failure, Inventory, ProbeReport

TRIED_KERAS = (3, 16)  # the newest that kerasbench was tested with
VISIBLE = "CUDA_VISIBLE_DEVICES"
METAL_NEEDS_TENSORFLOW = ((2, 18), (2, 20))  # tensorflow-metal 1.2.0: from the first on, and below the second
METAL_ENDS_AT_PYTHON = (3, 13)  # its wheels stop at 3.12
OLDEST_METAL = (1, 2)


@dataclass(frozen=True)
class BackendFacts:
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
        return self.packages.get("keras") or self.packages.get(NIGHTLY)

    @property
    def installed(self) -> bool:
        # TensorFlow comes under several names (tensorflow-cpu, tf-nightly): what was imported is there.
        return backends.distribution(self.name) in self.packages or isinstance(self.probe, ProbeReport)

    @property
    def python(self) -> Version:
        return release(self.inventory.python) if isinstance(self.inventory, Inventory) else ()

    @property
    def devices(self) -> list[Device]:
        return self.probe.devices if isinstance(self.probe, ProbeReport) else []

    @property
    def sees_gpu(self) -> bool:
        return any(device.kind != "cpu" for device in self.devices)

    @property
    def wheel(self) -> str:
        """What it was built for: ``CPU``, ``CUDA 12.5.1``, ``jax-cuda13-plugin``; empty where it does not tell."""
        return self.probe.versions.get(f"{self.name}-wheel", "") if isinstance(self.probe, ProbeReport) else ""

    @property
    def cuda(self) -> int | None:
        version = re.search(r"cuda ?(\d+)", self.wheel.lower())
        return int(version[1]) if version else None


@dataclass(frozen=True)
class MachineFacts:
    fingerprint: Machine
    system: str
    state: noise.MachineState
    cards: list[nvidia.Card]  # what the NVIDIA driver lists
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


def gather(names: Sequence[str], interpreters: Interpreters) -> Facts:
    """Look at the machine while it is quiet, then ask every backend's interpreter, in children side by side."""
    machine = look_at_machine()

    def ask(name: str, tick: questions.Tick) -> BackendFacts:
        python, source = interpreters.of(Environment(name)), interpreters.source(Environment(name))
        if not runs(python):
            gone = Failure(Code.UNAVAILABLE, f"no interpreter at {python}", f"correct the path in {source}", "spawn")
            return BackendFacts(name, python, source, gone, gone)
        inventory = questions.inventory(python, tick)
        return BackendFacts(name, python, source, inventory, questions.probe(name, python, tick))

    return Facts(machine, questions.together(ask, names, at_once=len(names)), held_back())


def look_at_machine() -> MachineFacts:
    apple = sys.platform == "darwin"
    return MachineFacts(
        fingerprint=host.fingerprint(),
        system=sys.platform,
        state=noise.observe(),
        cards=nvidia.cards(),
        makers=[] if apple else linux.display_makers(),
        apple_silicon=apple and macos.is_apple_silicon(),
        macos=macos.version() if apple else (),
        nvidia_package_missing=nvidia.package_missing(),
    )


class Severity(StrEnum):
    ERROR = "error"  # a backend or a device cannot be used
    WARNING = "warning"  # it can, but not as well or not as comparably as it might
    NOTE = "note"  # worth knowing; nothing to fix


@dataclass(frozen=True)
class Problem:
    severity: Severity
    backend: str  # several have commas between them; empty: it is the machine
    cause: str
    remedy: str = ""
    is_command: bool = False  # the remedy can be pasted into a shell; else it is a sentence


Finding = tuple[Severity, str, str, bool]  # a problem without its backends
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def create(backend: str, *options: str) -> str:
    return shlex.join([sys.executable, "-m", "kerasbench", "env", "create", "--backend", backend, *options, "--force"])


def install(facts: Facts, backend: BackendFacts, *options: str, keras: bool = True) -> str:
    here = facts.machine
    # Rosetta calls it x86_64; what is to be installed is for the machine as it is.
    architecture = "arm64" if here.apple_silicon else here.fingerprint.architecture
    target = Target(here.system, architecture, backend.python, True, nvidia.cuda_of(here.cards), here.macos)
    wanted = [*(venvs.keras(backend.name) if keras else ()), *backends.get(backend.name).requirements(target)]
    if NIGHTLY in map(venvs.package, wanted):  # which pip would install beside the Keras that others ask for
        return create(backend.name)
    return pip(backend.interpreter, *options, *wanted)


def interpreter(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    inventory, intel_mac = backend.inventory, facts.machine.system == "darwin" and not facts.machine.apple_silicon
    if isinstance(inventory, Failure):
        yield ERROR, inventory.cause, inventory.remedy, False
    elif facts.translated(backend):
        cause = f"{backend.interpreter} is an x86-64 Python, which Rosetta translates: slow, and without the Apple GPU"
        remedy = "install an arm64 Python 3.12 (python.org, or Homebrew in /opt/homebrew) and recreate the environment"
        yield ERROR, cause, remedy, False
    elif not backend.installed and () < backends.get(backend.name).NEWEST_PYTHON < backend.python[:2]:
        newest = ".".join(map(str, backends.get(backend.name).NEWEST_PYTHON))
        cause = f"Python {inventory.python} is too new: {backend.name} has wheels for {newest} and older"
        yield ERROR, cause, create(backend.name, "--interpreter", f"python{newest}"), True
    elif not (backend.installed or intel_mac):
        cause = f"{backend.name} is not installed in {inventory.prefix}"
        yield ERROR if backend.source else NOTE, cause, install(facts, backend), True


def keras(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    if not backend.installed:
        return
    version, python = backend.keras, backend.interpreter
    needed = Requirement(backends.get(backend.name).KERAS)
    if version is None or not needed.specifier.contains(version, prereleases=True):
        cause = f"keras {version} is too old" if version else f"keras is not installed beside {backend.name}"
        remedy = create(backend.name) if needed.name == NIGHTLY else pip(python, *venvs.keras(backend.name))
        yield ERROR, cause, remedy, True
    elif release(version)[:2] > TRIED_KERAS:
        tried = ".".join(map(str, TRIED_KERAS))
        cause = f"keras {version} is newer than {tried}, the newest that kerasbench was tested with"
        yield WARNING, cause, f"nothing, unless workloads fail; then {pip(python, f'keras=={tried}.*')}", False
    versions = (other.keras for other in facts.backends if other.installed and NIGHTLY not in other.packages)
    newest = max(filter(None, versions), key=release, default="")
    if not version or version == newest or not newest:
        return
    if NIGHTLY in backend.packages:
        cause = f"keras {version} here and {newest} elsewhere: ratios compare these too, and each row says so"
        yield NOTE, cause, "", False
    else:
        cause = f"keras {version} here and {newest} elsewhere: ratios would compare these too, not the backends alone"
        yield WARNING, cause, pip(python, f"keras=={newest}"), True


def does_not_load(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    if backend.installed and isinstance(backend.probe, Failure) and backend.probe.phase != FIND:
        cause = f"{backend.name} does not load: {backend.probe.cause}"
        last = backend.probe.detail.strip().splitlines()[-1:]
        if last and last[0] not in backend.probe.cause:
            cause += f" ({last[0]})"
        yield ERROR, cause, install(facts, backend, "--force-reinstall"), True


def nvidia_cards(facts: Facts) -> Iterator[Finding]:
    machine, visible = facts.machine, facts.variables.get(VISIBLE)
    if machine.nvidia_package_missing:
        unchecked = "trials on its GPUs are not checked for heat, for other processes and for the right GPU"
        cause = f"there is an NVIDIA driver, but {nvidia.PACKAGE} is not installed: {unchecked}"
        yield WARNING, cause, pip(sys.executable, nvidia.PACKAGE), True
    elif "NVIDIA" in machine.makers and not machine.cards:
        cause = "there is an NVIDIA GPU, but no driver lists it: the driver is not installed or not loaded"
        remedy = f"install NVIDIA's driver, version {nvidia.OLDEST_DRIVER[13]} or newer, and restart"
        yield WARNING, cause, remedy, False
    # CUDA takes the list up to the first name that means no device.
    shown = len(list(takewhile(lambda name: name.strip() not in ("", "-1"), (visible or "").split(","))))
    if visible is not None and shown < len(machine.cards):
        yield NOTE, f"{VISIBLE}={visible} shows {shown} of {len(machine.cards)} NVIDIA GPUs", f"unset {VISIBLE}", True
    if any(card.exclusive for card in machine.cards):
        how = "its backends are measured one after another and not in turns, so their ratios are less precise"
        yield WARNING, f"a GPU is in compute mode EXCLUSIVE_PROCESS: {how}", "sudo nvidia-smi -c DEFAULT", True


def cuda_build(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    cards, wanted, spoken = facts.machine.cards, backend.cuda or 0, nvidia.cuda_of(facts.machine.cards)
    gravity, cause = ERROR, ""
    if cards and backend.wheel == "CPU":
        gravity, wanted = WARNING, min(nvidia.OLDEST_DRIVER)
        cause = f"this {backend.name} is a CPU build, on a machine with {cards[0].name}"
    # A driver older than all in the list speaks none of these; forward compatibility may let a newer CUDA run.
    elif cards and wanted >= min(nvidia.OLDEST_DRIVER) and wanted > (spoken or 0) and not backend.sees_gpu:
        cause = f"this {backend.name} is built for CUDA {wanted}, which driver {cards[0].driver} does not support"
    elif 0 < wanted <= (spoken or 0) and not backend.sees_gpu and VISIBLE not in facts.variables:
        cause = f"this {backend.name} is built for CUDA {wanted} and sees no GPU, though the driver lists one"
    if cause and spoken is None:
        oldest = f", {nvidia.OLDEST_DRIVER[wanted]} or newer" if wanted in nvidia.OLDEST_DRIVER else ""
        yield gravity, cause, f"update the NVIDIA driver{oldest}", False
    elif cause:
        yield gravity, cause, create(backend.name, "--cuda"), True
    # The last cuDNN that came won. The wrong one may be why a backend does not load, and cannot tell what it is for.
    concerned = backend.cuda is not None or (backend.installed and isinstance(backend.probe, Failure))
    if cards and concerned and {"nvidia-cudnn-cu12", "nvidia-cudnn-cu13"} <= backend.packages.keys():
        cause = "nvidia-cudnn-cu12 and nvidia-cudnn-cu13 overwrite each other's files in one environment"
        yield ERROR, cause, create(backend.name, "--cuda"), True


def metal_plugin(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    ended = backend.python >= METAL_ENDS_AT_PYTHON
    another_python = create("tensorflow", "--interpreter", "python3.12")
    remedy = another_python if ended else install(facts, backend, keras=False)
    metal, version = backend.packages.get(METAL_PLUGIN), backend.packages.get("tensorflow", "")
    numbers = release(version)
    least, below = METAL_NEEDS_TENSORFLOW
    if metal and numbers and (numbers >= below or (numbers >= least and release(metal) < OLDEST_METAL)):
        cause = f"{METAL_PLUGIN} {metal} cannot be loaded by TensorFlow {version}, and stops its import"
        yield ERROR, cause, remedy, True
    if backend.installed and not metal and not backend.sees_gpu:
        ends = ", which ends at Python 3.12" if ended else ""
        yield WARNING, f"TensorFlow sees no Apple GPU without {METAL_PLUGIN}{ends}", remedy, True


def jax_plugin(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    """jax-metal, broken since JAX 0.5.1 (jax issues 27062, 34109); a jax-mps that is missing or of another version."""
    metal, mps, jax = (backend.packages.get(name, "") for name in ("jax-metal", "jax-mps", "jax"))
    if metal:
        yield ERROR, f"jax-metal {metal} is broken since JAX 0.5.1 and no longer maintained", create("jax"), True
    if mps and jax and release(mps)[:2] != release(jax)[:2]:
        major, minor = release(mps)[:2]
        command = pip(backend.interpreter, f"jax>={major}.{minor},<{major}.{minor + 1}")
        yield ERROR, f"jax-mps {mps} needs JAX {major}.{minor}, this is {jax}", command, True
    lacks = backend.installed and not (mps or metal) and not backend.sees_gpu
    if lacks and facts.machine.macos >= MPS_MACOS:
        yield WARNING, "JAX sees no Apple GPU without jax-mps", install(facts, backend, keras=False), True


def torch_fallback(facts: Facts, backend: BackendFacts) -> Iterator[Finding]:
    if facts.variables.get(FALLBACK, "0") != "0":
        cause = f"{FALLBACK} is set: operations that PyTorch lacks on the Apple GPU run on the CPU; the page lists them"
        yield WARNING, cause, f"unset {FALLBACK}", True


def mac(facts: Facts) -> Iterator[Finding]:
    machine = facts.machine
    if machine.system == "darwin" and not machine.apple_silicon:
        cause = "an Intel Mac: TensorFlow ended there at 2.16, PyTorch at 2.2 and JAX at 0.4; kerasbench needs newer"
        yield WARNING, cause, "measure on another machine", False
    elif machine.apple_silicon and machine.macos and machine.macos < MPS_MACOS:
        cause = f"macOS {'.'.join(map(str, machine.macos))}: jax-mps, and PyTorch from 2.12 on, need macOS 14"
        yield NOTE, cause, "update macOS, or measure only PyTorch 2.11 and TensorFlow", False


def surroundings(facts: Facts) -> Iterator[Finding]:
    for signal in noise.of_machine(facts.machine.state, facts.machine.fingerprint.cores):
        kind = noise.WarningKind(signal.name)
        yield WARNING, signal.reason, kind.remedy, kind.is_command
    level = facts.machine.state.thermal_level
    if level is not None and level >= noise.THERMAL_WARN:
        yield WARNING, f"macOS reports thermal pressure, level {level}", noise.WarningKind.HEAT.remedy, False
    heeded = {VISIBLE, *(name for backend in backends.names() for name in backends.get(backend).HEEDED)}
    others = [name for name in facts.variables if name not in heeded]
    if others:
        keepable = ",".join(name for name in others if name not in own_names())
        cause = f"set in this shell, but not passed to trials, because they change results: {', '.join(others)}"
        yield NOTE, cause, f"nothing, or pass them on with {KEEP} {keepable}" if keepable else "", False


MACHINE_RULES = (nvidia_cards, mac, surroundings)
BACKEND_RULES = (interpreter, keras, cuda_build)
APPLE_RULES = {"tensorflow": metal_plugin, "jax": jax_plugin, "torch": torch_fallback}


def diagnose(facts: Facts) -> list[Problem]:
    """Return what every rule finds, the gravest first. What one command fixes for several backends is said once."""
    backends_of: dict[Finding, list[str]] = {}
    for backend in facts.backends:
        findings = [finding for rule in BACKEND_RULES for finding in rule(facts, backend)]
        is_native = facts.machine.apple_silicon and not facts.translated(backend)  # else it has no wheels for that GPU
        if is_native and backend.name in APPLE_RULES:
            findings += APPLE_RULES[backend.name](facts, backend)
        if all(gravity is not ERROR for gravity, *_ in findings):
            findings += does_not_load(facts, backend)
        for finding in findings:
            backends_of.setdefault(finding, []).append(backend.name)
    backends_of |= {finding: [""] for rule in MACHINE_RULES for finding in rule(facts)}
    problems = [Problem(finding[0], ", ".join(names), *finding[1:]) for finding, names in backends_of.items()]
    return sorted(problems, key=lambda problem: list(Severity).index(problem.severity))
