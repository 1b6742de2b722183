"""Rules about Macs: the interpreter's architecture, and the plug-ins that bring the Apple GPU."""

from collections.abc import Iterator

from kerasbench import backends
from kerasbench.backends.jax import MPS_MACOS
from kerasbench.backends.tensorflow import METAL_PLUGIN
from kerasbench.backends.torch import FALLBACK
from kerasbench.doctor.facts import BackendFacts, Facts
from kerasbench.doctor.finding import Finding, Severity, create, pip
from kerasbench.environments.wheels import release

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


RULES = (
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
