"""Rules about NVIDIA GPUs: the driver, the wheels, what hides a card."""

import sys
from collections.abc import Iterator
from itertools import takewhile

from kerasbench.doctor.facts import BackendFacts, Facts
from kerasbench.doctor.finding import Finding, Severity, create, pip
from kerasbench.environments.wheels import release
from kerasbench.exchange.messages import Failure, ProbeReport
from kerasbench.machine.nvidia import OLDEST_DRIVER, PACKAGE, cuda_of

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


RULES = (package_missing, driver_missing, cpu_wheel, driver_too_old, hidden, blind, exclusive, two_cudnns, half_of_jax)
