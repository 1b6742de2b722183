"""The result file: everything that was measured, raw, in one JSON file for each run. Tables are derived from it."""

import dataclasses
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from kerasbench import __version__
from kerasbench.devices import Device
from kerasbench.errors import ResultsError
from kerasbench.machine import Machine
from kerasbench.noise import Signal, Surroundings
from kerasbench.options import DEFAULT as DEFAULT_OPTIONS
from kerasbench.options import Options
from kerasbench.plan import Asked, Counted
from kerasbench.request import DataKind, ProtocolKind
from kerasbench.upgrade import SCHEMA, Incomplete, upgrade
from kerasbench.wire import Description, Failure, Measurement, Phase

# Why a run stopped, in place of a reason to stop.
INTERRUPTED, UNWRITTEN = "interrupted", "results could not be written"
JOURNAL, PARTIAL = ".jsonl", ".partial"
STAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{6}(-\d{1,2})?"
)  # how the files of a run are called: by its start (see _reserve)
LEFT_S = 3600.0  # a file is written in seconds, and a run that has reserved its name begins in as many
MAX_FILE_BYTES = 256 << 20  # thirty times a long run over all built-in scenarios
MAX_OLD_FILE_BYTES = 16 << 20  # twenty times the largest file of an earlier schema; what those hold is decoded untyped


@dataclass(frozen=True)
class ScenarioRecord:
    """What a scenario said of itself, the hash of the file that said it, and those of its twins by their backends."""

    file_hash: str
    description: Description
    twins: dict[str, str] = field(default_factory=dict)

    def source(self, backend: str, native: bool) -> tuple[str, str]:
        """Return what tells a changed cell from an unchanged one: the scenario's hash, and the twin's where it ran."""
        return self.file_hash, self.twins.get(backend, "") if native else ""


class Group(NamedTuple):
    """What a run measured together, and what is taken from it as a whole: a regime, as published or at other sizes."""

    scenario: str
    regime: str
    sized: bool


@dataclass(frozen=True)
class Origin:
    """The run that a group was measured in: by which protocol, on which data, in how many complete rounds.

    ``keep_env`` are the variables of the shell that it let in.
    """

    protocol: ProtocolKind
    data: DataKind
    rounds: int
    keep_env: dict[str, str] = field(default_factory=dict)


class Unshown(NamedTuple):
    """Columns that a run tried and that a page leaves out, because another run has taken its place there."""

    started: str
    newer: bool
    columns: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class TrialRecord:
    """One trial of one cell: its measurement or its failure. A cell that could not be tried has round 0.

    ``noise`` says what disturbed it, by what ``surroundings`` and its own blocks show. A round has two trials of a cell
    where the first was invalid.
    """

    round: int
    scenario: str
    regime: str
    backend: str
    device: Device
    wall_ns: int
    phases: list[Phase]
    measurement: Measurement | None = None
    failure: Failure | None = None
    options: Options = DEFAULT_OPTIONS
    surroundings: Surroundings | None = None
    noise: list[Signal] = field(default_factory=list)

    @property
    def cell(self) -> tuple[str, str, str, str, str]:
        return (self.scenario, self.regime, self.backend, self.device.label, self.options.label)

    @property
    def column(self) -> tuple[str, str, str]:
        """Backend, device label, and the label of the options but for the size, which makes a row of its own."""
        return (self.backend, self.device.label, self.options.terms)

    @property
    def group(self) -> Group:
        return Group(self.scenario, self.regime, self.options.size is not None)

    @property
    def disturbed(self) -> bool:
        """Whether something disturbed it so much that it must be repeated."""
        return any(signal.invalidates for signal in self.noise)


