"""One machine's share of a run: asked for by a line of JSON, and answered by numbered lines of JSON.

``python -m kerasbench share`` speaks it on its standard input and output, so that whatever can start a process on a
machine can carry it: ssh, or a worker of Dask (``machines.py``, ``cluster.py``). The run itself is one like any other,
with this machine's own lock, interpreters and journal.

::

    there   {"number": 0, "hello": {...}}       who it is; the asker sends nothing to a kerasbench of other code
    here    {"file": {...}}                      a file of the user's own, by content and hash
    here    {"order": {"share": "3f2a...", "command": "run", "settings": {...}}}
    there   {"number": 1, "say": "[1/8] mnist_dense torch cpu: 2.10 ms ..."}
    there   {"number": 2, "begin": {...}, "known": 0}    the run without its trials, of which it has so many already
    there   {"number": 3, "trial": {...}}
    here    {"acknowledged": 3}                  it is on the disk here, or held until all that were known have come
    here    {}                                   a sign of life; {"stop": true} is Ctrl-C
    there   {"number": 9, "end": {...}}          the run without its trials; or "refused": why nothing was measured
    here    {"acknowledged": 9}                  now it is forgotten there
"""

import dataclasses
import hashlib
import os
import platform
import queue
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TextIO, cast

import msgspec
import platformdirs
from filelock import FileLock, Timeout

from kerasbench import __version__, backends
from kerasbench.environments.interpreters import find
from kerasbench.errors import EXIT_OK, KerasbenchError, ResultsError, UsageError
from kerasbench.events import Event, OnEvent, RunStarted, TrialEnded
from kerasbench.host import COMMIT
from kerasbench.plan import catalog
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import Run, RunConfig, Trial
from kerasbench.results.store import Store, records
from kerasbench.runs.run import SUPERSEDED, PlannerOf, measured
from kerasbench.scenario import baseline_file
from kerasbench.settings import Settings

MOST_LINE_BYTES = 16 << 20  # of a record: a long trial has one
MOST_FILES_BYTES = 256 << 20  # of all files that travel: larger models are copied by other means
MOST_ORDER_BYTES = 2 * MOST_FILES_BYTES  # base64 takes a third more, and an interrupted run travels too
GROUP_LENGTH = 12  # hexadecimal digits
SILENCE_S = 120.0  # the asker gives a sign of life every 20 s: after six it is gone, or its lid is closed
ACKNOWLEDGE_S = 60.0  # how long the last records may take to be acknowledged
LOCK = ".lock"  # of a share's folder, while it is measured
KEPT_S = 30 * 24 * 3600.0  # what nobody has asked for after a month, nobody will
BLOCK = 1 << 16  # bytes read at once: what a pipe holds
EACH_S = 0.05  # a look whether the last record was acknowledged


class Hello(msgspec.Struct, frozen=True):
    """Who answers there."""

    kerasbench: str
    code: str  # the hash of the code that measures
    python: str
    interpreter: str
    now_s: float  # its clock: seconds since 1970


class Carriage(msgspec.Struct, frozen=True):
    """A file of the user's own, as it travels."""

    place: str  # what its user calls it
    group: str  # files of one group lie in one folder: letters and digits, the same however often it travels
    name: str  # in that folder
    sha256: str
    content: bytes


class Order(msgspec.Struct, frozen=True):
    """What a machine is asked for."""

    share: str
    command: str
    settings: Settings  # as on a command line; files by what their user calls them
    keep_env: dict[str, str] = {}
    earlier: Run | None = None  # an interrupted run to go on with, as far as it has arrived
    commit: str = ""  # of the checkout that it is asked for in


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sent first: files of the user's own, then the order."""

    file: Carriage | None = None
    order: Order | None = None


class Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the asker says meanwhile; nothing is a sign of life."""

    acknowledged: int = -1
    stop: bool = False


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a machine answers."""

    number: int
    hello: Hello | None = None
    say: str = ""
    begin: msgspec.Raw = msgspec.Raw(b"")
    known: int = 0
    python: list[str] = []  # what --python takes there to go on with it
    trial: msgspec.Raw = msgspec.Raw(b"")
    end: msgspec.Raw = msgspec.Raw(b"")
    refused: str = ""


