"""A run's files: the journal while it runs, the data file at its end, how both are read; and folders of them."""

import dataclasses
import fcntl
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kerasbench.errors import ResultsError
from kerasbench.files import PARTIAL, read_plain, replace
from kerasbench.protocol.columns import CaseKey, Options
from kerasbench.results import upgrade
from kerasbench.results.checks import NUMBERS, problems
from kerasbench.results.run import SCHEMA, Run, Trial
from kerasbench.results.upgrade import decoded
from kerasbench.text import complain

JOURNAL = ".jsonl"
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
            why = f"results cannot be written here: {error.strerror}; choose another with --results DIR"
            raise ResultsError(f"{folder}: {why}") from None

    def begin(self, record: Run) -> None:
        """Write the journal as the run now stands, in place of what it held; raise ResultsError if the disk refuses."""
        header = dataclasses.replace(record, trials=[])
        replace(self.journal, b"".join(map(as_line, (header, *record.trials))))

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


def as_line(part: object) -> bytes:
    return msgspec.json.encode(_without_empty(part)) + b"\n"


def _without_empty(value: object) -> object:
    """Return a dataclass as a dict, without its fields that are empty by default, and are.

    A default that says something is written, so that a file goes on to say it when the default has changed.
    """
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
    """Remove half files and empty journals of killed runs, by the names that runs give: others may have files here."""
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
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None
    return read(content, file)


def read(content: bytes, file: Path) -> Run:
    """Return what a file says of a run; it need not be there. Raise ResultsError for what is no result file."""
    try:
        record = _from_journal(content, file) if file.suffix == JOURNAL else _decoded(content, file)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{file}: not a kerasbench result file: {error}") from None
    if problem := next(problems(record), ""):
        raise ResultsError(f"{file}: not written by kerasbench, or changed since: {problem}")
    return record


def as_json(records: Sequence[Run]) -> str:
    """Return runs as one JSON array, in which no character moves a terminal's cursor or turns its text around."""
    text = msgspec.json.format(msgspec.json.encode(list(records), enc_hook=dict), indent=1).decode()
    return NOT_PLAIN.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


class _Version(msgspec.Struct):
    """The one field that says how to read the others: nothing else is built of a file that is not a result."""

    schema: int


def _decoded(content: bytes, file: Path) -> Run:
    schema = msgspec.json.decode(content, type=_Version).schema
    if schema == upgrade.OLDER:
        return upgrade.run_of(content)
    if schema != SCHEMA:
        age = "a newer" if schema > SCHEMA else "an older"
        advice = "read it with that version, or measure again"
        raise ResultsError(f"{file}: written by {age} kerasbench (schema {schema}, not {SCHEMA}); {advice}")
    return decoded(content, Run)


def _from_journal(content: bytes, file: Path) -> Run:
    """Put the lines together; a last line that was cut off in the middle is of the block in flight, which is lost."""
    whole_lines = (line for line in io.BytesIO(content) if line.endswith(b"\n"))
    first = next(whole_lines, b"")
    record, is_older = _decoded(first, file), msgspec.json.decode(first, type=_Version).schema == upgrade.OLDER
    trials = [upgrade.trial_of(line) if is_older else decoded(line, Trial) for line in whole_lines]
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


@dataclass(frozen=True)
class UnreadableFile:
    file: Path
    why: str

    @property
    def is_damaged(self) -> bool:
        """Whether a run has given it its name; otherwise it is not kerasbench's."""
        return is_named_by_a_run(self.file)


Tell = Callable[[UnreadableFile], None]


def say_passed_over(unread: UnreadableFile) -> None:
    complain(f"{unread.why}; skipped")


def refuse_damaged(unread: UnreadableFile) -> None:
    """Say that a foreign file is passed over; raise ResultsError for a damaged one, which would be missed."""
    if unread.is_damaged:
        raise ResultsError(f"{unread.why}; move it out of {unread.file.parent} to go on without it")
    say_passed_over(unread)


def records(place: Path, tell: Tell = refuse_damaged, newest_first: bool = False) -> Iterator[tuple[Path, Run]]:
    """Read a folder's files, or the one that is named; ``tell`` gets what cannot be read, ResultsError: nothing can."""
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
        advice = f"python -m kerasbench --results {place} makes one"
        raise ResultsError(f"{place}: no result files here that can be read; {advice}")
