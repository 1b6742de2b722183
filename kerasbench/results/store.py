"""Can these values be? A file may have been edited: what types cannot say is checked once, when it is read.

A run's files on disk: the journal while it runs, the data file at its end, and how both are read.
"""

import dataclasses
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from kerasbench.errors import ResultsError
from kerasbench.files import PARTIAL, replace
from kerasbench.protocol import measurement
from kerasbench.protocol.columns import CaseKey
from kerasbench.protocol.measurement import Measurement, Parts, Published, Slice, Training
from kerasbench.results.record import SCHEMA, Record, TrialRecord

MAX_NS = 10**18  # thirty years
MAX_COUNT = 10**18  # of samples, steps or bytes: what a float still tells from its neighbours, by and large
MAX_VALUE = 1e300  # of a loss: a sum of as many as a file can hold is still a number


def complaint(record: Record) -> str:
    """Return what cannot be in a record, empty where everything can."""
    for index, trial in enumerate(record.trials, start=1):
        for what in _of_trial(trial):
            return f"trial {index} ({trial.scenario}, {trial.backend}): {what}"
    known = {one.description.name for one in record.scenarios}
    strangers = sorted({trial.scenario for trial in record.trials} - known)
    if strangers:
        return f"trials of {', '.join(strangers[:3])}, which is none of its scenarios"
    workloads = (workload for one in record.scenarios for workload in one.description.workloads)
    if not all(0 < workload.steps < MAX_COUNT for workload in workloads):
        return "a workload of so many steps that it cannot be"
    if not all(0 <= one.operations < MAX_COUNT for one in record.flops):
        return "so many operations that it cannot be"
    if not 0 <= record.machine.memory_bytes < MAX_COUNT:
        return "a machine with a memory that cannot be"
    return "" if 0 < record.minimal_effect < 1 else f"a minimal effect of {record.minimal_effect}"


def _of_trial(trial: TrialRecord) -> Iterator[str]:
    if (trial.measurement is None) == (trial.failure is None):
        yield "a trial has either a measurement or a failure"
    if not 0 <= trial.wall_ns <= MAX_NS or any(abs(phase.duration_ns) > MAX_NS for phase in trial.phases):
        yield "a duration that cannot be"
    if trial.measurement is not None:
        yield from _of_measurement(trial.measurement)
        training = trial.measurement.training
        if training is not None and training.unit == "step" and not training.epochs and trial.measures_epochs:
            yield "no epochs beside its steps"


def _of_measurement(m: Measurement) -> Iterator[str]:
    if m.training is not None:
        yield from _of_training(m.training)
    elif not m.prediction or not all(one.slices for one in m.prediction):
        yield "neither steps nor predictions"
        return
    yield from _of_predictions(m)
    yield from _of_published(m.published)
    if not _are_durations([m.usage.wall_ns]):
        yield "a duration that cannot be"
    counts = [m.steps_per_epoch, m.train_samples]
    if not all(0 < count < MAX_COUNT for count in counts) or not 0 <= m.full_steps_per_epoch <= m.steps_per_epoch:
        yield "a count that cannot be"
    if not all(0 <= size < MAX_COUNT for size in (m.peak_rss_bytes, m.peak_device_bytes or 0)):
        yield "a memory that cannot be"
    losses = [*(m.parity.losses if m.parity else []), *(one for output in _outputs(m) for one in output)]
    if m.learning is not None:
        own = m.learning
        losses += [own.batch_loss_before, own.batch_loss_after, own.loss, own.accuracy or 0.0]
    if not _are_values(losses):
        yield "a loss that is not finite"
    elif not measurement.step_ns(m) > 0:
        yield "an epoch that takes no time"


def _of_predictions(m: Measurement) -> Iterator[str]:
    passes = [m.throughput] if m.throughput else []
    durations_ns = [*(one.calls_ns for one in m.prediction), *(one.passes_ns or [0] for one in passes)]
    if not all(map(_are_durations, durations_ns)):
        yield "a duration that cannot be"
    if not all(map(_are_slices, [*(one.slices for one in m.prediction), *(one.slices for one in passes)])):
        yield "slices that cannot be"
    counts = [*(one.batch for one in m.prediction), *(one.samples for one in passes)]
    if not all(0 < count < MAX_COUNT for count in counts):
        yield "a count that cannot be"


def _outputs(m: Measurement) -> list[list[float]]:
    return m.parity.outputs if m.parity else []


def _of_training(training: Training) -> Iterator[str]:
    if not training.slices or not all(map(_are_slices, (training.slices, training.warmup, training.epochs))):
        yield "slices that cannot be"
    if training.first_step_ns is not None and not 0 < training.first_step_ns <= MAX_NS:
        yield "a first step that cannot be"
    if not 0 <= training.epoch_steps < MAX_COUNT:
        yield "epochs that cannot be"
    if not _are_durations(training.again_ns):
        yield "steps that cannot be"
    if training.parts is not None and not (training.epochs and _are_parts(training.parts)):
        yield "parts of a step that cannot be"


