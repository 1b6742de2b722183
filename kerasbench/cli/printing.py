"""What commands print: a page, or JSON in its place; scenarios; what a doctor finds."""

import sys
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from kerasbench.text import MARGIN, NOTHING, blanked, label, print_document, whole_gib, wrapped

if TYPE_CHECKING:
    from kerasbench.api.results import Shown
    from kerasbench.environments.doctor import BackendFacts, Facts, Problem
    from kerasbench.plan.catalog import Entry
    from kerasbench.protocol.descriptions import WorkloadDescription

HEADERS = ("scenario", "parameters", "batch", "steps", "epochs", "operations/step")


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


def as_table(entries: Sequence["Entry"], columns: int) -> str:
    """Return the scenarios of each suite: a line for each workload, and below it what it is."""
    of_entries = [[_numbers(entry.name, workload) for workload in entry.description.workloads] for entry in entries]
    widths = [max(map(len, cells)) for cells in zip(HEADERS, *chain(*of_entries), strict=True)]
    lines: list[str] = []
    for index, (entry, rows) in enumerate(zip(entries, of_entries, strict=True)):
        if not index or entry.suite != entries[index - 1].suite:
            lines += [*([""] if index else []), f"Suite {entry.suite}", _aligned(HEADERS, widths)]
        large = [workload.name for workload in entry.description.workloads if workload.large]
        of_some = f": {', '.join(large)}" if len(large) < len(rows) else ""
        what = entry.description.title + (f" For a GPU{of_some}." if large else "")
        lines += [*(_aligned(row, widths) for row in rows), wrapped(f"{MARGIN}{blanked(what)}", columns)]
    return "\n".join(lines)


def _numbers(scenario: str, workload: "WorkloadDescription") -> list[str]:
    numbers = (workload.parameters, workload.batch, workload.steps, workload.epochs)
    counts = [NOTHING if number is None else f"{number:,}" for number in numbers]
    counts.append(NOTHING if workload.operations is None else operations(workload.operations))
    return [blanked(label(scenario, workload.name)), *counts]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    name, width = first
    return "  ".join([name.ljust(width), *(cell.rjust(width) for cell, width in others)])


def operations(count: int) -> str:
    """Return a number of operations in three digits: ``9.28 T``, ``752 M``, ``812``."""
    for prefix, unit in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= unit:
            return f"{float(f'{count / unit:.3g}'):g} {prefix}"
    return str(count)


def diagnosis(facts: "Facts", findings: Sequence["Problem"]) -> str:
    here = facts.machine.fingerprint
    gpus = (", ".join(here.gpus) or "no GPU known") + (f" (driver {here.driver})" if here.driver else "")
    sizes = f"{here.cores} logical CPUs, {whole_gib(here.memory_bytes)}"
    machine = f"{here.chip}, {sizes}, {gpus}, {here.system} {here.architecture}"
    lines = []
    for finding in findings:
        backend = f" {finding.backend}:" if finding.backend else ""
        lines.append(f"{finding.severity}:{backend} {finding.cause}")
        if finding.remedy:
            lines.append(f"{MARGIN}{'$' if finding.is_command else '→'} {finding.remedy}")
    return "\n\n".join([machine, *map(_backend, facts.backends), "\n".join(lines) or "Nothing is wrong."])


def _backend(facts: "BackendFacts") -> str:
    from kerasbench.protocol.messages import Inventory, ProbeReport  # late: `list` has none

    python = f", Python {facts.inventory.python}" if isinstance(facts.inventory, Inventory) else ""
    if isinstance(facts.probe, ProbeReport):
        versions = dict(sorted(facts.probe.versions.items()))
        devices = ", ".join(device.described for device in facts.probe.devices)
    else:
        installed = {facts.name: facts.packages.get(facts.name), "keras": facts.keras}
        versions = {name: version for name, version in installed.items() if version}
        devices = "does not load" if facts.installed else NOTHING
    named = ", ".join(f"{name} {version}" for name, version in versions.items()) or NOTHING
    source = facts.source or "this interpreter"
    lines = [f"{facts.name}: {named}{python}", f"devices: {devices}", f"interpreter: {facts.interpreter} ({source})"]
    return f"\n{MARGIN}".join(lines)
