"""A run's files on disk: the journal while it runs, the data file at its end, how both are read and checked.

And folders of them, which report foreign and damaged ones; several runs of one machine as one record.
"""

import dataclasses
import fcntl
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from kerasbench.errors import ResultsError
from kerasbench.files import PARTIAL, read_plain, replace
from kerasbench.host import FIT
from kerasbench.protocol.columns import DEFAULT, CaseKey
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Measurement
from kerasbench.results.run import (
    MAX_COLUMNS,
    MAX_ROUNDS,
    SCHEMA,
    Counted,
    Group,
    Origin,
    Run,
    ScenarioFacts,
    Trial,
)
from kerasbench.results.times import step_ns
from kerasbench.text import complain

T = TypeVar("T")
JOURNAL = ".jsonl"
SHOWN = 40  # characters of what cannot be
STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}(-\d{1,3})?", re.ASCII)  # of a run's files, by its start (_reserve)
LEFT_S = 3600.0  # a file is written in seconds, and a run that has reserved its name begins in as many
NOT_PLAIN = re.compile(r"[^\n -~]")
MAX_FILE_BYTES = 256 << 20  # thirty times a long run over all built-in scenarios


class Store:
    """A run's files: a journal while it runs, then ``<start>.json`` and the tables ``<start>.md``.

    The journal has a line for the run and a line for each trial, on disk, a block at once, before the next block
    begins. At the end the data file replaces it as a whole: whatever happens, at most the block in flight is lost.
    Meanwhile its process holds the journal: another one, of a container that shares the folder, may not go on with it.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self._held: BinaryIO | None = None
        self.data = journal.with_suffix(".json")
        self.tables = tables_file(self.data)

    @classmethod
    def create(cls, folder: Path, started: str) -> "Store":
        """Make the folder and reserve the names; raise ResultsError, before anything is measured, if that fails."""
        stamp = started.replace(":", "").replace("Z", "")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return cls(_reserve(folder, stamp))
        except OSError as error:
            raise ResultsError(
                f"{folder}: results cannot be written here: {error.strerror}; choose another with --results DIR"
            ) from None

    def begin(self, record: Run) -> None:
        """Write the journal as the run now stands, in place of what it held; raise ResultsError if the disk refuses."""
        header = dataclasses.replace(record, trials=[])
        replace(self.journal, b"".join(_line(one) for one in (header, *record.trials)))

    def hold(self) -> None:
        """Let no other process go on with the journal as it has begun, until ``release`` or the end of this one."""
        self.release()
        with suppress(OSError):  # a file system without locks
            self._held = self.journal.open("r+b")  # NFS locks nothing else
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        if self._held:
            self._held.close()

    def add(self, trials: Sequence[Trial]) -> None:
        """Append the trials of a block to the journal in one write; raise ResultsError if the disk refuses."""
        try:
            with self.journal.open("ab") as stream:
                stream.write(b"".join(map(_line, trials)))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise ResultsError(
                f"{self.journal}: cannot be written: {error.strerror}; all before this block is kept"
            ) from None

    def finish(self, record: Run) -> None:
        """Put the data file in the journal's place; raise ResultsError where the disk refuses, and keep the journal."""
        replace(self.data, _line(record))
        self.journal.unlink(missing_ok=True)


