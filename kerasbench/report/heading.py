"""How a page was measured: the machine, the run, the versions, and the terms of each column."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kerasbench.analysis.cells import Row
from kerasbench.analysis.summary import Summary
from kerasbench.exchange.options import AT, environment_of
from kerasbench.machine import Machine
from kerasbench.report.cells import column_name
from kerasbench.report.naming import listed
from kerasbench.report.sections import Cell, Section, Table, number, texts
from kerasbench.results.keys import Column
from kerasbench.results.record import Record
from kerasbench.text import count, whole_gib


def title(summary: Summary) -> str:
    """Return what the page is called."""
    return f"kerasbench on {summary.record.machine.chip}"


def heading(summary: Summary) -> Section:
    """Return the machine, the run, the versions, and on which terms each column was measured."""
    table = Table(
        ["column", "terms"], [texts(column_name(one), "; ".join(terms)) for one, terms in summary.terms.items()]
    )
    return Section("How this was measured", list(_run(summary)), table if table.rows else None)


def _run(summary: Summary) -> Iterator[str]:
    record = summary.record
    machine = record.machine
    rounds = count(record.rounds_completed, "complete round")
    yield (
        f"{machine.cores} cores{_kinds(machine)}, {whole_gib(machine.memory_bytes)}{_gpus(machine)}, {machine.system} "
        f"{machine.architecture}."
    )
    yield f"Begun {record.started}{_resumed(record.resumed)}, {rounds}, seed {record.asked.seed}."
    if record.stopped_because:
        yield f"Stopped because {record.stopped_because}."
    if record.runs > 1:
        yield f"The rows come from {record.runs} runs, of which this is one."
    yield from _versions(record)
    yield from _code(summary)
    yield from (f"Before the run: {signal.reason}." for signal in record.noise)
    yield from _let_in(summary)
    yield from _recurrent(summary)


def _resumed(times: Sequence[str]) -> str:
    match len(times):
        case 0:
            return ""
        case 1:
            return f", resumed {times[0]}"
        case often:
            return f", resumed {often} times, last {times[-1]}"


def measured(summary: Summary) -> Section | None:
    """Return what each row is: its data, its batch, and the steps of an epoch."""
    rows = [[Cell(row.label), Cell(_data(row)), _batch(row), number(row.regime.steps)] for row in summary.plain.rows]
    return Section("What was measured", table=Table(["scenario", "data", "batch", "steps"], rows)) if rows else None


def _code(summary: Summary) -> Iterator[str]:
    """Say which code of kerasbench measured, and which rows where that differs: within a row all columns share it."""
    rows: dict[str, list[str]] = {}
    for row in summary.rows:
        codes = {trial.code or "not recorded" for cell in row.cells.values() for trial, _ in cell.trials}
        rows.setdefault(" and ".join(sorted(codes)), []).append(row.label)
    rows.pop("", None)  # nothing was measured
    if len(rows) == 1:
        yield f"Code of kerasbench that measured: {next(iter(rows))}."
    elif rows:
        said = "; ".join(f"{code} ({', '.join(labels)})" for code, labels in rows.items())
        yield f"Different code of kerasbench measured these rows: {said}."


def _recurrent(summary: Summary) -> Iterator[str]:
    """Say by what the recurrent layers of each cell were computed, where there are any."""
    said = [
        f"{row.label} {column_name(column)}: {way}"
        for row in summary.rows
        for column, cell in row.cells.items()
        for way in dict.fromkeys(way for _, measurement in cell.trials for way in measurement.resolved.recurrent)
    ]
    if said:
        yield f"How recurrent layers were computed: {'; '.join(said)}."


def _let_in(summary: Summary) -> Iterator[str]:
    """Say which variables of the shell reached the trials, and of which rows where not of all."""
    rows: dict[str, list[str]] = {}
    for row in summary.rows:
        rows.setdefault(", ".join(f"{name}={value}" for name, value in row.origin.keep_env.items()), []).append(
            row.label
        )
    said = [f"{one} ({', '.join(labels)})" if len(rows) > 1 else one for one, labels in rows.items() if one]
    if said:
        yield f"Let in from the shell (--keep-env): {'; '.join(said)}."


def _kinds(machine: Machine) -> str:
    kinds = ", ".join(f"{cores} {kind}" for kind, cores in machine.cores_by_kind.items())
    return f" ({kinds})" if kinds else ""


def _gpus(machine: Machine) -> str:
    driver = f" (driver {machine.driver})" if machine.driver else ""
    return "".join(f", {gpu}" for gpu in machine.gpus) + driver


def _versions(record: Record) -> Iterator[str]:
    """Yield the versions that the children really ran, by package, in one line.

    Where interpreters have labels: what is the same in all columns in one line, and what differs in another.
    """
    found: dict[str, dict[str, dict[Column, None]]] = {}
    for trial in record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            found.setdefault(package, {}).setdefault(version, {})[trial.column] = None
    labelled = any(trial.options.environment for trial in record.trials)
    alike = {package: versions for package, versions in found.items() if not labelled or len(versions) == 1}
    if same := ", ".join(f"{package} {' and '.join(sorted(alike[package]))}" for package in sorted(alike)):
        yield f"The same in all columns: {same}." if labelled else same
    if labelled and found:
        yield _differing({package: found[package] for package in sorted(found.keys() - alike.keys())})


def _differing(found: Mapping[str, Mapping[str, Iterable[Column]]]) -> str:
    """Return which columns had which versions of these packages; that none differs is worth saying too."""
    if not found:
        return "None of these versions differs between the columns: what does, their labels alone tell."
    parts = []
    for package, versions in found.items():
        whose = [f"{version} ({_whose(columns)})" for version, columns in sorted(versions.items())]
        parts.append(f"{package} {listed(whose)}")
    return f"Different: {'; '.join(parts)}."


def _whose(columns: Iterable[Column]) -> str:
    """Return the labels of columns; the whole name of one whose interpreter has none."""
    return ", ".join(
        dict.fromkeys(f"{AT}{label}" if (label := environment_of(one[2])) else column_name(one) for one in columns)
    )


def _data(row: Row) -> str:
    regime = row.regime
    return f"{regime.data}, synthetic" if regime.has_real_data and row.origin.data == "synthetic" else regime.data


def _batch(row: Row) -> Cell:
    samples = number(row.regime.batch)
    return Cell(f"{samples.text} (all)", samples.value) if row.regime.full_batch else samples