@dataclass
class Record:
    """A run: what was asked, the machine, and every trial in the order in which it ran.

    ``resumed`` says when it went on after an interruption, each time; ``cells`` how many cells were planned, 0 where
    that is not known.
    """

    asked: Asked
    machine: Machine
    started: str
    minimal_effect: float
    scenarios: list[ScenarioRecord]
    noise: list[Signal] = field(default_factory=list)
    trials: list[TrialRecord] = field(default_factory=list)
    rounds_completed: int = 0
    stopped_because: str = ""
    parent_cpu_ns: int = 0
    finished: str = ""
    kerasbench: str = __version__
    schema: int = SCHEMA
    flops: list[Counted] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    cells: int = 0

    @property
    def unshown(self) -> "dict[Group, list[Unshown]]":
        """What other runs tried of a group and this record leaves out; nothing, unless it was merged of several."""
        return {}

    @property
    def unfinished(self) -> bool:
        """Whether the run was ended before it had decided that there was enough."""
        return self.stopped_because in ("", INTERRUPTED, UNWRITTEN)

    def origin(self, group: Group) -> Origin:
        """Return what is to be said of the run that a group comes from: this one, unless it was merged of several."""
        asked = self.asked
        return Origin(asked.effort.protocol.kind, asked.data, self.rounds_completed, asked.keep_env)


