"""What commands print: a page, or JSON in its place; scenarios; what a doctor finds."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kerasbench.text import NOTHING, label, print_document, whole_gib

if TYPE_CHECKING:
    from kerasbench.environments.doctor import BackendFacts, Facts, Problem
    from kerasbench.plan.catalog import Entry
    from kerasbench.returns import Shown

HEADERS = ["suite", "scenario", "parameters", "batch", "steps", "epochs", "operations per step", "what"]


def show(shown: "Shown", as_json: bool) -> None:
    if as_json:
        print_json(shown.to_data())
        return
    from kerasbench.report.console import print_page

    print_page(shown.page)


def show_markdown(text: str) -> None:
    """Print a page of the manual, drawn for a terminal; as it is written where it is piped."""
    if not sys.stdout.isatty():
        print_document(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    # Links lead to other pages of the manual, whose names a reader types: no terminal can open them.
    Console().print(Markdown(text, hyperlinks=False))


def print_json(data: object, ensure_ascii: bool = True) -> None:
    import json

    print_document(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=ensure_ascii) + "\n")


def as_table(entries: Sequence["Entry"]) -> str:
    from kerasbench.report.markdown import draw_table, escape

    rows = []
    for entry in entries:
        for workload in entry.description.workloads:
            numbers = (workload.parameters, workload.batch, workload.steps, workload.epochs)
            counts = [NOTHING if number is None else f"{number:,}" for number in numbers]
            counts.append(NOTHING if workload.operations is None else operations(workload.operations))
            what = entry.description.title + (" For a GPU." if workload.large else "")
            rows.append([entry.suite, escape(label(entry.name, workload.name)), *counts, escape(what)])
    return draw_table(HEADERS, rows)


def operations(count: int) -> str:
    """Return a number of operations in three digits: ``9.28 T``, ``752 M``, ``812``."""
    for prefix, unit in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= unit:
            return f"{float(f'{count / unit:.3g}'):g} {prefix}"
    return str(count)


def diagnosis(facts: "Facts", findings: Sequence["Problem"]) -> str:
    from tabulate import tabulate

    here = facts.machine.fingerprint
    gpus = (", ".join(here.gpus) or "no GPU known") + (f" (driver {here.driver})" if here.driver else "")
    sizes = f"{here.cores} CPU cores, {whole_gib(here.memory_bytes)}"
    machine = f"{here.chip}, {sizes}, {gpus}, {here.system} {here.architecture}"
    headers = ["backend", "interpreter", "Python", "versions", "devices", "named by"]
    table = tabulate([_backend(backend) for backend in facts.backends], headers, tablefmt="simple")
    lines = []
    for finding in findings:
        backend = f" {finding.backend}:" if finding.backend else ""
        lines.append(f"{finding.severity}:{backend} {finding.cause}")
        if finding.remedy:
            lines.append(f"    {'$' if finding.is_command else '→'} {finding.remedy}")
    return "\n\n".join([machine, table, "\n".join(lines) or "Nothing is wrong."])


def _backend(facts: "BackendFacts") -> list[str]:
    from kerasbench.protocol.messages import Inventory, ProbeReport  # late: `list` has none

    python = facts.inventory.python if isinstance(facts.inventory, Inventory) else NOTHING
    if isinstance(facts.probe, ProbeReport):
        versions = dict(sorted(facts.probe.versions.items()))
        devices = ", ".join(device.described for device in facts.probe.devices)
    else:
        installed = {facts.name: facts.packages.get(facts.name), "keras": facts.keras}
        versions = {name: version for name, version in installed.items() if version}
        devices = "does not load" if facts.installed else NOTHING
    named = ", ".join(f"{name} {version}" for name, version in versions.items()) or NOTHING
    return [facts.name, facts.interpreter, python, named, devices, facts.source or "this interpreter"]
