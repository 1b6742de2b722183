"""What a rule of the doctor's says.

Rules about what is installed: interpreters, backends, keras, wheels.

Rules about NVIDIA GPUs: the driver, the wheels, what hides a card.

Rules about Macs: the interpreter's architecture, and the plug-ins that bring the Apple GPU.

Rules about what surrounds a measurement: power, heat, quotas, variables of the shell, keras.json.

The doctor: what is wrong with this machine and its environments, and the command that mends each thing.

``facts`` are gathered by children; each rule is a small function that looks at them and says what it found.
"""

import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from kerasbench import backends
from kerasbench.backends.jax import MPS_MACOS
from kerasbench.backends.tensorflow import METAL_PLUGIN
from kerasbench.backends.torch import FALLBACK
from kerasbench.environments.facts import BackendFacts, Facts
from kerasbench.environments.venvs import KERAS, NEWEST_PYTHON, release
from kerasbench.host import noise
from kerasbench.host.noise import WORDS, Warned
from kerasbench.host.nvidia import OLDEST_DRIVER, PACKAGE, cuda_of
from kerasbench.processes.variables import KEEP, own_names
from kerasbench.protocol.messages import FIND, Failure, Inventory, ProbeReport


class Severity(StrEnum):
    ERROR = "error"  # a backend or a device cannot be used
    WARNING = "warning"  # it can, but not as well or not as comparably as it might
    NOTE = "note"  # worth knowing; nothing to mend


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: with which backend (empty: the machine), what it is, and the command that mends it.

    ``remedy`` is a command line as it can be pasted into a shell where ``is_command``, else a sentence.
    """

    severity: Severity
    backend: str
    cause: str
    remedy: str = ""
    is_command: bool = False


def pip(interpreter: str, *arguments: str) -> str:
    """Return the command line that has an interpreter's pip do something."""
    return shlex.join([interpreter, "-m", "pip", *arguments])


def create(backend: str, *arguments: str) -> str:
    """Return the command line that makes an environment for a backend, in the place of one that is there."""
    return shlex.join(
        [sys.executable, "-m", "kerasbench", "env", "create", "--backend", backend, *arguments, "--force"]
    )


OLDEST_KERAS = (3, 12)  # what KERAS asks for


def interpreter(facts: Facts) -> Iterator[Finding]:
    """Check that each interpreter answers, and is neither too old nor too new."""
    for one in facts.backends:
        if isinstance(one.inventory, Failure):
            yield Finding(Severity.ERROR, one.name, one.inventory.cause, one.inventory.remedy)
        elif _too_new(one) and not one.installed:
            cause = f"Python {one.inventory.python} is newer than the frameworks' wheels"
            newest = ".".join(map(str, NEWEST_PYTHON))
            yield Finding(Severity.ERROR, one.name, cause, create(one.name, "--interpreter", f"python{newest}"), True)


def missing(facts: Facts) -> Iterator[Finding]:
    """Name the backends that are not installed, an error where an interpreter was named for one.

    Not where there are no wheels for that interpreter: other rules say so.
    """
    for one in facts.backends:
        intel_mac = facts.machine.system == "darwin" and not facts.machine.apple_silicon
        wheels = not (intel_mac or facts.translated(one) or _too_new(one))
        if isinstance(one.inventory, Inventory) and not one.installed and wheels:
            wanted = Severity.ERROR if one.source else Severity.NOTE
            cause = f"{one.name} is not installed in {one.inventory.prefix}"
            yield Finding(wanted, one.name, cause, pip(one.interpreter, "install", *_needed(facts, one)), True)


def keras(facts: Facts) -> Iterator[Finding]:
    """Check that keras is there where a backend is, and is Keras 3 of a version that kerasbench knows."""
    for one in facts.backends:
        version = one.packages.get("keras")
        if one.installed and (version is None or release(version) < OLDEST_KERAS):
            cause = f"keras {version} is too old" if version else f"keras is not installed beside {one.name}"
            yield Finding(Severity.ERROR, one.name, cause, pip(one.interpreter, "install", *KERAS), True)


def keras_differs(facts: Facts) -> Iterator[Finding]:
    """Check that all backends have one keras: its versions differ in what a step costs."""
    versions = {one.name: one.packages["keras"] for one in facts.backends if one.installed and "keras" in one.packages}
    newest = max(versions.values(), key=release, default="")
    for one in facts.backends:
        if versions.get(one.name, newest) != newest:
            cause = (
                f"keras {versions[one.name]} here and {newest} elsewhere: columns would differ by more than backends"
            )
            yield Finding(Severity.WARNING, one.name, cause, pip(one.interpreter, "install", f"keras=={newest}"), True)