def lines(descriptor: int, most_bytes: int, silence_s: float | None = None) -> Iterator[bytes]:
    """Yield whole lines until the other end is gone, is silent for so long, or sends a longer line than that."""
    held = bytearray()
    while True:
        if silence_s is not None and not select.select([descriptor], [], [], silence_s)[0]:
            return
        block = os.read(descriptor, BLOCK)
        if not block:
            return
        *ended, rest = block.split(b"\n")
        for end in ended:
            yield bytes(held + end)
            held.clear()
        held += rest
        if len(held) > most_bytes:
            yield bytes(held)  # the reader sees that it is too long
            return


# The asking side: what travels.


def carried(settings: Settings) -> list[Carriage]:
    """Return the files of one's own that these settings name, with the baselines of scenarios.

    Raises:
        UsageError: they are too large, or cannot be read.
    """
    carriages: list[Carriage] = []
    for place in [*catalog.own_files(settings.scenarios), *filter(None, (settings.custom, settings.rows))]:
        file = Path(place)
        group = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:GROUP_LENGTH]
        baselines = (
            [baseline_file(file, backend) for backend in catalog.baselines(file)] if file.suffix == ".py" else []
        )
        for source in (file, *baselines):
            name = source.relative_to(file.parent).as_posix()
            try:
                content = source.read_bytes()
            except OSError as error:
                raise UsageError(f"{source}: cannot be read: {error.strerror}") from None
            carriages.append(Carriage(place, group, name, hashlib.sha256(content).hexdigest(), content))
    if sum(len(carriage.content) for carriage in carriages) > MOST_FILES_BYTES:
        raise UsageError(
            f"files of more than {MOST_FILES_BYTES >> 20} MiB are not sent: copy them to each machine by other means, "
            "and run kerasbench there"
        )
    return carriages


def _renamed(pattern: str, names: Mapping[str, str]) -> str:
    """Return a pattern of scenarios with another name of its file."""
    match = catalog.FILE_PATTERN.fullmatch(pattern)
    if match is None or match["file"] not in names:
        return pattern
    return names[match["file"]] + (f"/{match['workload']}" if match["workload"] else "")


def with_names(config: RunConfig, names: Mapping[str, str]) -> RunConfig:
    """Return a configuration with other names of files."""
    model = config.model_config
    named = dataclasses.replace(
        model, custom=names.get(model.custom, model.custom), rows=names.get(model.rows, model.rows)
    )
    scenarios = [_renamed(pattern, names) for pattern in config.scenarios]
    return dataclasses.replace(config, scenarios=scenarios, model_config=named)


# The measuring side.


