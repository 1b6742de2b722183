"""The scenarios, as a table and as data.

What the doctor found, as text and as data.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tabulate import tabulate

from kerasbench.protocol.messages import Description, Inventory, ProbeReport, WorkloadDescription
from kerasbench.report.markdown import draw_table, escape
from kerasbench.report.sections import NOTHING
from kerasbench.text import label, whole_gib

if TYPE_CHECKING:
    from kerasbench.environments.doctor import BackendFacts, Facts, Finding

PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
HEADERS = ["suite", "scenario", "parameters", "batch", "steps", "epochs", "operations a step", "what"]


class Entry(Protocol):
    """A scenario as the catalog has it."""

    @property
    def file(self) -> Path: ...
    @property
    def description(self) -> Description: ...
    @property
    def suite(self) -> str: ...


def as_table(entries: Sequence[Entry]) -> str:
    """Return one line for each workload: what it is and how large."""
    rows = [_line(entry, workload) for entry in entries for workload in entry.description.workloads]
    return draw_table(HEADERS, rows)


def _line(entry: Entry, workload: WorkloadDescription) -> list[str]:
    description = entry.description
    return [
        entry.suite,
        escape(label(description.name, workload.name)),
        NOTHING if workload.parameters is None else f"{workload.parameters:,}",
        f"{workload.batch:,}",
        f"{workload.steps:,}",
        f"{workload.epochs:,}",
        NOTHING if workload.operations is None else operations(workload.operations),
        escape(description.title + (" For a GPU." if workload.large else "")),
    ]


def operations(count: int) -> str:
    """Return a number of operations in three digits: ``9.28 T``, ``752 M``, ``812``."""
    for prefix, unit in PREFIXES:
        if count >= unit:
            return f"{float(f'{count / unit:.3g}'):g} {prefix}"
    return str(count)


def as_data(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the descriptions as plain data, with each one's suite and file."""
    return [
        {"suite": entry.suite, "file": str(entry.file)} | dataclasses.asdict(entry.description) for entry in entries
    ]


def diagnosis_as_text(facts: "Facts", findings: Sequence["Finding"]) -> str:
    """Return a line for each backend, then each finding with what mends it."""
    rows = [
        [one.name, one.interpreter, _python(one), _versions(one), _devices(one), one.source or "this interpreter"]
        for one in facts.backends
    ]
    table = tabulate(rows, ["backend", "interpreter", "Python", "versions", "devices", "named by"], tablefmt="simple")
    said = [_said(finding) for finding in findings]
    return "\n\n".join([_machine(facts), table, "\n".join(said) if said else "Nothing is wrong."])


def diagnosis_as_data(facts: "Facts", findings: Sequence["Finding"]) -> dict[str, Any]:
    """Return the same as plain data, with everything that was found out."""
    return {
        "machine": dataclasses.asdict(facts.machine),
        "backends": [dataclasses.asdict(one) for one in facts.backends],
        "variables": facts.variables,
        "keras_json": facts.keras_json,
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }


def _said(finding: "Finding") -> str:
    whom = f" {finding.backend}:" if finding.backend else ""
    mark = "$ " if finding.is_command else "→ "
    return f"{finding.severity}:{whom} {finding.cause}" + (f"\n    {mark}{finding.remedy}" if finding.remedy else "")


def _machine(facts: "Facts") -> str:
    here = facts.machine.fingerprint
    gpus = ", ".join(here.gpus) or "no GPU known"
    driver = f" (driver {here.driver})" if here.driver else ""
    memory = whole_gib(here.memory_bytes)
    return f"{here.chip}, {here.cores} cores, {memory}, {gpus}{driver}, {here.system} {here.architecture}"


def _python(one: "BackendFacts") -> str:
    return one.inventory.python if isinstance(one.inventory, Inventory) else NOTHING


def _versions(one: "BackendFacts") -> str:
    if isinstance(one.probe, ProbeReport):
        return ", ".join(f"{name} {version}" for name, version in sorted(one.probe.versions.items()))
    found = {name: one.packages[name] for name in (one.name, "keras") if name in one.packages}
    return ", ".join(f"{name} {version}" for name, version in found.items()) or NOTHING


def _devices(one: "BackendFacts") -> str:
    if not isinstance(one.probe, ProbeReport):
        return "does not load" if one.installed else NOTHING
    return ", ".join(device.described for device in one.probe.devices)