def wheel_of_another_python(facts: Facts) -> Iterator[Finding]:
    """Check that the backend's wheel was built for this Python: an environment may have been moved to a newer one."""
    for one in facts.backends:
        if not isinstance(one.inventory, Inventory) or not one.inventory.tags:
            continue
        own = f"cp{one.python[0]}{one.python[1]}"
        if not any(_fits(tag, own) for tag in one.inventory.tags):
            package = backends.get(one.name).PACKAGE
            cause = f"{package} was built for {one.inventory.tags[0]}, this Python is {one.inventory.python}"
            yield Finding(Severity.ERROR, one.name, cause, _again(facts, one), True)


def _fits(tag: str, own: str) -> bool:
    interpreter, abi, _ = [*tag.split("-"), "", ""][:3]
    return any(name == own or name.startswith("py3") for name in interpreter.split(".")) or abi == "abi3"


def does_not_load(facts: Facts, one: BackendFacts) -> Iterator[Finding]:
    """Say that an installed backend does not load, where no other rule knows why."""
    if one.installed and isinstance(one.probe, Failure) and one.probe.phase != FIND:
        last = one.probe.detail.strip().splitlines()[-1:]
        cause = f"{one.name} does not load: {one.probe.cause}" + "".join(
            f" ({line})" for line in last if line not in one.probe.cause
        )
        yield Finding(Severity.ERROR, one.name, cause, _again(facts, one), True)


def _too_new(one: BackendFacts) -> bool:
    return one.python[:2] > NEWEST_PYTHON


def _needed(facts: Facts, one: BackendFacts) -> list[str]:
    return [*KERAS, *backends.get(one.name).requirements(facts.target(one))]


def _again(facts: Facts, one: BackendFacts) -> str:
    """Return the command that installs it again, within bounds: the newest TensorFlow would break tensorflow-metal."""
    return pip(one.interpreter, "install", "--force-reinstall", *_needed(facts, one))


INSTALLATION_RULES = (interpreter, missing, keras, keras_differs, wheel_of_another_python)


MAKER = "NVIDIA"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def package_missing(facts: Facts) -> Iterator[Finding]:
    """Notice a driver that nobody here can ask: of its cards nothing is known then, not even that they are there."""
    if facts.machine.nvidia_package_missing:
        cause = (
            f"there is an NVIDIA driver, but {PACKAGE} is not installed: no trial on its GPUs is watched for heat and "
            "other processes, or proves which card it ran on"
        )
        yield Finding(Severity.WARNING, "", cause, pip(sys.executable, "install", PACKAGE), True)


def driver_missing(facts: Facts) -> Iterator[Finding]:
    """Notice a card on the bus of which no driver speaks."""
    if MAKER in facts.machine.makers and not facts.machine.cards and not facts.machine.nvidia_package_missing:
        cause = "there is an NVIDIA GPU, but no driver lists it: the driver is not installed or not loaded"
        remedy = f"install NVIDIA's driver, version {OLDEST_DRIVER[13]} or newer, and restart"
        yield Finding(Severity.WARNING, "", cause, remedy)


def cpu_wheel(facts: Facts) -> Iterator[Finding]:
    """Notice a CPU-only build on a machine with an NVIDIA GPU."""
    for one in facts.backends:
        if facts.machine.cards and _wheel(one) == "CPU":
            cause = f"this {one.name} is a CPU build, on a machine with {facts.machine.cards[0].name}"
            spoken = cuda_of(facts.machine.cards) is not None
            remedy = create(one.name, "--cuda") if spoken else _update(min(OLDEST_DRIVER))
            yield Finding(Severity.WARNING, one.name, cause, remedy, spoken)


def driver_too_old(facts: Facts) -> Iterator[Finding]:
    """Notice a build for a newer CUDA than the driver speaks; NVIDIA's forward compatibility may let it run."""
    spoken = cuda_of(facts.machine.cards)
    for one in facts.backends:
        wanted = _cuda(one) or 0
        # Of a driver that is older than all in the list nothing is known but that it speaks none of these.
        if facts.machine.cards and wanted >= min(OLDEST_DRIVER) and wanted > (spoken or 0) and not one.sees_gpu:
            driver = facts.machine.cards[0].driver
            cause = f"this {one.name} is built for CUDA {wanted}, which driver {driver} does not speak"
            remedy = _update(wanted) if spoken is None else create(one.name, "--cuda")
            yield Finding(Severity.ERROR, one.name, cause, remedy, spoken is not None)


