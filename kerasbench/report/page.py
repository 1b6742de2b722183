"""The tables of a run, as markdown."""

from kerasbench.analysis.anatomy import anatomies
from kerasbench.analysis.summary import Summary
from kerasbench.machine import Machine
from kerasbench.report import explanation, sweep
from kerasbench.report.cells import column_name, count
from kerasbench.report.details import (
    GIB,
    _versions,
    cold_start,
    devices,
    disturbances,
    epochs,
    full_epochs,
    learning,
    phases,
    predicted,
    prediction,
    repaid,
)
from kerasbench.report.failures import failures
from kerasbench.report.keras_cost import what_keras_costs
from kerasbench.report.markdown import escape
from kerasbench.report.notes import let_in
from kerasbench.report.published import beside_published
from kerasbench.report.training import training, verdicts
from kerasbench.results.record import Record


def document(summary: Summary) -> str:
    """Return the whole page: what was measured on, every table, what failed."""
    plain = summary.plain
    return _page(
        heading(summary),
        training(plain) if plain.rows or not summary.rows else "",
        explanation.document(anatomies(summary)),
        verdicts(plain),
        what_keras_costs(plain),
        devices(plain),
        sweep.document(summary),
        full_epochs(plain),
        predicted(plain),
        beside_published(plain),
        epochs(plain),
        prediction(plain),
        cold_start(plain),
        repaid(plain),
        learning(plain),
        phases(summary),
        disturbances(summary),
        failures(summary),
    )


def brief(summary: Summary) -> str:
    """Return what a terminal shows: the headline, what was published, what failed."""
    plain = summary.plain
    return _page(
        heading(summary),
        training(plain) if plain.rows or not summary.rows else "",
        sweep.brief(summary),
        what_keras_costs(plain),
        full_epochs(plain),
        beside_published(plain),
        failures(summary),
    )


def _page(*sections: str) -> str:
    return "\n\n".join(section for section in sections if section) + "\n"


def heading(summary: Summary) -> str:
    """Return the machine, the run, the versions, and on which terms each column was measured."""
    record = summary.record
    machine = record.machine
    system = f"{escape(machine.system)} {escape(machine.architecture)}"
    rounds = count(record.rounds_completed, "complete round")
    stopped = f"; stopped because {escape(record.stopped_because)}" if record.stopped_because else ""
    lines = [
        f"# kerasbench on {escape(machine.chip)}",
        f"{machine.cores} cores{_kinds(machine)}, {machine.memory_bytes / GIB:.0f} GiB{_gpus(machine)}, {system}. "
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
    kinds = ", ".join(f"{count} {escape(kind)}" for kind, count in machine.cores_by_kind.items())
    return f" ({kinds})" if kinds else ""


def _gpus(machine: Machine) -> str:
    driver = f" (driver {machine.driver})" if machine.driver else ""
    return escape("".join(f", {gpu}" for gpu in machine.gpus) + driver)
