"""A run's files: the journal while it runs, the data file at its end, how both are read; and folders of them."""

import dataclasses
import errno
import fcntl
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from kerasbench.errors import ResultsError
from kerasbench.files import PARTIAL, read_plain, replace
from kerasbench.host import Machine
from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.results.checks import NUMBERS, problems
from kerasbench.results.run import SCHEMA, Run, Trial, completed_rounds
from kerasbench.text import complain
from kerasbench.variants import of_file

JOURNAL, TABLES = ".jsonl", ".md"
STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}(-\d{1,3})?", re.ASCII)  # of a run's files, by its start (Store.create)
LEFT_S = 3600.0  # a file is written in seconds, and a run that has reserved its name begins in as many
NOT_PLAIN = re.compile(r"[^\n -~]")
Tell = Callable[[Path, ResultsError], None]  # gets a file that cannot be read, and why
MAX_FILE_BYTES = 256 << 20  # thirty times a long run over all built-in scenarios


class Store:
    """A run's files: a journal, on disk before the next block begins; then ``<start>.json`` and ``<start>.md``."""

    def __init__(self, journal: Path) -> None:
        self.journal, self.data = journal, journal.with_suffix(".json")
        self._held: BinaryIO | None = None
        self.tables = journal.with_suffix(TABLES)

    @classmethod
    def create(cls, folder: Path, started: str) -> "Store":
        """Make the folder and reserve the first free names of this second, for this run alone; raise ResultsError."""
        stamp = started.replace(":", "").replace("Z", "")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in chain([stamp], (f"{stamp}-{number}" for number in count(2))):
                journal = folder / f"{name}{JOURNAL}"
                others = map(journal.with_suffix, (".json", TABLES, ".svg"))
                if any(map(os.path.lexists, others)):  # a link to nothing too
                    continue
                with suppress(FileExistsError):
                    journal.touch(exist_ok=False)
                    break
            return cls(journal)
        except OSError as error:
            raise _unwritable(folder, error.strerror) from None

    def begin(self, record: Run) -> None:
        """Write the journal as the run now stands, in place of what it held; raise ResultsError if the disk refuses."""
        header = dataclasses.replace(record, trials=[])
        replace(self.journal, b"".join(map(as_line, (header, *record.trials))))

    def hold(self) -> None:
        """Let no other process, as of a container that shares the folder, go on with the journal until ``release``."""
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
                stream.write(b"".join(map(as_line, trials)))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            why = f"cannot be written: {error.strerror}; all before this block is kept"
            raise ResultsError(f"{self.journal}: {why}") from None

    def finish(self, record: Run) -> None:
        """Put the data file in the journal's place; raise ResultsError where the disk refuses, and keep the journal."""
        replace(self.data, as_line(record))
        self.journal.unlink(missing_ok=True)


def require_writable(folder: Path) -> None:
    """Raise ResultsError where a folder cannot be made, or takes no file; make none."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise _unwritable(folder, os.strerror(errno.ENOTDIR))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable(folder, os.strerror(errno.EACCES))


def _unwritable(folder: Path, why: str | None) -> ResultsError:
    return ResultsError(f"{folder}: results cannot be written here: {why}; choose another with --results DIR")


def is_held(journal: Path) -> bool:
    """Tell whether a process that lives writes a journal: the kernel frees its lock however it dies."""
    try:
        with journal.open("r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def as_line(part: object) -> bytes:
    return msgspec.json.encode(_without_empty(part)) + b"\n"


def _without_empty(value: object) -> object:
    """Return a dataclass as a dict, without fields that are empty by default, and are; other defaults may change."""
    if isinstance(value, list):
        return value if value and isinstance(value[0], (*NUMBERS, str)) else list(map(_without_empty, value))
    if isinstance(value, Options):
        return dict(value)
    if isinstance(value, dict):
        return {name: _without_empty(part) for name, part in value.items()}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    parts = ((name, getattr(value, name), default) for name, default in _defaults(type(value)).items())
    return {name: _without_empty(part) for name, part, default in parts if default or part != default}


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    """Return the default of each field of a dataclass; what is cached in an instance is no field."""
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(kind)
    }


def result_files(place: Path) -> list[Path]:
    """Return the result files of a folder, oldest first; raise ResultsError if there is none."""
    by_run = {file.stem: file for file in place.glob("*.json")}
    for journal in place.glob(f"*{JOURNAL}"):  # its run is not over, or was resumed
        with suppress(FileNotFoundError):  # its run has ended since it was listed
            if journal.stat().st_size > 0:
                by_run[journal.stem] = journal
    if not by_run:
        raise ResultsError(f"{place}: no result files here (*.json); python -m kerasbench --results {place} makes one")
    return [by_run[stem] for stem in sorted(by_run)]


def clear_leftovers(folder: Path) -> None:
    """Remove half files and empty journals of killed runs, by the names that runs give: others may have files here."""
    for file in filter(is_named_by_a_run, [*folder.glob(f"*{JOURNAL}"), *folder.glob(f"*{PARTIAL}")]):
        with suppress(OSError):
            state = file.stat()
            if (file.suffix == PARTIAL or not state.st_size) and time.time() - state.st_mtime > LEFT_S:
                file.unlink()


def is_named_by_a_run(file: Path) -> bool:
    return STAMP.fullmatch(file.name.partition(".")[0]) is not None


def load(file: Path) -> Run:
    """Read a result file, or the journal of a run that is not over; raise ResultsError where that cannot be done."""
    try:
        return read(read_plain(file, MAX_FILE_BYTES), file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None


def read(content: bytes, file: Path) -> Run:
    """Return what a file says of a run; it need not be there. Raise ResultsError for what is no result file."""
    try:
        record = _from_journal(content, file) if file.suffix == JOURNAL else _decoded(content, file)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{file}: not a kerasbench result file: {_why_unread(content, error)}") from None
    if problem := next(problems(record), ""):
        raise ResultsError(f"{file}: not written by kerasbench, or changed since: {problem}")
    return record


def _why_unread(content: bytes, error: Exception) -> str:
    if not content.strip():
        return "it is empty"
    return "it ends in the middle: copy it once more, as a whole" if "truncated" in str(error) else str(error)


def as_json(records: Sequence[Run]) -> str:
    """Return runs as one JSON array, in which no character moves a terminal's cursor or turns its text around."""
    text = msgspec.json.format(msgspec.json.encode(list(records), enc_hook=dict), indent=1).decode()
    return NOT_PLAIN.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


