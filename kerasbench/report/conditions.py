"""How a page was measured, which cases have no number, and what to doubt: heading, failures, warnings."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import Summary, concerns
from kerasbench.host import Machine
from kerasbench.host.load import LoadLimit
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import AT, Column
from kerasbench.protocol.messages import Code
from kerasbench.report.figures import listed, not_cold, three_digits
from kerasbench.report.sections import EMPTY, Cell, Section, Table, number, texts
from kerasbench.results.record import Record
from kerasbench.results.store import Merged
from kerasbench.text import blanked, count, printable, whole_gib

SHORT = 12  # characters of a commit
INSECURE = "⚠ over a network without encryption (--insecure): others could read it, and change it"


def heading(found: Findings) -> Section:
    """Return the machine, the run, the versions, and on which terms each column was measured."""
    rows = [texts(column.label, "; ".join(terms)) for column, terms in found.summary.terms.items()]
    table = Table(["column", "terms"], rows) if rows else None
    return Section("How this was measured", list(_run(found.summary)), table)


def _run(summary: Summary) -> Iterator[str]:
    record = summary.record
    yield f"{_machine(record.machine)}."
    if record.carried is not None:
        insecure = f", {INSECURE}" if record.carried.insecure else ""
        yield f"Measured on {blanked(record.carried.host)}, and kept on the machine that asked for it{insecure}."
    times = f"{len(record.resumed)} times, last " if len(record.resumed) > 1 else ""
    resumed = f", resumed {times}{record.resumed[-1]}" if record.resumed else ""
    rounds = count(record.rounds_completed, "complete round")
    yield f"Started {record.started}{resumed}, {rounds}, seed {record.config.seed}."
    if record.stopped_because:
        yield f"Stopped: {record.stopped_because}."
    if isinstance(record, Merged) and record.runs > 1:
        yield f"The rows come from {record.runs} runs, of which this is one."
    yield from not_cold(summary)
    yield from _versions(record)
    yield from _code(summary)
    if record.commit:
        yield f"Commit of the checkout in which it was started: {blanked(record.commit)[:SHORT]}."
    yield from (f"Before the run: {signal.reason}." for signal in record.noise)
    if record.load is not None and not isinstance(record, Merged):
        yield _load(record.load, record.config.effort.protocol.slice_ns)
    yield from _passed_through(summary)
    yield from _recurrent(summary)


def _load(limit: LoadLimit, slice_ns: int) -> str:
    """Return from when on other programs disturbed a CPU column, and how long the sums are that tell it."""
    cores = f"Other programs disturb a turn from {limit.quiet + limit.above:.2g} of a processor on"
    judged_s = limit.judged_s(slice_ns)
    if judged_s <= slice_ns / 1e9:
        return f"{cores}."
    readings = f"{limit.counters} processors are read one by one, to 10 ms each"
    why = readings if limit.counters > 1 else "idle time is counted in steps of 10 ms"
    return f"{cores}, judged over about {judged_s:.2g} s of turns, because {why}."


def _machine(machine: Machine) -> str:
    """Return ``12 cores (4 super, 8 performance), 16 GiB, NVIDIA H200 (driver 580.1), Linux 6.1 x86_64``."""
    kinds = ", ".join(f"{cores} {kind}" for kind, cores in machine.cores_by_kind.items())
    cores = count(machine.cores, "core") + (f" ({kinds})" if kinds else "")
    gpus = "".join(f", {gpu}" for gpu in machine.gpus) + (f" (driver {machine.driver})" if machine.driver else "")
    return f"{cores}, {whole_gib(machine.memory_bytes)}{gpus}, {machine.system} {machine.architecture}"


def measured(found: Findings) -> Section | None:
    """Return what each row is: its data, its batch, and the steps of an epoch."""
    rows = []
    for row in found.plain.rows:
        workload, batch = row.workload, number(row.workload.batch)
        if workload.full_batch:
            batch = Cell(f"{batch.text} (all)", batch.value)
        synthetic = workload.has_real_data and row.origin.config.data == "synthetic"
        data = f"{workload.data}, synthetic" if synthetic else workload.data
        rows.append([*texts(row.label, data), batch, number(workload.steps)])
    return Section("What was measured", table=Table(["scenario", "data", "batch", "steps"], rows)) if rows else None


def compilers(found: Findings) -> Section | None:
    """Return what the compiler of each case did in its last trial, and why torch's graphs ended early."""
    rows, lines = [], []
    for row, column, case in found.summary.cases:
        done = next((m.compiler for _, m in reversed(case.trials) if m.compiler), None)
        if done is None:
            continue
        counts = [EMPTY if one is None else number(one) for one in (done.traces, done.programs)]
        seconds = EMPTY if done.seconds is None else Cell(f"{three_digits(done.seconds)} s", done.seconds)
        broken, again = number(sum(done.breaks.values())), number(done.while_measured)
        rows.append([*texts(row.label, column.label), *counts, seconds, broken, again])
        lines += [f"{row.label} {column.label}: {why} ({times})" for why, times in done.breaks.items()]
        lines += [f"{row.label} {column.label}: not compiled: {done.eager}"] if done.eager else []
    headers = ["scenario", "column", "traces", "programs", "time", "graph breaks", "while measured"]
    notes = [
        "Programs: graphs of torch, or programs of XLA. On JAX a single operation that is called is a program, too.",
        "Traces: how often Python code was run to make a program. TensorFlow tells those of fit, evaluate and predict.",
        "While measured: how many of these were made during slices. It should be 0.",
    ]
    return Section("Compilers", table=Table(headers, rows), lines=lines, notes=notes) if rows else None