def now() -> str:
    """Return the time as it stands in files: UTC, to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """A run's files: a journal while it runs, then ``<start>.json`` and the tables ``<start>.md``.

    The journal has a line for the run and a line for each trial, on disk before the next trial begins. At the end the
    data file replaces it as a whole: whatever happens, at most the trial in flight is lost.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.data = journal.with_suffix(".json")
        self.tables = tables_file(self.data)

    @classmethod
    def create(cls, folder: Path, started: str) -> "Store":
        """Make the folder and reserve the names.

        Raises:
            ResultsError: the folder cannot be made or written to. Nothing has been measured yet.
        """
        stamp = started.replace(":", "").replace("Z", "")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return cls(_reserve(folder, stamp))
        except OSError as error:
            raise ResultsError(
                f"{folder}: results cannot be written here: {error.strerror}; choose another with --results DIR"
            ) from None

    def begin(self, record: Record) -> None:
        """Write the journal as the run now stands, in place of what it held; raise ResultsError if the disk refuses."""
        header = dataclasses.replace(record, trials=[])
        replace(self.journal, b"".join(msgspec.json.encode(line) + b"\n" for line in (header, *record.trials)))

    def add(self, trial: TrialRecord) -> None:
        """Append a trial to the journal and sync; raise ResultsError where the disk refuses."""
        try:
            with self.journal.open("ab") as stream:
                stream.write(msgspec.json.encode(trial) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise ResultsError(
                f"{self.journal}: cannot be written: {error.strerror}; it ends before this trial"
            ) from None

    def finish(self, record: Record) -> None:
        """Put the data file in the journal's place; raise ResultsError where the disk refuses, and keep the journal."""
        replace(self.data, msgspec.json.encode(record) + b"\n")
        self.journal.unlink(missing_ok=True)

    def save_tables(self, text: str) -> None:
        """Replace the tables; raise ResultsError where the disk refuses."""
        replace(self.tables, text.encode())


def tables_file(data: Path) -> Path:
    """Return where the tables of a result file lie."""
    return data.with_suffix(".md")


def result_files(place: Path) -> list[Path]:
    """Return the result files of a folder, oldest first, or the one file itself.

    A run that has a journal is not over, or was resumed: the journal stands for it. An empty one is of a run that was
    killed before it had begun.

    Raises:
        ResultsError: there are none.
    """
    if not place.is_dir():
        return [place]
    found = [
        *sorted(place.glob("*.json")),
        *(file for file in sorted(place.glob(f"*{JOURNAL}")) if _has_begun(file)),
    ]
    by_run = {file.stem: file for file in found}
    if not by_run:
        raise ResultsError(f"{place}: no result files here (*.json); python -m kerasbench --results {place} makes one")
    return [by_run[stem] for stem in sorted(by_run)]


def sweep(folder: Path) -> None:
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


def _has_begun(journal: Path) -> bool:
    with suppress(FileNotFoundError):  # its run has ended since it was listed
        return journal.stat().st_size > 0
    return False


def load(file: Path) -> Record:
    """Read a result file, or the journal of a run that is not over.

    Raises:
        ResultsError: it is not there, not a result file, or from a newer kerasbench.
    """
    try:
        _require_size(file)
        with file.open("rb") as stream:
            record = _from_journal(stream, file) if file.suffix == JOURNAL else _from_json(stream.read(), file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Incomplete) as error:
        raise ResultsError(f"{file}: not a kerasbench result file: {error}") from None
    from kerasbench.validity import complaint  # which reads metrics off trials, and so needs this module

    if found := complaint(record):
        raise ResultsError(f"{file}: not what kerasbench has written: {found}")
    return record


def as_json(records: Sequence[Record]) -> str:
    """Return runs as one JSON array, whatever they were stored in, in today's schema."""
    return msgspec.json.format(msgspec.json.encode(list(records)), indent=1).decode()


class _Version(msgspec.Struct):
    """The one field that says how to read the others. They are passed over: of what is no result, nothing is built."""

    schema: int


def _from_json(content: bytes, file: Path) -> Record:
    schema = msgspec.json.decode(content, type=_Version).schema
    if schema == SCHEMA:
        return msgspec.json.decode(content, type=Record)
    if schema > SCHEMA:
        raise ResultsError(f"{file}: written by a newer kerasbench (schema {schema}); read it with that one")
    _require_size(file, MAX_OLD_FILE_BYTES)
    return msgspec.convert(upgrade(msgspec.json.decode(content)), type=Record)


def _require_size(file: Path, limit: int = MAX_FILE_BYTES) -> None:
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ResultsError(f"{file}: not a file")
    if found.st_size > limit:
        raise ResultsError(f"{file}: larger than {limit:,} bytes, so not a kerasbench result file")


def _from_journal(stream: BinaryIO, file: Path) -> Record:
    """Put the lines together; a last line that was cut off in the middle is the trial in flight, which is lost."""
    record = _from_json(_line(stream), file)
    trials = [msgspec.json.decode(line, type=TrialRecord) for line in iter(partial(_line, stream), b"")]
    return dataclasses.replace(record, trials=trials, rounds_completed=_complete_rounds(trials, record.cells))


def _line(stream: BinaryIO) -> bytes:
    """Return the next whole line, nothing after the last."""
    line = stream.readline()
    return line if line.endswith(b"\n") else b""


def _complete_rounds(trials: list[TrialRecord], cells: int) -> int:
    """Return how many rounds have a trial of every cell that did not fail before; ``cells`` were planned."""
    by_round: dict[int, set[tuple[str, ...]]] = {}
    failed: dict[tuple[str, ...], int] = {}
    for trial in trials:
        by_round.setdefault(trial.round, set()).add(trial.cell)
        if trial.failure is not None:
            failed[trial.cell] = trial.round
    alive, count = by_round.get(1, set()), 0
    if len(alive) < cells:
        return 0
    while alive <= by_round.get(count + 1, set()) != set():
        count += 1
        alive = {cell for cell in alive if failed.get(cell, count + 1) > count}
    return count


def _reserve(folder: Path, stamp: str) -> Path:
    """Create the first free file of this second's name, so that two runs never share one."""
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        file = folder / f"{stamp}{suffix}{JOURNAL}"
        try:
            if not file.with_suffix(".json").exists():
                file.touch(exist_ok=False)
                return file
        except FileExistsError:
            continue
    raise FileExistsError(17, "a hundred runs have begun in this second")


def replace(file: Path, content: bytes) -> None:
    """Write beside the file, sync, rename: a reader sees the old whole or the new whole.

    Raises:
        ResultsError: the disk refuses; what the file held before is kept.
    """
    partial = file.with_name(file.name + PARTIAL)
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be written: {error.strerror}; what it held before is kept") from None
    finally:
        with suppress(OSError):  # a second Ctrl-C, or a full disk
            partial.unlink(missing_ok=True)
