"""What the doctor found, as text and as data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from kerasbench.doctor.facts import BackendFacts, Facts
from kerasbench.doctor.finding import Finding
from kerasbench.exchange.messages import Inventory, ProbeReport
from kerasbench.report.sections import NOTHING
from kerasbench.text import whole_gib


def as_text(facts: Facts, findings: Sequence[Finding]) -> str:
    """Return a line for each backend, then each finding with what mends it."""
    rows = [
        [one.name, one.interpreter, _python(one), _versions(one), _devices(one), one.source or "this interpreter"]
        for one in facts.backends
    ]
    table = tabulate(rows, ["backend", "interpreter", "Python", "versions", "devices", "named by"], tablefmt="simple")
    said = [_said(finding) for finding in findings]
    return "\n\n".join([_machine(facts), table, "\n".join(said) if said else "Nothing is wrong."])


def as_data(facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the same as plain data, with everything that was found out."""
    return {
        "machine": dataclasses.asdict(facts.machine),
        "backends": [dataclasses.asdict(one) for one in facts.backends],
        "variables": facts.variables,
        "keras_json": facts.keras_json,
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }


def _said(finding: Finding) -> str:
    whom = f" {finding.backend}:" if finding.backend else ""
    mark = "$ " if finding.is_command else "→ "
    return f"{finding.severity}:{whom} {finding.cause}" + (f"\n    {mark}{finding.remedy}" if finding.remedy else "")


def _machine(facts: Facts) -> str:
    here = facts.machine.fingerprint
    gpus = ", ".join(here.gpus) or "no GPU known"
    driver = f" (driver {here.driver})" if here.driver else ""
    memory = whole_gib(here.memory_bytes)
    return f"{here.chip}, {here.cores} cores, {memory}, {gpus}{driver}, {here.system} {here.architecture}"


def _python(one: BackendFacts) -> str:
    return one.inventory.python if isinstance(one.inventory, Inventory) else NOTHING


def _versions(one: BackendFacts) -> str:
    if isinstance(one.probe, ProbeReport):
        return ", ".join(f"{name} {version}" for name, version in sorted(one.probe.versions.items()))
    found = {name: one.packages[name] for name in (one.name, "keras") if name in one.packages}
    return ", ".join(f"{name} {version}" for name, version in found.items()) or NOTHING


def _devices(one: BackendFacts) -> str:
    if not isinstance(one.probe, ProbeReport):
        return "does not load" if one.installed else NOTHING
    return ", ".join(device.described for device in one.probe.devices)
