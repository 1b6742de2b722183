"""Whose results are missing: this machine's, if no published ones are of its GPU or its chip."""

from collections.abc import Iterable
from pathlib import Path

from kerasbench.host import Machine
from kerasbench.protocol.columns import CPU, Device
from kerasbench.report.markdown import escape

PACKAGE_FOLDER = Path(__file__).parents[1]


def index() -> str:
    """Return the page of machines with published results: inside the package in a wheel, in results/ in a checkout."""
    inside = PACKAGE_FOLDER / "published" / "machines.md"
    file = inside if inside.is_file() else PACKAGE_FOLDER.parent / "results" / "README.md"
    return file.read_text("utf-8") if file.is_file() else ""


def advice(machine: Machine, devices: Iterable[Device], published: str) -> str:
    """``devices``: what the backends find here; a GPU that none of them finds cannot be measured."""
    usable = [device.name for device in devices if device.kind != CPU]
    gpus = list(dict.fromkeys(machine.gpus or usable)) if usable else []
    there = [f"{line.removeprefix('## ')}," for line in published.splitlines() if line.startswith("## ")]
    missing = [gpu for gpu in gpus if not any(f", {escape(gpu)}," in line for line in there)]
    if not any(line.startswith(f"{escape(machine.chip)},") for line in there):
        missing.append(machine.chip)
    if not missing:
        return (
            f"To contribute: nothing is missing, results of {' and '.join([machine.chip, *gpus])} are in the project."
        )
    measure = "kerasbench --budget 1h, then kerasbench contribute results/<start>.json"
    return f"To contribute: no results of {' and '.join(missing)} are in the project yet. Type {measure}"