def hidden(facts: Facts) -> Iterator[Finding]:
    """Notice cards that the shell hides, which kerasbench respects."""
    value = facts.variables.get(VISIBLE)
    # CUDA takes the list up to the first name that means no device.
    shown = len(list(takewhile(lambda name: name.strip() not in ("", "-1"), (value or "").split(","))))
    if value is not None and shown < len(facts.machine.cards):
        cause = f"{VISIBLE}={value} shows {shown} of {len(facts.machine.cards)} NVIDIA GPUs"
        yield Finding(Severity.NOTE, "", cause, f"unset {VISIBLE}", True)


def blind(facts: Facts) -> Iterator[Finding]:
    """Notice a CUDA build that sees no card although the driver fits and nothing hides it."""
    for one in facts.backends:
        wanted, spoken = _cuda(one), cuda_of(facts.machine.cards)
        fits = wanted is not None and spoken is not None and wanted <= spoken
        if fits and isinstance(one.probe, ProbeReport) and not one.sees_gpu and VISIBLE not in facts.variables:
            cause = f"this {one.name} is built for CUDA {wanted} and sees no GPU, though the driver lists one"
            yield Finding(Severity.ERROR, one.name, cause, create(one.name, "--cuda"), True)


def exclusive(facts: Facts) -> Iterator[Finding]:
    """Notice cards that let one process in at a time: their columns cannot be measured side by side."""
    if any(card.exclusive for card in facts.machine.cards):
        cause = (
            "a card is in compute mode EXCLUSIVE_PROCESS: its backends are measured one after another, so their ratios "
            "are not by slices in turn"
        )
        yield Finding(Severity.WARNING, "", cause, "sudo nvidia-smi -c DEFAULT", True)


def two_cudnns(facts: Facts) -> Iterator[Finding]:
    """Notice both cuDNN wheels in one environment: they own the same files, and the last one that came won."""
    for one in facts.backends:
        both = {"nvidia-cudnn-cu12", "nvidia-cudnn-cu13"} <= one.packages.keys()
        # The wrong one of them may be why a backend does not load, and then it cannot tell what it was built for.
        concerned = _cuda(one) is not None or (one.installed and isinstance(one.probe, Failure))
        if facts.machine.cards and both and concerned:
            cause = "nvidia-cudnn-cu12 and nvidia-cudnn-cu13 overwrite each other's files in one environment"
            yield Finding(Severity.ERROR, one.name, cause, create(one.name, "--cuda"), True)


def half_of_jax(facts: Facts) -> Iterator[Finding]:
    """Notice a CUDA plug-in of another version than the JAX that is to load it."""
    for one in facts.backends:
        jaxlib = one.packages.get("jaxlib", "")
        for cuda in OLDEST_DRIVER:
            version = one.packages.get(f"jax-cuda{cuda}-plugin", jaxlib)
            if one.name == "jax" and release(version)[:3] != release(jaxlib)[:3]:
                cause = f"jax-cuda{cuda}-plugin {version} does not belong to jaxlib {jaxlib}"
                yield Finding(
                    Severity.ERROR, one.name, cause, pip(one.interpreter, "install", "-U", f"jax[cuda{cuda}]"), True
                )


def _update(cuda: int) -> str:
    least = f", {OLDEST_DRIVER[cuda]} or newer" if cuda in OLDEST_DRIVER else ""
    return f"update the NVIDIA driver{least}"


def _wheel(one: BackendFacts) -> str:
    return one.probe.versions.get(f"{one.name}-wheel", "") if isinstance(one.probe, ProbeReport) else ""


def _cuda(one: BackendFacts) -> int | None:
    """Return the CUDA major version that a backend was built for: ``CUDA 12.5.1``, ``jax-cuda13-plugin``."""
    _, found, rest = _wheel(one).lower().partition("cuda")
    numbers = release(rest.strip())
    return numbers[0] if found and numbers else None


NVIDIA_RULES = (
    package_missing,
    driver_missing,
    cpu_wheel,
    driver_too_old,
    hidden,
    blind,
    exclusive,
    two_cudnns,
    half_of_jax,
)


METAL_NEEDS_TENSORFLOW = ((2, 18), (2, 20))  # tensorflow-metal 1.2.0: from the first on, and below the second
METAL_ENDS_AT_PYTHON = (3, 13)  # its wheels stop at 3.12
OLDEST_METAL = (1, 2)


