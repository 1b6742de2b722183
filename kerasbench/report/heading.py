"""What a page begins with: the machine, the run, the versions, and the terms of each column."""

from kerasbench.analysis.summary import Summary
from kerasbench.machine import Machine
from kerasbench.report.cells import column_name
from kerasbench.report.markdown import escape
from kerasbench.report.notes import let_in
from kerasbench.results.record import Record
from kerasbench.text import count, whole_gib


def heading(summary: Summary) -> str:
    """Return the machine, the run, the versions, and on which terms each column was measured."""
    record = summary.record
    machine = record.machine
    system = f"{escape(machine.system)} {escape(machine.architecture)}"
    rounds = count(record.rounds_completed, "complete round")
    stopped = f"; stopped because {escape(record.stopped_because)}" if record.stopped_because else ""
    lines = [
        f"# kerasbench on {escape(machine.chip)}",
        f"{machine.cores} cores{_kinds(machine)}, {whole_gib(machine.memory_bytes)}{_gpus(machine)}, {system}. "
        f"Begun {escape(record.started)}{_resumed(record)}, {rounds}, seed {record.asked.seed}{stopped}.",
        escape(_versions(record)),
        escape("".join(f"Before the run: {signal.reason}. " for signal in record.noise).strip()),
        escape(let_in(summary)),
        "\n".join(f"- {column_name(column)}: {escape('; '.join(terms))}" for column, terms in summary.terms.items()),
    ]
    return "\n\n".join(line for line in lines if line)


def _resumed(record: Record) -> str:
    return escape(f", interrupted and resumed {' and '.join(record.resumed)}") if record.resumed else ""


def _kinds(machine: Machine) -> str:
    kinds = ", ".join(f"{cores} {escape(kind)}" for kind, cores in machine.cores_by_kind.items())
    return f" ({kinds})" if kinds else ""


def _gpus(machine: Machine) -> str:
    driver = f" (driver {machine.driver})" if machine.driver else ""
    return escape("".join(f", {gpu}" for gpu in machine.gpus) + driver)


def _versions(record: Record) -> str:
    """Return one line of the versions that the children really ran, by package."""
    found: dict[str, set[str]] = {}
    for trial in record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            found.setdefault(package, set()).add(version)
    return ", ".join(f"{package} {' and '.join(sorted(versions))}" for package, versions in sorted(found.items()))