def is_held(journal: Path) -> bool:
    """Tell whether a process that lives writes a journal: the kernel frees its lock however it dies."""
    try:
        with journal.open("r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _line(of: object) -> bytes:
    return msgspec.json.encode(_without_empty(of)) + b"\n"


def _without_empty(value: Any) -> Any:
    """Return a dataclass as a dict, without its fields that are empty by default, and are.

    A default that says something is written, so that a file goes on to say it when the default has changed.
    """
    if isinstance(value, list):
        return value if value and isinstance(value[0], (*NUMBERS, str)) else [_without_empty(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_empty(each) for name, each in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    kind: Any = type(value)
    empty = _empty_by_default(kind)
    fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(kind))  # without what is cached
    return {name: _without_empty(each) for name, each in fields if name not in empty or each != empty[name]}


@cache
def _empty_by_default(kind: Any) -> dict[str, Any]:
    """Return the fields of a dataclass whose default is None, zero, false or without content."""
    defaults = {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(kind)
    }
    return {name: default for name, default in defaults.items() if not default}


def tables_file(data: Path) -> Path:
    return data.with_suffix(".md")


def result_files(place: Path) -> list[Path]:
    """Return the result files of a folder, oldest first; raise ResultsError if there is none.

    A run that has a journal is not over, or was resumed: the journal stands for it. An empty one is of a run that was
    killed before it had begun.
    """
    by_run = {file.stem: file for file in place.glob("*.json")}
    for journal in place.glob(f"*{JOURNAL}"):
        with suppress(FileNotFoundError):  # its run has ended since it was listed
            if journal.stat().st_size > 0:
                by_run[journal.stem] = journal
    if not by_run:
        raise ResultsError(f"{place}: no result files here (*.json); python -m kerasbench --results {place} makes one")
    return [by_run[stem] for stem in sorted(by_run)]


def clear_leftovers(folder: Path) -> None:
    """Remove what runs that were killed have left in a folder and nobody reads: half a file, an empty journal.

    It goes by the names that runs give, because the folder may hold files of others.
    """
    for file in filter(is_named_by_a_run, [*folder.glob(f"*{JOURNAL}"), *folder.glob(f"*{PARTIAL}")]):
        with suppress(OSError):
            seen = file.stat()
            is_unread = file.suffix == PARTIAL or not seen.st_size
            if is_unread and time.time() - seen.st_mtime > LEFT_S:
                file.unlink()


def is_named_by_a_run(file: Path) -> bool:
    """Tell whether a file has a name that a run gives: its start, and endings."""
    return STAMP.fullmatch(file.name.partition(".")[0]) is not None


def load(file: Path) -> Run:
    """Read a result file, or the journal of a run that is not over.

    Raises:
        ResultsError: it is not there, not a result file, or of another version of kerasbench's format.
    """
    try:
        content = read_plain(file, MAX_FILE_BYTES)
        if file.suffix == JOURNAL:
            record = _from_journal(content, file)
        else:
            _require_schema(content, file)
            record = msgspec.json.decode(content, type=Run)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{file}: not a kerasbench result file: {error}") from None

    problem = next(_problems(record), None)
    if problem:
        raise ResultsError(f"{file}: not written by kerasbench, or changed since: {problem}")
    return record


def read_header(line: bytes) -> Run:
    """Return a run without its trials, as another machine sends it; raise ResultsError for what cannot be one."""
    record = _decoded(line, Run)
    _refuse(record)
    return record


def read_trial(line: bytes, record: Run) -> Trial:
    """Return a trial of a run, as another machine sends it; raise ResultsError for what cannot be one."""
    trial = _decoded(line, Trial)
    _refuse(dataclasses.replace(record, trials=[trial]))
    return trial


def _decoded(line: bytes, kind: type[T]) -> T:
    try:
        if kind is Run:
            _require_schema(line, Path("it"))
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"not what kerasbench writes: {error}") from None


def _refuse(record: Run) -> None:
    if problem := next(_problems(record), ""):
        raise ResultsError(f"not what kerasbench writes: {problem}")


def as_json(records: Sequence[Run]) -> str:
    """Return runs as one JSON array, in which no character moves a terminal's cursor or turns its text around."""
    text = msgspec.json.format(msgspec.json.encode(list(records)), indent=1).decode()
    return NOT_PLAIN.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


class _Version(msgspec.Struct):
    """The one field that says how to read the others: nothing else is built of a file that is not a result."""

    schema: int


def _require_schema(content: bytes, file: Path) -> None:
    """Raise ResultsError for a file of another version of the format."""
    schema = msgspec.json.decode(content, type=_Version).schema
    if schema != SCHEMA:
        age = "a newer" if schema > SCHEMA else "an older"
        advice = "read it with that version, or measure again"
        raise ResultsError(f"{file}: written by {age} kerasbench (schema {schema}, not {SCHEMA}); {advice}")


def _from_journal(content: bytes, file: Path) -> Run:
    """Put the lines together; a last line that was cut off in the middle is of the block in flight, which is lost."""
    whole_lines = (line for line in io.BytesIO(content) if line.endswith(b"\n"))
    first = next(whole_lines, b"")
    _require_schema(first, file)
    record = msgspec.json.decode(first, type=Run)
    trials = [msgspec.json.decode(line, type=Trial) for line in whole_lines]
    return dataclasses.replace(record, trials=trials, rounds_completed=_complete_rounds(trials, record.cases))


def _complete_rounds(trials: list[Trial], cases: int) -> int:
    """Return how many rounds are complete: the last one may not be. ``cases`` were planned.

    It is complete where it has every case of the round before that has not failed. A row that is decided takes part in
    no further round: the last one then passes for incomplete, and only the number of rounds is one too small.
    """
    by_round: dict[int, set[CaseKey]] = {}
    failed: dict[CaseKey, int] = {}
    for trial in trials:
        if trial.round and not trial.crowded:
            by_round.setdefault(trial.round, set()).add(trial.case)
        if trial.ends_case:
            failed[trial.case] = trial.round
    last = max(by_round, default=0)
    if len(by_round.get(1, ())) < max(cases, 1):
        return 0
    expected = {case for case in by_round.get(last - 1, ()) if failed.get(case, last) >= last}
    return last if expected <= by_round[last] else last - 1


def _reserve(folder: Path, stamp: str) -> Path:
    """Create the first free file of this second's name, so that two runs never share one."""
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        file = folder / f"{stamp}{suffix}{JOURNAL}"
        try:
            if not any(map(os.path.lexists, map(file.with_suffix, (".json", ".md", ".svg")))):  # a link to nothing too
                file.touch(exist_ok=False)
                return file
        except FileExistsError:
            continue
    raise FileExistsError(17, "a thousand runs have begun in this second")


# A file may have been edited. What its types cannot say is checked here, and not by constraints on the types, because
# those are the child's too, which has no msgspec. Numbers in lists are checked like the field that has the list.
MAX_WHOLE = 10**18  # of ns (thirty years), samples or bytes: what a float still tells from its neighbours, by and large
MAX_REAL = 1e100  # of a loss or a rate: sums and products are still numbers
NUMBERS = (int, float)
ONE_OR_MORE = """
    ns calls_ns passes_ns times_ns counts first_step_ns again_ns total_ns epochs_ns predict_ns count batch samples steps
    steps_per_epoch train_samples peak_flops
"""
ZERO_OR_MORE = "wall_ns epoch_steps full_steps_per_epoch operations peak_rss_bytes peak_device_bytes memory_bytes"
LEAST = dict.fromkeys(ONE_OR_MORE.split(), 1) | dict.fromkeys(ZERO_OR_MORE.split(), 0) | {"width": 1e-9}


def _problems(record: Run) -> Iterator[str]:
    """Yield what cannot be in a record."""
    for index, trial in enumerate(record.trials, start=1):
        for problem in _problems_of_trial(trial):
            yield f"trial {index} ({trial.scenario}, {trial.backend}): {problem}"
    if field := _out_of_range([record.machine, record.scenarios, record.flops]):
        yield f"{field} is out of range"
    known = {scenario.description.name for scenario in record.scenarios}
    unknown = sorted({trial.scenario for trial in record.trials} - known)
    if unknown:
        yield f"trials of {', '.join(unknown[:3])}, which is not one of its scenarios"
    if (columns := len({trial.column for trial in record.trials})) > MAX_COLUMNS:
        yield f"{columns} configurations, and a run has {MAX_COLUMNS} at most"
    if not 0 < record.minimal_effect < 1:
        yield "minimal_effect is out of range"
    race, rounds = record.config.race, record.config.effort.max_rounds
    if race and not (1 <= rounds <= MAX_ROUNDS and 0 < race.margin < 1):
        yield "the rounds or the margin of its race are out of range"
    yield from _unfit_words(record)


def _unfit_words(record: Run) -> Iterator[str]:
    """Yield the texts that cannot be what they should."""
    if not _is_time(record.started):  # files are named after it
        yield f"its start, {record.started[:SHOWN]!r}, is not a time"
    times = (record.finished, *record.resumed, *(trial.ended for trial in record.trials))
    if wrong := [time for time in times if time and not _is_time(time)]:
        yield f"{wrong[0][:SHOWN]!r} is not a time"
    if record.machine.identifier and not FIT.fullmatch(record.machine.identifier):
        yield f"its machine cannot be called {record.machine.identifier[:SHOWN]!r}"


def _is_time(text: str) -> bool:
    """Tell whether it is a time as ``text.now`` gives it."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%dT%H:%M:%SZ") == text
    except ValueError:
        return False


def _problems_of_trial(trial: Trial) -> Iterator[str]:
    measured = trial.measurement
    if (measured is None) == (trial.failure is None):
        yield "a trial has either a measurement or a failure"
    if field := _out_of_range(trial):
        yield f"{field} is out of range"
    if measured is None:
        return
    if not all(_needed(measured)):
        yield "a list is empty that results are computed from"
    elif measured.usage.wall_ns < 1:
        yield "its steps took no time"
    elif measured.full_steps_per_epoch > measured.steps_per_epoch:
        yield "an epoch has more full steps than steps"
    elif not step_ns(measured) > 0:
        yield "an epoch takes no time"


def _out_of_range(value: Any, name: str = "") -> str:
    """Return the name of the first field that has a number out of range; empty if all are in range."""
    if isinstance(value, list):
        if None in value:
            value = [each for each in value if each is not None]
        if value and isinstance(value[0], NUMBERS):  # a trial has thousands of them, and a report a million
            value = (min(value), max(value))
        parts: Iterable[tuple[str, Any]] = [(name, each) for each in value]
    elif isinstance(value, dict):
        parts = [(name, each) for each in value.values()]
    else:
        parts = vars(value).items() if dataclasses.is_dataclass(value) else ()
    for of, part in parts:
        kind = type(part)
        if kind is str or part is None:
            continue
        most = MAX_WHOLE if kind is int else MAX_REAL
        if kind is int or kind is float:
            if not LEAST.get(of, -most) <= part <= most:
                return of
        elif kind is not bool and (field := _out_of_range(part, of)):
            return field
    return ""


def _needed(measured: Measurement) -> Iterator[Sized]:
    """Yield the lists that figures are computed from: each has an entry at least."""
    training, throughput, published = measured.training, measured.throughput, measured.published
    if measured.builds is not None:
        yield measured.builds
    elif training is None:
        yield measured.prediction
        for latency in measured.prediction:
            yield latency.slices
    else:
        yield training.slices
        if training.parts is not None:
            yield from (training.epochs, training.parts.arrays, training.parts.ready, training.parts.bare)
    if throughput is not None:
        yield throughput.passes_ns
    if published is not None:
        yield published.epochs_ns
        yield from published.history.values()


@dataclass(frozen=True)
class UnreadableFile:
    """A file of a folder that could not be read, and why."""

    file: Path
    why: str

    @property
    def is_damaged(self) -> bool:
        """Whether a run has given it its name; otherwise it is not kerasbench's."""
        return is_named_by_a_run(self.file)


Tell = Callable[[UnreadableFile], None]


def refuse_damaged(unread: UnreadableFile) -> None:
    """Say that a foreign file is passed over; raise ResultsError for a damaged one, which would be missed."""
    if unread.is_damaged:
        raise ResultsError(f"{unread.why}; move it out of {unread.file.parent} to go on without it")
    say_passed_over(unread)


def say_passed_over(unread: UnreadableFile) -> None:
    complain(f"{unread.why}; skipped")


def records(place: Path, tell: Tell = refuse_damaged, newest_first: bool = False) -> Iterator[tuple[Path, Run]]:
    """Read the result files of a folder one by one, oldest first, or the one file that is named.

    ``tell`` gets what cannot be read in a folder. Where nothing can be read, ResultsError is raised.
    """
    if not place.is_dir():
        yield place, load(place)
        return
    any_read = False
    files = result_files(place)
    for listed in reversed(files) if newest_first else files:
        file = listed if listed.exists() else listed.with_suffix(".json")  # its run has ended meanwhile
        try:
            record = load(file)
        except ResultsError as error:
            tell(UnreadableFile(file, str(error)))
        else:
            any_read = True
            yield file, record
    if not any_read:
        raise ResultsError(
            f"{place}: no result files here that can be read; python -m kerasbench --results {place} makes one"
        )


def distinct(records: Iterable[Run]) -> list[Run]:
    """Return each run once: of its copies, and of what was superseded when it was resumed, what went furthest."""
    furthest: dict[object, Run] = {}
    for record in records:
        run = (record.machine.identity, record.started, *record.config.versus)
        furthest[run] = max(furthest.get(run, record), record, key=lambda one: (len(one.resumed), len(one.trials)))
    return list(furthest.values())


Rank = tuple[bool, bool, bool, str]


def rank(record: Run, group: Group) -> Rank:
    """Return the rank of a run among those that measured a group: the group is taken from the one with the highest.

    What counts is, in this order: the group's own protocol, a run of its own (not an explanation, a comparison of
    versions, a race or a soak), default columns, and the date.
    """
    config = record.config
    has_another_aim = config.explain or config.versus or config.race or config.soak
    agenda = config.effort.protocol.agenda
    fits = agenda.sized if group.sized else agenda.usual
    has_defaults = any(trial.options.unsized == DEFAULT for trial in record.trials if trial.group == group)
    return (fits, not has_another_aim, has_defaults, record.started)


@dataclass
class Merged(Run):
    """Groups of several runs as one record. Its own fields are those of the newest of them."""

    origins: dict[Group, Origin] = field(default_factory=dict)
    runs: int = 1  # that they come from

    def origin(self, group: Group) -> Origin:
        return self.origins[group]


def merge(records: Sequence[Run]) -> Run:
    """Return one record of one machine's runs, of which there is one at least (see ``merge_by_machine``)."""
    machine = _Machine(records[0])
    for record in records:
        machine.add(record)
    return machine.merged()


def merge_by_machine(records: Iterable[Run]) -> list[Run]:
    """Return one record for each machine: each group is that of the run with the highest ``rank``.

    A group is taken whole from one run, because its cases were paired there round by round. A run that nothing is taken
    from is not held in memory.
    """
    machines: dict[object, _Machine] = {}
    for record in records:
        machines.setdefault(record.machine.identity, _Machine(record)).add(record)
    return [machine.merged() for machine in machines.values()]


Share = tuple[Run, set[Group]]  # a run, and what is taken from it


@dataclass
class _Machine:
    """The runs of one machine that something is taken from."""

    newest: Run
    best: dict[Group, tuple[Rank, Run]] = field(default_factory=dict)

    def add(self, record: Run) -> None:
        if record.started > self.newest.started:
            self.newest = record
        for group in dict.fromkeys(trial.group for trial in record.trials):
            own = rank(record, group)
            if group not in self.best or own > self.best[group][0]:
                self.best[group] = own, record

    def merged(self) -> Run:
        taken: dict[int, Share] = {}
        for group, (_, record) in self.best.items():
            taken.setdefault(id(record), (record, set()))[1].add(group)
        shares = sorted(taken.values(), key=lambda share: share[0].started, reverse=True) or [(self.newest, set())]
        newest = shares[0][0]
        return Merged(
            **{each.name: getattr(newest, each.name) for each in dataclasses.fields(Run)}
            | {
                "scenarios": _scenarios(shares),
                "trials": [trial for record, groups in shares for trial in record.trials if trial.group in groups],
                "flops": _flops(shares),
                "minimal_effect": max(record.minimal_effect for record, _ in shares),
            },
            origins={group: record.origin(group) for record, groups in shares for group in groups},
            runs=len(shares),
        )


def _flops(shares: Sequence[Share]) -> list[Counted]:
    """Return the operations of each workload that something is taken of, as the newest run counted them."""
    flops: dict[tuple[str, str], Counted] = {}
    for record, groups in shares:
        workloads = {(group.scenario, group.workload) for group in groups}
        for counted in record.flops:
            if (counted.scenario, counted.workload) in workloads:
                flops.setdefault((counted.scenario, counted.workload), counted)
    return list(flops.values())


def _scenarios(shares: Sequence[Share]) -> list[ScenarioFacts]:
    """Return the scenarios that something is taken of, as the newest run has them, each workload as its own run has it.

    A run of a saved model describes the one size that it measured, and a scenario's file may have lost a workload
    since.
    """
    newest: dict[str, ScenarioFacts] = {}
    workloads: dict[str, dict[str, WorkloadDescription]] = {}
    for record, groups in shares:
        taken = {(group.scenario, group.workload) for group in groups}
        for scenario in record.scenarios:
            name = scenario.description.name
            own = {each.name: each for each in scenario.description.workloads if (name, each.name) in taken}
            if own:
                newest.setdefault(name, scenario)
                workloads[name] = own | workloads.get(name, {})
    scenarios = []
    for name, scenario in sorted(newest.items()):
        # Workloads that the newest run describes come first, in its order.
        taken_of = workloads[name]
        first = [workload.name for workload in scenario.description.workloads if workload.name in taken_of]
        ordered = [taken_of[workload] for workload in dict.fromkeys([*first, *taken_of])]
        description = dataclasses.replace(scenario.description, workloads=ordered)
        scenarios.append(dataclasses.replace(scenario, description=description))
    return scenarios