def rosetta(facts: Facts) -> Iterator[Finding]:
    """Notice an x86-64 Python on Apple silicon: it is translated, slow, and sees no Apple GPU."""
    for one in facts.backends:
        if facts.translated(one):
            cause = f"{one.interpreter} is an x86-64 Python, which Rosetta translates: slow, and without the Apple GPU"
            remedy = (
                "install an arm64 Python 3.12 (python.org, or Homebrew in /opt/homebrew), create the environment again"
            )
            yield Finding(Severity.ERROR, one.name, cause, remedy)


def metal_breaks_tensorflow(facts: Facts) -> Iterator[Finding]:
    """Notice a tensorflow-metal that this TensorFlow cannot load: not even the CPU works then."""
    for one in _on_apple_silicon(facts, "tensorflow"):
        metal, found = one.packages.get(METAL_PLUGIN), release(one.packages.get("tensorflow", ""))
        least, below = METAL_NEEDS_TENSORFLOW
        if metal and found and (found >= below or (found >= least and release(metal) < OLDEST_METAL)):
            version = one.packages["tensorflow"]
            cause = f"{METAL_PLUGIN} {metal} cannot be loaded by TensorFlow {version}, and stops its import"
            yield Finding(Severity.ERROR, one.name, cause, _metal_remedy(facts, one), True)


def metal_missing(facts: Facts) -> Iterator[Finding]:
    """Notice a TensorFlow without the plug-in that brings the Apple GPU, which some Pythons have no wheel of."""
    for one in _on_apple_silicon(facts, "tensorflow"):
        if one.installed and METAL_PLUGIN not in one.packages and not one.sees_gpu:
            ends = ", which ends at Python 3.12" if one.python >= METAL_ENDS_AT_PYTHON else ""
            cause = f"TensorFlow sees no Apple GPU without {METAL_PLUGIN}{ends}"
            yield Finding(Severity.WARNING, one.name, cause, _metal_remedy(facts, one), True)


def jax_metal(facts: Facts) -> Iterator[Finding]:
    """Notice jax-metal, which has been broken since JAX 0.5.1 and gets no more releases (jax issues 27062, 34109)."""
    for one in _on_apple_silicon(facts, "jax"):
        if "jax-metal" in one.packages:
            cause = f"jax-metal {one.packages['jax-metal']} is broken since JAX 0.5.1 and no longer maintained"
            yield Finding(Severity.ERROR, one.name, cause, create("jax"), True)


def jax_mps_pair(facts: Facts) -> Iterator[Finding]:
    """Notice a jax-mps of another minor version than its JAX."""
    for one in _on_apple_silicon(facts, "jax"):
        plugin, jax = one.packages.get("jax-mps", ""), one.packages.get("jax", "")
        if plugin and jax and release(plugin)[:2] != release(jax)[:2]:
            major, minor = release(plugin)[:2]
            cause = f"jax-mps {plugin} needs JAX {major}.{minor}, this is {jax}"
            command = pip(one.interpreter, "install", f"jax>={major}.{minor},<{major}.{minor + 1}")
            yield Finding(Severity.ERROR, one.name, cause, command, True)


def jax_mps_missing(facts: Facts) -> Iterator[Finding]:
    """Notice a JAX without the plug-in that brings the Apple GPU."""
    for one in _on_apple_silicon(facts, "jax"):
        lacks = one.installed and not {"jax-mps", "jax-metal"} & one.packages.keys() and not one.sees_gpu
        if lacks and facts.machine.macos >= MPS_MACOS:
            cause = "JAX sees no Apple GPU without jax-mps"
            yield Finding(Severity.WARNING, one.name, cause, _install(facts, one), True)


def old_macos(facts: Facts) -> Iterator[Finding]:
    """Notice a macOS before 14: torch from 2.12 on and jax-mps have no wheels for it."""
    if facts.machine.apple_silicon and facts.machine.macos and facts.machine.macos < MPS_MACOS:
        version = ".".join(map(str, facts.machine.macos))
        cause = f"macOS {version}: jax-mps and torch from 2.12 on need macOS 14"
        yield Finding(Severity.NOTE, "", cause, "update macOS, or measure torch 2.11 and TensorFlow alone")


def intel(facts: Facts) -> Iterator[Finding]:
    """Notice an Intel Mac, for which the frameworks have ended."""
    if facts.machine.system == "darwin" and not facts.machine.apple_silicon:
        cause = "an Intel Mac: TensorFlow ended there at 2.16, torch at 2.2 and JAX at 0.4; kerasbench needs newer ones"
        yield Finding(Severity.WARNING, "", cause, "measure on another machine")