def _of_published(published: Published | None) -> Iterator[str]:
    if published is None:
        return
    durations_ns = ([published.total_ns], published.epochs_ns or [0], published.predict_ns)
    if not all(map(_are_durations, durations_ns)):
        yield "published epochs that cannot be"
    if not all(logs and _are_values(logs) for logs in published.history.values()):
        yield "a history that cannot be"


def _are_parts(parts: Parts) -> bool:
    found = (parts.arrays, parts.ready, parts.bare)
    return all(found) and all(map(_are_slices, found)) and 1 <= parts.peak_flops < MAX_COUNT


def _are_slices(found: list[Slice]) -> bool:
    """Tell whether all can have been measured; there may be none."""
    return all(0 < one.count < MAX_COUNT and 0 < one.ns <= MAX_NS for one in found)


def _are_durations(found_ns: list[int]) -> bool:
    """Tell whether all can be durations; a trial has thousands, and a report a million."""
    return not found_ns or (min(found_ns) > 0 and max(found_ns) <= MAX_NS)


def _are_values(found: list[float]) -> bool:
    """Tell whether all can be losses or accuracies; a comparison with what is not a number is False."""
    return all(abs(value) <= MAX_VALUE for value in found)


JOURNAL = ".jsonl"
STAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{6}(-\d{1,2})?"
)  # how the files of a run are called: by its start (see _reserve)
LEFT_S = 3600.0  # a file is written in seconds, and a run that has reserved its name begins in as many
MAX_FILE_BYTES = 256 << 20  # thirty times a long run over all built-in scenarios


class Store:
    """A run's files: a journal while it runs, then ``<start>.json`` and the tables ``<start>.md``.

    The journal has a line for the run and a line for each trial, on disk, a block at once, before the next block
    begins. At the end the data file replaces it as a whole: whatever happens, at most the block in flight is lost.
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

    def add(self, trials: Sequence[TrialRecord]) -> None:
        """Append the trials of a block to the journal in one write; raise ResultsError if the disk refuses."""
        try:
            with self.journal.open("ab") as stream:
                stream.write(b"".join(msgspec.json.encode(trial) + b"\n" for trial in trials))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise ResultsError(
                f"{self.journal}: cannot be written: {error.strerror}; it ends before this block"
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


def _has_begun(journal: Path) -> bool:
    with suppress(FileNotFoundError):  # its run has ended since it was listed
        return journal.stat().st_size > 0
    return False


def load(file: Path) -> Record:
    """Read a result file, or the journal of a run that is not over.

    Raises:
        ResultsError: it is not there, not a result file, or of another version of kerasbench's format.
    """
    try:
        _require_size(file)
        with file.open("rb") as stream:
            record = _from_journal(stream, file) if file.suffix == JOURNAL else _from_json(stream.read(), file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{file}: not a kerasbench result file: {error}") from None

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
    _require_schema(content, file)
    return msgspec.json.decode(content, type=Record)


def _require_schema(content: bytes, file: Path) -> None:
    """Raise ResultsError for a file of another version of the format."""
    schema = msgspec.json.decode(content, type=_Version).schema
    if schema != SCHEMA:
        age = "a newer" if schema > SCHEMA else "an older"
        advice = "read it with that one, or measure again"
        raise ResultsError(f"{file}: written by {age} kerasbench (schema {schema}, not {SCHEMA}); {advice}")


def _require_size(file: Path) -> None:
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ResultsError(f"{file}: not a file")
    if found.st_size > MAX_FILE_BYTES:
        raise ResultsError(f"{file}: larger than {MAX_FILE_BYTES:,} bytes, so not a kerasbench result file")


def _from_journal(stream: BinaryIO, file: Path) -> Record:
    """Put the lines together; a last line that was cut off in the middle is of the block in flight, which is lost."""
    first, lines = _line(stream), iter(partial(_line, stream), b"")
    _require_schema(first, file)
    record = msgspec.json.decode(first, type=Record)
    trials = [msgspec.json.decode(line, type=TrialRecord) for line in lines]
    return dataclasses.replace(record, trials=trials, rounds_completed=_complete_rounds(trials, record.cases))


def _line(stream: BinaryIO) -> bytes:
    """Return the next whole line, nothing after the last."""
    line = stream.readline()
    return line if line.endswith(b"\n") else b""


def _complete_rounds(trials: list[TrialRecord], cases: int) -> int:
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
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        file = folder / f"{stamp}{suffix}{JOURNAL}"
        try:
            if not file.with_suffix(".json").exists():
                file.touch(exist_ok=False)
                return file
        except FileExistsError:
            continue
    raise FileExistsError(17, "a hundred runs have begun in this second")