@dataclass
class Asker:
    """Who has asked for this share. Lines are written and heard by threads of their own: no trial waits for a network.

    When the asker is gone, or says stop, the run is interrupted as by Ctrl-C.
    """

    incoming: int
    outgoing: int
    silence_s: float = SILENCE_S
    acknowledged: int = -1
    is_gone: bool = False
    files: list[Carriage] = field(default_factory=list)  # that came with the order
    _number: int = 0
    _is_measuring: bool = False
    _stopped: bool = False
    _lines: "queue.SimpleQueue[bytes]" = field(default_factory=queue.SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _said: str = ""

    def __post_init__(self) -> None:
        self._sender = threading.Thread(target=self._send_all, daemon=True)

    def greet(self) -> Order:
        """Say who this is, and return what is asked for; raise UsageError where that is not an order."""
        self._sender.start()
        python = platform.python_version()
        hello = Hello(__version__, all_measuring_code(), python, sys.executable, time.time())
        self.send(hello=hello)
        heard = lines(self.incoming, MOST_ORDER_BYTES, self.silence_s)
        try:
            for line in heard:
                asked = msgspec.json.decode(line, type=Ask)
                if asked.order is not None:
                    return asked.order
                self.files += [asked.file] if asked.file else []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"not an order: {error}") from None
        finally:
            threading.Thread(target=self._listen, args=[heard], daemon=True).start()
        raise UsageError("share takes an order on its standard input: `kerasbench run --hosts NAME` sends it")

    def send(self, **parts: Any) -> int:
        """Send a line, and return its number; bytes are JSON already."""
        number, self._number = self._number, self._number + 1
        raw: dict[str, Any] = {
            name: msgspec.Raw(part) if isinstance(part, bytes) else part for name, part in parts.items()
        }
        self._lines.put(msgspec.json.encode(Told(number, **raw)) + b"\n")
        return number

    def write(self, text: str) -> int:
        """Take text as a stream does, and send each whole line of it that is not empty."""
        *whole, self._said = (self._said + text).split("\n")
        for line in filter(str.strip, whole):
            self.send(say=line)
        return len(text)

    def flush(self) -> None:
        """Do nothing: lines are sent when they are whole."""

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Heed meanwhile that the asker is gone, or says stop."""
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            self._is_measuring = True
        try:
            yield
        finally:
            with self._lock:
                self._is_measuring = False

    def has_acknowledged(self, number: int) -> bool:
        """Wait for a line to be acknowledged, and tell whether it was."""
        deadline_s = time.monotonic() + ACKNOWLEDGE_S
        while self.acknowledged < number and not self.is_gone and time.monotonic() < deadline_s:
            time.sleep(EACH_S)
        return self.acknowledged >= number

    def flushed(self) -> None:
        """Wait until all has been sent."""
        self._lines.put(b"")
        self._sender.join(ACKNOWLEDGE_S)

    def _send_all(self) -> None:
        while line := self._lines.get():
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(self.outgoing, left) :]
            except OSError:
                self._lost()
                return

    def _listen(self, heard: Iterator[bytes]) -> None:
        try:
            for line in heard:
                word = msgspec.json.decode(line, type=Word)
                self.acknowledged = max(self.acknowledged, word.acknowledged)
                if word.stop:
                    self._stop()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            pass  # as good as gone
        self._lost()

    def _lost(self) -> None:
        self.is_gone = True
        self._stop()

    def _stop(self) -> None:
        with self._lock:
            if self._is_measuring and not self._stopped:
                # Not SIGINT, which is ignored in what a shell has put into the background.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            self._stopped = True


def shares() -> Path:
    return Path(platformdirs.user_state_dir("kerasbench")) / "shares"


def measure(order: Order, asker: Asker, progress: OnEvent, planner_of: PlannerOf) -> None:
    """Measure what was asked for, as a run like any other, and send its records.

    What was not acknowledged stays here until the asker goes on with the run, and what no longer counted when it was
    resumed for a month; nothing else does.

    Raises:
        KerasbenchError: it cannot be measured here.
    """
    _forget_old()
    if not order.share.isalnum():
        raise UsageError(f"not the name of a share: {order.share!r}")
    folder = shares() / order.share
    results, stem, is_done, unsaved = folder / "results", "", False, ""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError("this run is being measured there already: wait until it ends") from None
    except (OSError, NotImplementedError):  # a file system without locks
        pass
    try:
        names = _write(asker.files, folder / "files")
        sender = _Sender(asker, {there: place for place, there in names.items()})
        before = _before(results) if order.earlier else None
        if before is not None and not before[1].unfinished:
            stem, record = before[0].stem, before[1]
            sender.begin(record)
        else:
            if order.earlier is not None and before is None:
                earlier = dataclasses.replace(order.earlier, config=with_names(order.earlier.config, names))
                Store.create(results, earlier.started).finish(earlier)
            os.environ.update(order.keep_env)  # for --keep-env, which looks for them here
            os.environ.update({COMMIT: order.commit} if order.commit else {})
            settings = _settings(order, names, results)

            def on_event(event: Event) -> None:
                progress(event)
                sender(event)

            with asker.measuring(), redirect_stderr(cast("TextIO", asker)):  # the asker is to hear of complaints
                chosen = find(settings.python, backends.names())
                planner = planner_of(order.command)
                config, chosen = planner.with_interpreters(planner.configured(settings), settings, chosen, on_event)
                sender.python = chosen.to_name_again()
                with measured(config, results, chosen, planner_of, on_event, settings.wait) as finished:
                    stem, record, unsaved = finished.store.data.stem, finished.record, finished.unsaved
        is_done = asker.has_acknowledged(sender.end(record))
        if unsaved:
            raise ResultsError(f"it stopped, and all that it had measured is here: {unsaved}")
    finally:
        shutil.rmtree(folder / "files", ignore_errors=True)
        for file in results.glob(f"{stem}.*") if is_done else ():
            file.unlink()
        if not _has_files(results):
            shutil.rmtree(folder, ignore_errors=True)
        lock.release()


@dataclass
class _Sender:
    """Sends a run as its events tell it. A trial is in the journal here before it is sent."""

    asker: Asker
    names: Mapping[str, str]  # what the asker calls the files that travelled
    sent: int = 0  # trials since the run began
    python: list[str] = field(default_factory=list)  # to name its interpreters again, where no file does

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted(record=record):
                self.begin(record)
            case TrialEnded(trial=trial):
                self._trials([trial])

    def begin(self, record: Run) -> None:
        self.sent = 0
        self.asker.send(begin=self._header(record), known=len(record.trials), python=self.python)
        self._trials(record.trials)

    def end(self, record: Run) -> int:
        self._trials(record.trials[self.sent :])  # those that a full disk has refused
        return self.asker.send(end=self._header(record), known=len(record.trials))

    def _trials(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self.asker.send(trial=msgspec.json.encode(trial))
        self.sent += len(trials)

    def _header(self, record: Run) -> bytes:
        return msgspec.json.encode(dataclasses.replace(record, trials=[], config=with_names(record.config, self.names)))


def _before(results: Path) -> tuple[Path, Run] | None:
    """Return what is here of a share's run, and its file; beside it may lie what no longer counted."""
    if not _has_files(results):
        return None
    return next(((file, run) for file, run in records(results) if run.stopped_because != SUPERSEDED), None)