def fallback(facts: Facts) -> Iterator[Finding]:
    """Notice that torch was told to run on the CPU what it lacks on the Apple GPU."""
    if facts.machine.apple_silicon and facts.variables.get(FALLBACK, "0") != "0":
        cause = f"{FALLBACK} is set: operations that torch lacks on the Apple GPU run on the CPU; the tables name them"
        yield Finding(Severity.WARNING, "torch", cause, f"unset {FALLBACK}", True)


def _metal_remedy(facts: Facts, one: BackendFacts) -> str:
    if one.python >= METAL_ENDS_AT_PYTHON:
        return create("tensorflow", "--interpreter", "python3.12")
    return _install(facts, one)


def _install(facts: Facts, one: BackendFacts) -> str:
    return pip(one.interpreter, "install", *backends.get(one.name).requirements(facts.target(one)))


def _on_apple_silicon(facts: Facts, backend: str) -> list[BackendFacts]:
    """Return a backend's facts where its interpreter may have the Apple GPU: a translated one has no wheels for it."""
    mine = [one for one in facts.backends if facts.machine.apple_silicon and one.name == backend]
    return [one for one in mine if not facts.translated(one)]


APPLE_RULES = (
    rosetta,
    metal_breaks_tensorflow,
    metal_missing,
    jax_metal,
    jax_mps_pair,
    jax_mps_missing,
    old_macos,
    intel,
    fallback,
)


DEFAULTS = {"floatx": "float32", "epsilon": 1e-07, "image_data_format": "channels_last", "nnx_enabled": False}


def restless(facts: Facts) -> Iterator[Finding]:
    """Pass on what speaks against measuring on this machine now: the signals that a run would record."""
    for signal in noise.of_machine(facts.machine.state, facts.machine.fingerprint.cores):
        words = WORDS[Warned(signal.name)]
        yield Finding(Severity.WARNING, "", signal.reason, words.remedy, words.is_command)
    level = facts.machine.state.thermal_level
    if level is not None and level >= noise.THERMAL_WARN:
        yield Finding(Severity.WARNING, "", f"macOS reports thermal pressure, level {level}", WORDS[Warned.HEAT].remedy)


def variables(facts: Facts) -> Iterator[Finding]:
    """Name the variables that are set here and do not reach a trial, because they change what is measured."""
    heeded = {VISIBLE, *(name for backend in backends.names() for name in backends.get(backend).HEEDED)}
    told = [name for name in facts.variables if name not in heeded]
    if told:
        own = own_names()
        keepable = ",".join(name for name in told if name not in own)
        cause = f"set in this shell, and kept from trials because they change figures: {', '.join(told)}"
        remedy = f"leave it so, or measure with {KEEP} {keepable}" if keepable else ""
        yield Finding(Severity.NOTE, "", cause, remedy)


def keras_json(facts: Facts) -> Iterator[Finding]:
    """Notice a keras.json that changes defaults: kerasbench's children do not read it, other programs do."""
    changed = [
        f"{name}={facts.keras_json[name]}"
        for name in DEFAULTS
        if facts.keras_json.get(name, DEFAULTS[name]) != DEFAULTS[name]
    ]
    if changed:
        cause = f"your keras.json sets {', '.join(changed)}: trials do not read it, your other programs do"
        yield Finding(Severity.NOTE, "", cause)


SURROUNDINGS_RULES = (restless, variables, keras_json)


Rule = Callable[[Facts], Iterator[Finding]]
RULES: tuple[Rule, ...] = (*INSTALLATION_RULES, *NVIDIA_RULES, *APPLE_RULES, *SURROUNDINGS_RULES)
GRAVEST_FIRST = list(Severity)


def diagnose(facts: Facts) -> list[Finding]:
    """Return what every rule finds, the gravest first."""
    found = [finding for rule in RULES for finding in rule(facts)]
    explained = {finding.backend for finding in found if finding.severity is Severity.ERROR}
    for one in facts.backends:
        if one.name not in explained:
            found += does_not_load(facts, one)
    return sorted(_together(found), key=lambda finding: GRAVEST_FIRST.index(finding.severity))


def _together(found: list[Finding]) -> list[Finding]:
    """Say once what is wrong with several backends that one command mends."""
    of: dict[Finding, list[str]] = {}
    for finding in found:
        of.setdefault(dataclasses.replace(finding, backend=""), []).append(finding.backend)
    return [dataclasses.replace(one, backend=", ".join(filter(None, names))) for one, names in of.items()]