def _code(summary: Summary) -> Iterator[str]:
    """Say which code measured: each column has its own, mostly in all rows."""
    columns: dict[str, dict[str, None]] = {}
    rows: dict[str, set[str]] = {}
    for row, column, case in summary.cases:
        for code in sorted({trial.code or "not recorded" for trial, _ in case.trials}):
            columns.setdefault(code, {})[column.label] = None
            rows.setdefault(row.label, set()).add(code)
    if len(columns) < 2:
        yield from (f"Code of kerasbench: {code}." for code in columns)  # none where nothing was measured
    elif len({label for labels in columns.values() for label in labels}) == sum(map(len, columns.values())):
        labelled = "; ".join(f"{code} ({', '.join(labels)})" for code, labels in columns.items())
        yield f"Code of kerasbench: {labelled}."
    else:
        alike: dict[str, list[str]] = {}
        for label, codes in rows.items():
            alike.setdefault(" and ".join(sorted(codes)), []).append(label)
        labelled = "; ".join(f"{codes} ({', '.join(labels)})" for codes, labels in alike.items())
        yield f"Code of kerasbench, which differs between rows: {labelled}."


def _recurrent(summary: Summary) -> Iterator[str]:
    ways = [
        f"{row.label} {column.label}: {way}"
        for row, column, case in summary.cases
        for way in dict.fromkeys(way for _, measurement in case.trials for way in measurement.resolved.recurrent)
    ]
    if ways:
        yield f"How recurrent layers were computed: {'; '.join(ways)}."


def _passed_through(summary: Summary) -> Iterator[str]:
    """Yield which variables of the shell reached the trials, with the rows if not those of all."""
    rows: dict[str, list[str]] = {}
    for row in summary.rows:
        variables = ", ".join(f"{name}={value}" for name, value in row.origin.config.keep_env.items())
        rows.setdefault(variables, []).append(row.label)
    differ = len(rows) > 1
    rows.pop("", None)
    each = [f"{variables} ({', '.join(labels)})" if differ else variables for variables, labels in rows.items()]
    if each:
        yield f"Passed through from the shell (--keep-env): {'; '.join(each)}."


def _versions(record: Record) -> Iterator[str]:
    """Yield the versions that the children ran: if interpreters have labels, what is the same and what differs."""
    columns: dict[str, dict[str, list[Column]]] = {}  # by package and version
    for trial in record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            columns.setdefault(package, {}).setdefault(version, []).append(trial.column)
    labelled = any(trial.options.environment for trial in record.trials)
    alike = [package for package in sorted(columns) if not labelled or len(columns[package]) == 1]
    if alike:
        same = ", ".join(f"{package} {' and '.join(sorted(columns[package]))}" for package in alike)
        yield f"The same in all columns: {same}." if labelled else same
    if not labelled or not columns:
        return
    different = []
    for package in sorted(columns.keys() - set(alike)):
        versions = [f"{version} ({_labels(owners)})" for version, owners in sorted(columns[package].items())]
        different.append(f"{package} {listed(versions)}")
    if different:
        yield f"Different: {'; '.join(different)}."
    else:
        yield "All columns have the same versions. Only their labels say how they differ."