Kind = TypeVar("Kind")


def decoded(content: bytes, kind: type[Kind]) -> Kind:
    """Return a part of a file; raise msgspec's errors. What a column has is the one thing that types do not say."""
    unique = {DEFAULT: DEFAULT}

    def options(_: type, values: Any) -> Options:
        chosen = of_file(values)
        return unique.setdefault(chosen, chosen)  # one object for all trials, which are compared by it again and again

    return msgspec.json.decode(content, type=kind, dec_hook=options)


class _Version(msgspec.Struct):
    schema: int


class _Of(msgspec.Struct):
    machine: Machine


TRIALS = b',"trials":'


def _machine_of(file: Path) -> object:
    """Tell files of a machine from those of others without reading what was measured; None for what cannot be read."""
    try:
        head = read_plain(file, MAX_FILE_BYTES).partition(b"\n")[0]  # data are one line, too
        with suppress(msgspec.DecodeError):  # as kerasbench writes them, trials come after it
            return msgspec.json.decode(head.partition(TRIALS)[0] + b"}", type=_Of).machine.identity
        return msgspec.json.decode(head, type=_Of).machine.identity
    except (OSError, ResultsError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _decoded(content: bytes, file: Path) -> Run:
    if b'"schema"' not in content:
        msgspec.json.decode(content, type=_Version)  # says what is wrong; a run in memory has one by default
    try:
        record = decoded(content, Run)
    except msgspec.DecodeError:
        schema = msgspec.json.decode(content, type=_Version).schema
        if schema == SCHEMA:
            raise
    else:
        schema = record.schema
    if schema == SCHEMA:
        return record
    age = "a newer" if schema > SCHEMA else "an older"
    advice = "read it with that version, or measure again"
    raise ResultsError(f"{file}: written by {age} kerasbench (schema {schema}, not {SCHEMA}); {advice}")


def _from_journal(content: bytes, file: Path) -> Run:
    """Put the lines together; a last line that was cut off in the middle is of the block in flight, which is lost."""
    whole_lines = (line for line in io.BytesIO(content) if line.endswith(b"\n"))
    first = next(whole_lines, b"")
    record = _decoded(first, file)
    trials = [decoded(line, Trial) for line in whole_lines]
    rounds = 0
    if len({trial.case for trial in trials if trial.round == 1 and not trial.crowded}) >= record.cases:
        # A row that is decided takes part in no further round: the last one then passes for open.
        before_last = max((trial.round for trial in trials), default=0) - 1
        rounds = completed_rounds({trial.case for trial in trials}, trials, before_last)
    return dataclasses.replace(record, trials=trials, rounds_completed=rounds)


def refuse_damaged(file: Path, why: ResultsError) -> None:
    """Say that a foreign file is passed over; raise ResultsError for a damaged one, which would be missed."""
    if is_named_by_a_run(file):
        raise ResultsError(f"{why}; move it out of {file.parent} to go on without it")
    complain(f"{why}; skipped")


def records(
    place: Path, tell: Tell = refuse_damaged, newest_first: bool = False, by_machine: bool = False
) -> Iterator[tuple[Path, Run]]:
    """Read a folder's files, or the one that is named; raise ResultsError where nothing can be read.

    ``by_machine``: those of a machine beside each other, so that they may be forgotten before the next one's.
    """
    if not place.is_dir():
        yield place, load(place)
        return
    any_read = False
    files = result_files(place)[:: -1 if newest_first else 1]
    if by_machine:
        order: dict[object, int] = {}  # in which machines first come
        files.sort(key=lambda file: order.setdefault(_machine_of(file), len(order)))
    for listed in files:
        file = listed if listed.exists() else listed.with_suffix(".json")  # its run has ended meanwhile
        try:
            record = load(file)
        except ResultsError as error:
            tell(file, error)
        else:
            any_read = True
            yield file, record
    if not any_read:
        advice = f"python -m kerasbench --results {place} makes one"
        raise ResultsError(f"{place}: no result files here that can be read; {advice}")