def _has_files(results: Path) -> bool:
    return any(file.stat().st_size for file in results.glob("*.json*"))  # an empty one is of a run that never began


def _settings(order: Order, names: Mapping[str, str], results: Path) -> Settings:
    """Return what was asked for in the names that files have here."""
    asked = order.settings
    return dataclasses.replace(
        asked,
        scenarios=[_renamed(pattern, names) for pattern in asked.scenarios],
        custom=names.get(asked.custom, asked.custom),
        rows=names.get(asked.rows, asked.rows),
        results=str(results),
    )


def _write(files: list[Carriage], folder: Path) -> dict[str, str]:
    """Write files that have travelled into a private folder, and return what each is called here."""
    names: dict[str, str] = {}
    for carriage in files:
        place, name = folder / carriage.group / carriage.name, PurePosixPath(carriage.name)
        if not carriage.group.isalnum() or name.is_absolute() or ".." in name.parts:
            raise UsageError(f"not the name of a file: {f'{carriage.group}/{carriage.name}'!r}")
        if hashlib.sha256(carriage.content).hexdigest() != carriage.sha256:
            raise UsageError(f"{carriage.place}: was changed on its way; run the command again")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(carriage.content)
        except OSError as error:
            raise UsageError(f"{place}: cannot be written: {error.strerror}") from None
        if "/" not in carriage.name:  # a baseline lies beside its scenario
            names[carriage.place] = str(place)
    return names


def _forget_old() -> None:
    for folder in shares().glob("*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > KEPT_S:
                shutil.rmtree(folder)


def answer(act: Callable[[Order, Asker], None], incoming: int, outgoing: int) -> int:
    """Answer one order by an act, and return the exit code; the asker hears why it was refused."""
    asker = Asker(incoming, outgoing)
    try:
        act(asker.greet(), asker)
    except KerasbenchError as error:
        asker.has_acknowledged(asker.send(refused=str(error)))
        return error.exit_code
    finally:
        asker.flushed()
    return EXIT_OK
