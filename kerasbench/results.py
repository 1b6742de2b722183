"""The result file: everything that was measured, raw, in one JSON file for each run. Tables are derived from it."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kerasbench import __version__
from kerasbench.devices import Device
from kerasbench.errors import ResultsError
from kerasbench.machine import Machine
from kerasbench.noise import Signal, Surroundings
from kerasbench.options import DEFAULT as DEFAULT_OPTIONS
from kerasbench.options import Options
from kerasbench.upgrade import SCHEMA, Incomplete, upgrade
from kerasbench.wire import DataKind, Description, Failure, Measurement, Phase, ProtocolKind

INTERRUPTED = "interrupted"  # why a run stopped, in place of a reason to stop


@dataclass(frozen=True)
class ScenarioRecord:
    """What a scenario said of itself, and the hash of the file that said it."""

    file_hash: str
    description: Description


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
        return (self.scenario, self.regime, *self.column)

    @property
    def column(self) -> tuple[str, str, str]:
        """Backend, device label, and the label of the options."""
        return (self.backend, self.device.label, self.options.label)

    @property
    def disturbed(self) -> bool:
        """Whether something disturbed it so much that it must be repeated."""
        return any(signal.invalidates for signal in self.noise)


@dataclass
class Record:
    """A run: the machine, what was asked, and every trial in the order in which it ran."""

    machine: Machine
    started: str
    seed: int
    data: DataKind
    protocol: ProtocolKind
    max_rounds: int
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


def now() -> str:
    """Return the time as it stands in files: UTC, to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """A run's files: ``<start>.json`` and the tables ``<start>.md`` beside it, each replaced as a whole."""

    def __init__(self, folder: Path, started: str) -> None:
        """Make the folder and reserve the names.

        Raises:
            ResultsError: the folder cannot be made or written to. Nothing has been measured yet.
        """
        stamp = started.replace(":", "").replace("Z", "")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.data = _reserve(folder, stamp)
        except OSError as error:
            raise ResultsError(
                f"{folder}: results cannot be written here: {error.strerror}; choose another folder with --results DIR"
            ) from None
        self.tables = tables_file(self.data)

    def save(self, record: Record) -> None:
        """Replace the data file by the record as it now stands; raise ResultsError where the disk refuses."""
        replace(self.data, msgspec.json.encode(record) + b"\n")

    def save_tables(self, text: str) -> None:
        """Replace the tables; raise ResultsError where the disk refuses."""
        replace(self.tables, text.encode())


def tables_file(data: Path) -> Path:
    """Return where the tables of a result file lie."""
    return data.with_suffix(".md")


def result_files(place: Path) -> list[Path]:
    """Return the result files of a folder, oldest first, or the one file itself.

    Raises:
        ResultsError: there are none.
    """
    found = sorted(place.glob("*.json")) if place.is_dir() else [place]
    if not found:
        raise ResultsError(f"{place}: no result files here (*.json); python -m kerasbench --results {place} makes one")
    return found


def load(file: Path) -> Record:
    """Read a result file.

    Raises:
        ResultsError: it is not there, not a result file, or from a newer kerasbench.
    """
    try:
        content = file.read_bytes()
        found: Any = msgspec.json.decode(content)
        schema = found.get("schema") if isinstance(found, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise ResultsError(f"{file}: written by a newer kerasbench (schema {schema}); pip install -U kerasbench")
        return msgspec.convert(upgrade(found), type=Record)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, Incomplete) as error:  # a ValidationError is a DecodeError
        raise ResultsError(f"{file}: not a kerasbench result file: {error}") from None


def _reserve(folder: Path, stamp: str) -> Path:
    """Create the first free file of this second's name, so that two runs never share one."""
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        file = folder / f"{stamp}{suffix}.json"
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            continue
        return file
    raise FileExistsError(17, "a hundred runs have begun in this second")


def replace(file: Path, content: bytes) -> None:
    """Write beside the file, sync, rename: a reader sees the old whole or the new whole.

    Raises:
        ResultsError: the disk refuses; what the file held before is kept.
    """
    partial = file.with_name(file.name + ".partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ResultsError(f"{file}: cannot be written: {error.strerror}; what it held before is kept") from None
