"""How a page was measured: the machine, the run, the versions, and the terms of each column.

The cells that have no number: why, what to do, and what their children said last.

The warnings of a page: what each means, which cells it is about, and what to do.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from kerasbench.analysis.cases import Row
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import Concern, Summary, concerns
from kerasbench.host import Machine
from kerasbench.host.noise import WORDS, Warned
from kerasbench.protocol.columns import AT, Column
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report.figures import column_name, listed
from kerasbench.report.sections import Cell, Section, Table, number, texts
from kerasbench.results.record import Record
from kerasbench.text import count, printable, whole_gib


def title(found: Findings) -> str:
    """Return what the page is called."""
    return f"kerasbench on {found.record.machine.chip}"


def heading(found: Findings) -> Section:
    """Return the machine, the run, the versions, and on which terms each column was measured."""
    rows = [texts(column_name(column), "; ".join(terms)) for column, terms in found.summary.terms.items()]
    table = Table(["column", "terms"], rows) if rows else None
    return Section("How this was measured", list(_run(found.summary)), table)


def _run(summary: Summary) -> Iterator[str]:
    record = summary.record
    machine = record.machine
    rounds = count(record.rounds_completed, "complete round")
    yield (
        f"{machine.cores} cores{_kinds(machine)}, {whole_gib(machine.memory_bytes)}{_gpus(machine)}, {machine.system} "
        f"{machine.architecture}."
    )
    yield f"Started {record.started}{_resumed(record.resumed)}, {rounds}, seed {record.config.seed}."
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


def measured(found: Findings) -> Section | None:
    """Return what each row is: its data, its batch, and the steps of an epoch."""
    rows = [[Cell(row.label), Cell(_data(row)), _batch(row), number(row.workload.steps)] for row in found.plain.rows]
    return Section("What was measured", table=Table(["scenario", "data", "batch", "steps"], rows)) if rows else None


def _code(summary: Summary) -> Iterator[str]:
    """Say which code of kerasbench measured, and which rows where that differs: within a row all columns share it."""
    rows: dict[str, list[str]] = {}
    for row in summary.rows:
        codes = {trial.code or "not recorded" for cell in row.cases.values() for trial, _ in cell.trials}
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
        for column, cell in row.cases.items()
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
        yield f"Passed through from the shell (--keep-env): {'; '.join(said)}."


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
        dict.fromkeys(f"{AT}{label}" if (label := one.options.environment) else column_name(one) for one in columns)
    )


def _data(row: Row) -> str:
    workload = row.workload
    return f"{workload.data}, synthetic" if workload.has_real_data and row.origin.data == "synthetic" else workload.data


def _batch(row: Row) -> Cell:
    samples = number(row.workload.batch)
    return Cell(f"{samples.text} (all)", samples.value) if row.workload.full_batch else samples


# Those that a parent has found out; an exception has said everything in the cause.
ENDED = frozenset({Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID})
LAST_LINES = 3
LAST_CHARACTERS = 240  # three lines of a terminal
FATAL, TRACEBACK = "Fatal Python error:", "Traceback (most recent call last)"
# The innermost frame that is neither Python's own nor an installed package's: the scenario's, or kerasbench's.
_FRAME = re.compile(
    r'^  File "(?!.*/(?:python3\.\d+|site-packages)/)(?P<file>.+)", line (?P<line>\d+) in', re.MULTILINE
)


def failures(found: Findings) -> Section | None:
    """Return every case without a number, with cause and remedy, and the last output of those that left some."""
    rows = [
        texts(row.label, column_name(column), failure.code, failure.cause, failure.remedy)
        for row, column, failure in found.summary.failures
    ]
    if not rows:
        return None
    table = Table(["scenario", "column", "code", "cause", "remedy"], rows)
    return Section("Failures", table=table, lines=list(_last_words(found.summary)))


def _last_words(summary: Summary) -> Iterator[str]:
    for row, column, failure in summary.failures:
        words = "" if _is_told(failure) else last_words(failure.detail)
        if words:
            yield f"{row.label} {column_name(column)}: last output: {words}"


def _is_told(failure: Failure) -> bool:
    return failure.code not in ENDED or (failure.code is not Code.CRASH and TRACEBACK in failure.detail)


def last_words(detail: str) -> str:
    """Return the end of what a child said in one line: of a traceback the last one, of a fatal error what and where."""
    lines = [" ".join(line.split()) for line in printable(detail).splitlines() if line.strip()]
    if FATAL in detail:
        return _bounded(_fatal(detail))
    if TRACEBACK in detail:
        return _bounded(lines[-1])
    return _bounded(" / ".join(lines[-LAST_LINES:]))


def _fatal(detail: str) -> str:
    """Return the first line of what Python's faulthandler writes, with the place in the current thread."""
    _, _, dump = detail.rpartition(FATAL)
    _, _, current = dump.partition("Current thread")
    found = _FRAME.search(current)
    place = f", in {found['file'].rpartition('/')[2]}, line {found['line']}" if found else ""
    what, _, _ = dump.partition("\n")
    return f"{FATAL} {what.strip()}{place}"


def _bounded(text: str) -> str:
    return text if len(text) <= LAST_CHARACTERS else f"…{text[1 - LAST_CHARACTERS :]}"


LONGEST = 200  # characters of a line: two of a terminal


def warnings(found: Findings) -> Section | None:
    """Return one line for each kind of warning: the cases that it is about, or their number, and what to do."""
    lines = list(_lines(concerns(found.summary)))
    return Section("Warnings", lines=lines) if lines else None


def warned_cases(found: Findings) -> Section | None:
    """Return a table of each warning with its cases."""
    rows = [_row(one) for one in concerns(found.summary)]
    if not rows:
        return None
    table = Table(["scenario", "column", "warning", "what to do"], rows)
    return Section("Warnings by case", table=table)


def advice(signal: str) -> str:
    """Return what a signal of noise means and what to do, ``others: other programs used the processors; ...``."""
    if signal not in set(Warned):  # of a file that another version wrote
        return signal
    words = WORDS[Warned(signal)]
    return f"{signal}: {words.meaning}. Remedy: {words.remedy}."


def _lines(found: Sequence[Concern]) -> Iterator[str]:
    for what, alike in groupby(sorted(found, key=lambda one: list(Warned).index(one.what)), lambda one: one.what):
        cells = [_cells(one) for one in alike]
        words = WORDS[what]
        begin, end = f"{words.meaning[0].upper()}{words.meaning[1:]}: ", f". Remedy: {words.remedy}."
        named = "; ".join(cells)
        fits = len(begin) + len(named) + len(end) <= LONGEST
        where = named if fits else f"{count(len(cells), 'row')} (the page lists them by case)"
        yield f"{begin}{where}{end}"


def _cells(one: Concern) -> str:
    """Return ``mnist_dense jax cpu, torch cpu``, with what is said of them."""
    columns = ", ".join(column_name(column) for column in one.columns)
    return " ".join(filter(None, [one.row, columns, f"({one.detail})" if one.detail else ""]))


def _row(one: Concern) -> list[Cell]:
    words = WORDS[one.what]
    columns = ", ".join(column_name(column) for column in one.columns)
    meaning = f"{words.meaning}: {one.detail}" if one.detail else words.meaning
    return texts(one.row or "all", columns or "all", meaning, words.remedy)
