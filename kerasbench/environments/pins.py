"""The versions that the repository was tested with, ``constraints.txt`` of a clone: new environments keep to them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from kerasbench import backends
from kerasbench.backends import Target

FILE = Path(__file__).parents[2] / "constraints.txt"  # there is none beside what was installed from a wheel


def kept(wanted: Sequence[str], target: Target, file: Path = FILE) -> list[str]:
    """Return the lines of constraints that do not contradict what is wanted; none if another backend is wanted.

    The packages that a backend pins itself (jaxlib, triton, CUDA) belong to its version.
    """
    if not file.is_file():
        return []
    pins = [pin for line in file.read_text("utf-8").splitlines() if (pin := _requirement(line))]
    others = set(_contradicted(wanted, [pin for pin in pins if _applies(pin, target)]))
    if others & {*map(backends.distribution, backends.names())}:
        return []
    return [str(pin) for pin in pins if canonicalize_name(pin.name) not in others]


def _contradicted(wanted: Sequence[str], pins: Sequence[Requirement]) -> Iterator[str]:
    """Yield the names of packages of which another version is wanted than their pin's, or an address."""
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins if pin.specifier}
    for requirement in filter(None, map(_requirement, wanted)):
        name = canonicalize_name(requirement.name)
        has_pin = name in versions and requirement.specifier.contains(versions[name], prereleases=True)
        if requirement.url or not has_pin:
            yield name


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text.partition("#")[0].strip())
    except InvalidRequirement:
        return None


def _applies(pin: Requirement, target: Target) -> bool:
    version = ".".join(map(str, target.python))
    environment = {
        "python_full_version": version,
        "python_version": ".".join(version.split(".")[:2]),
        "sys_platform": target.system,
        "platform_machine": target.architecture,
    }
    return pin.marker is None or pin.marker.evaluate(environment)