def _labels(columns: Iterable[Column]) -> str:
    """Return the labels of columns; the whole name of one whose interpreter has none."""
    labels = [f"{AT}{label}" if (label := column.options.environment) else column.label for column in columns]
    return ", ".join(dict.fromkeys(labels))


# Failures that the parent found out. The cause of an exception says everything already.
ENDED = frozenset({Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID})
LAST_LINES = 3
LAST_CHARACTERS = 240  # three lines of a terminal
LONGEST = 200  # characters of a warning: two lines of a terminal
FATAL, TRACEBACK = "Fatal Python error:", "Traceback (most recent call last)"
# The innermost frame that is neither Python's own nor an installed package's: the scenario's, or kerasbench's.
_FRAME = re.compile(
    r'^  File "(?!.*/(?:python3\.\d+|site-packages)/)(?P<file>.+)", line (?P<line>\d+) in', re.MULTILINE
)


def failures(found: Findings) -> Section | None:
    """Return every case without a number, with cause and remedy, and the last output of those that left some."""
    rows, lines = [], []
    for row, column, failure in found.summary.failures:
        rows.append(texts(row.label, column.label, failure.code, failure.cause, failure.remedy))
        explained = failure.code is not Code.CRASH and TRACEBACK in failure.detail
        if failure.code in ENDED and not explained and (output := last_output(failure.detail)):
            lines.append(f"{row.label} {column.label}: last output: {output}")
    table = Table(["scenario", "column", "code", "cause", "remedy"], rows)
    return Section("Failures", table=table, lines=lines) if rows else None


def last_output(detail: str) -> str:
    """Return the end of a child's output in one line: of a traceback the last one, of a fatal error what and where."""
    lines = [" ".join(line.split()) for line in printable(detail).splitlines() if line.strip()]
    if FATAL in detail:
        # What Python's faulthandler writes: the error, then the stack of each thread.
        dump = detail.rpartition(FATAL)[2]
        frame = _FRAME.search(dump.partition("Current thread")[2])
        place = f", in {frame['file'].rpartition('/')[2]}, line {frame['line']}" if frame else ""
        error = dump.split("\n")[0].strip()
        end = f"{FATAL} {error}{place}"
    elif TRACEBACK in detail:
        end = lines[-1]
    else:
        end = " / ".join(lines[-LAST_LINES:])
    return end if len(end) <= LAST_CHARACTERS else f"…{end[1 - LAST_CHARACTERS :]}"


def warnings(found: Findings) -> Section | None:
    """Return one line for each kind of warning: the cases that it is about, or their number, and what to do."""
    kinds: dict[WarningKind, list[str]] = {}
    columns = Counter[WarningKind]()
    for one in concerns(found.summary):
        named = ", ".join(column.label for column in one.columns)
        detail = f"({one.detail})" if one.detail else ""
        kinds.setdefault(one.what, []).append(" ".join(filter(None, [one.row, named, detail])))
        columns[one.what] += max(1, len(one.columns))
    lines = []
    for kind in sorted(kinds, key=list(WarningKind).index):
        cases = "; ".join(kinds[kind])
        template = f"{kind.meaning[0].upper()}{kind.meaning[1:]}: {{}}. Remedy: {kind.remedy}."
        if len(template.format(cases)) > LONGEST:
            cases = f"{count(columns[kind], 'case')} (see Warnings by case on the page)"
        lines.append(template.format(cases))
    return Section("Warnings", lines=lines) if lines else None


def warned_cases(found: Findings) -> Section | None:
    """Return a table of each warning with its cases."""
    rows = []
    for one in concerns(found.summary):
        columns = ", ".join(column.label for column in one.columns)
        meaning = f"{one.what.meaning}: {one.detail}" if one.detail else one.what.meaning
        rows.append(texts(one.row or "all", columns or "all", meaning, one.what.remedy))
    table = Table(["scenario", "column", "warning", "what to do"], rows)
    return Section("Warnings by case", table=table) if rows else None


def advice(signal: str) -> str:
    """Return what a signal of noise means and what to do, ``others: other programs used the processors; ...``."""
    if signal not in set(WarningKind):  # of a file that another version wrote
        return signal
    kind = WarningKind(signal)
    return f"{signal}: {kind.meaning}. Remedy: {kind.remedy}."
