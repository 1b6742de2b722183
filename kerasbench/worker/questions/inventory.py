"""What an interpreter is and has installed, told without importing any of it: what is broken can still be listed."""

import platform
import re
import sys
from importlib import metadata

from kerasbench import backends
from kerasbench.exchange.messages import Inventory
from kerasbench.exchange.requests import InventoryRequest


def take(request: InventoryRequest) -> Inventory:
    """Return the interpreter's version and architecture, its distributions, and the backend's wheel tags."""
    return Inventory(
        python=platform.python_version(),
        prefix=sys.prefix,
        architecture=platform.machine(),
        packages=dict(sorted(_packages().items())),
        tags=_tags(backends.get(request.backend).PACKAGE),
    )


def _packages() -> dict[str, str]:
    """Return every distribution's version by its normalised name; a broken one has neither and is passed over."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        told = distribution.metadata
        if "Name" in told and "Version" in told:
            name = re.sub(r"[-_.]+", "-", told["Name"]).lower()
            found.setdefault(name, told["Version"])  # the first on the path is the one imported
    return found


def _tags(package: str) -> list[str]:
    """Return what the installed wheel was built for: ``cp311-cp311-manylinux_2_28_x86_64``."""
    try:
        wheel = metadata.distribution(package).read_text("WHEEL") or ""
    except metadata.PackageNotFoundError:
        return []
    return [line.partition(":")[2].strip() for line in wheel.splitlines() if line.startswith("Tag:")]
