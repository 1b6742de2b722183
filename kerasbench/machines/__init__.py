"""Several machines at once: each runs the ordinary command there, and keeps its ordinary file until that is here.

What is asked of a carrier (``ssh.py``, ``dask.py``) is to run scripts of a shell: one puts the user's own files into a
folder there, one starts the command, whose lines (``lines.py``) say how it goes, one gives the file, one removes it.

A machine that fails, or vanishes, is a row with its cause; the others go on. What it has measured lies there, and
``--resume`` has it go on.
"""

import dataclasses
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
import platformdirs
from filelock import FileLock, Timeout

from kerasbench import __version__, text
from kerasbench.errors import KerasbenchError, ResultsError, UsageError
from kerasbench.host import COMMIT, commit
from kerasbench.machines.lines import End, Hello, Told
from kerasbench.machines.luggage import VARIABLES, Luggage, folder_name, packed, words
from kerasbench.machines.ssh import PYTHON, SHOWN, Shell
from kerasbench.names import DOCTOR
from kerasbench.plan import catalog, configure
from kerasbench.processes import variables
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import INTERRUPTED, Carried, Run, RunConfig
from kerasbench.results.store import JOURNAL, MAX_FILE_BYTES, STAMP, Store, load
from kerasbench.runs.resume import executed
from kerasbench.settings import Settings

RUNNER = "kerasbench"  # --python HOST:kerasbench=PATH names what runs kerasbench there
STOP_S = 60.0  # after Ctrl-C: what machines have for ending their runs
HELLO_S = 120.0
SLOW_BYTES_S = 100_000.0  # of a connection by which files go
SKEW_S = 5.0  # clocks that differ by more are named
MOST_LINES = 100_000  # about a run: the longest says some thousands
MOST_LINE_BYTES = 1 << 20
NO_HELLO = "no answer in {:g} s: something there keeps kerasbench from starting, such as a login script that waits"
FILE = re.compile(rf"{STAMP.pattern}\.jsonl?", re.ASCII)
FETCHING = threading.Lock()  # one file at a time: those of a hundred machines do not fit into memory

# Scripts, before which F is the folder there.
PUT = 'umask 077; mkdir -p "$F/results" && cd "$F" && rm -rf files && tar -xf -'
START = (
    f'umask 077; if [ -f "$F/{VARIABLES}" ]; then . "$F/{VARIABLES}"; fi; exec {{}} -m kerasbench {{}} --events {{}}'
)
GET = 'cat "$F/results/{}"'
REMOVE = 'rm -f "$F/results/{}".*'
# What no longer counted when a run was resumed stays, and so do the variables of a run that has not ended.
TIDY = (
    'cd "$F" && rm -rf files && find results -type f -size 0 -exec rm {} + && if rmdir results 2>/dev/null; '
    f'then rm -f {VARIABLES}; cd .. && rmdir "$F"; fi'
)

Say = Callable[[str, str], None]  # a machine, and a line about it


class Carrier(Protocol):
    warning: str  # about its last script

    def run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        """Yield the output of a script of a shell there, in blocks; its input is open until ``stop``, or what is given.

        Raises:
            ResultsError: it has failed, or the machine is lost.
        """

    def stop(self) -> None:
        """End the script's input."""

    def close(self) -> None:
        """End it at once."""


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    held, total = b"", 0
    for block in blocks:
        *whole, held = (held + block).split(b"\n")
        total += len(whole)
        if max(map(len, (*whole, held))) > MOST_LINE_BYTES or total > MOST_LINES:
            raise ResultsError(f"it said more than a run can have to say ({total:,} lines)")
        yield from whole


@dataclass(eq=False)
class Remote:
    """A machine that measures, as the asker sees it."""

    host: str
    carrier: Carrier
    command: str
    asked: Settings  # of this machine, with files by what the asker calls them
    results: Path
    name: str = "asker"  # of the folder there
    luggage: Luggage = field(default_factory=Luggage)
    python: str = ""  # what runs kerasbench there
    insecure: bool = False
    hello: Hello | None = None
    skew_s: float = 0.0  # how much its clock is ahead
    store: Store | None = None  # where its run is kept here
    record: Run | None = None  # the run without its trials
    cause: str = ""  # why it did not measure to its end
    said: list[str] = field(default_factory=list)  # by its doctor
    interpreters: list[str] = field(default_factory=list)  # what --python takes there to go on, as it says
    end: End | None = None
    stopped: bool = False
    _file: str = ""
    _waiting: threading.Timer = field(init=False)

    @property
    def failed(self) -> str:
        """Why there is less of it than was asked for; empty if there is not."""
        return self.cause or (self.record.stopped_because if self.record and self.record.unfinished else "")

    @property
    def is_unfinished(self) -> bool:
        """Whether what it has measured lies there, and --resume has it go on."""
        if self.record is not None:
            return self.record.unfinished
        return self.hello is not None and not self._differs() and (self.end is None or self._file != "")

    def stop(self) -> None:
        self.stopped = True
        self.carrier.stop()

    def measure(self, say: Say) -> None:
        """Have it measure, and take in what it says; the causes of failures are kept, not raised."""

        def give_up() -> None:
            self.cause = NO_HELLO.format(HELLO_S)
            self.carrier.close()

        self._waiting = threading.Timer(HELLO_S + len(self.luggage.archive) / SLOW_BYTES_S, give_up)
        if isinstance(self.carrier, Shell):  # a task of Dask waits its turn
            self._waiting.start()
        cause = self._measured(say)
        self._waiting.cancel()
        self.cause = self.cause or cause
        say(self.host, "; ".join(filter(None, [self.cause or "done", text.blanked(self.carrier.warning)])))

    def _measured(self, say: Say) -> str:
        measures = self.command != DOCTOR
        try:
            with _alone(f"{self.name}-{self.host}") if measures else nullcontext():
                if measures:
                    self._whole(PUT, self.luggage.archive)
                try:
                    self._hear(say)
                    if self._file:
                        with FETCHING:
                            self._fetch()
                finally:
                    if measures and (self.end is not None or self.hello is None or self._differs()):
                        with suppress(KerasbenchError):  # not, where it may be measuring still
                            self._whole(TIDY)
        except KerasbenchError as error:
            return INTERRUPTED if self.stopped else str(error)
        return text.one_line(text.printable(self.end.cause))[: 4 * SHOWN] if self.end else ""

    def _run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        try:
            yield from self.carrier.run(f'F="${{HOME:?}}/.local/state/kerasbench/asked/{self.name}"; {script}', given)
        except ResultsError as error:
            raise ResultsError(f"the connection has ended: {text.printable(str(error))}") from None

    def _whole(self, script: str, given: bytes = b"") -> bytes:
        content = bytearray()
        for block in self._run(script, given):
            content += block
            if len(content) > MAX_FILE_BYTES:
                self.carrier.close()
                raise ResultsError(f"its file has more data than a run can have ({len(content):,} bytes)")
        return bytes(content)

    def _hear(self, say: Say) -> None:
        if self.stopped:
            raise ResultsError(INTERRUPTED)
        runner = f'"${{{PYTHON}:-python3}}"'  # of this machine, or of a worker's: the one that runs this
        if self.python:
            is_at_home = self.python.startswith("~/")  # for the shell there to make out
            runner = f'"$HOME"/{shlex.quote(self.python[2:])}' if is_at_home else shlex.quote(self.python)
        script = START.format(runner, self.command, " ".join(words(self.command, self.asked, self.luggage)))
        try:
            for line in _lines(self._run(script)):
                self._waiting.cancel()
                self._take(line, say)
        except UsageError:
            self.carrier.close()
            raise
        except ResultsError:
            if self.end is None:  # what has ended in order may have failed
                raise
        if self.end is None:
            raise ResultsError("the connection has ended before its run")

    def _take(self, line: bytes, say: Say) -> None:
        """Take in a line; raise UsageError for an unfit one."""
        try:
            message = msgspec.json.decode(line, type=Told)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = text.one_line(line[:80].decode(errors="replace"))
            raise UsageError(f"its answer is not one of kerasbench: {shown!r} ({error})") from None
        if self.hello is None and not message.hello:
            raise UsageError("its answer is not one of kerasbench: it did not say which one it is")
        if message.hello:
            self.hello, self.skew_s = message.hello, message.hello.now_s - time.time()
            if self.command != DOCTOR and (differs := self._differs()):
                raise UsageError(differs)
        elif message.say and self.command == DOCTOR:
            self.said.append(text.blanked(message.say)[:SHOWN])
        elif message.say:
            say(self.host, text.blanked(message.say)[:SHOWN])
        elif message.file:
            if not FILE.fullmatch(message.file):
                raise UsageError(f"not the name of a run's file: {message.file[:SHOWN]!r}")
            self._file = message.file
        elif message.python:
            self.interpreters = [text.blanked(word) for word in message.python]
        self.end = message.end or self.end

    def _fetch(self) -> None:
        """Put its file here, in the place of what an earlier look has left, and remove it there if its run has ended.

        Raises:
            ResultsError: it is none, or it is not of what was asked for.
        """
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch, self._file)
            try:
                copy.write_bytes(self._whole(GET.format(self._file)))
            except OSError as error:
                raise ResultsError(f"its file cannot be kept here: {error.strerror}") from None
            record = load(copy)
        asked, config = self.asked, self.luggage.with_names_here(record.config)
        given = executed(asked.scenarios, ModelConfig(custom=asked.custom, trust=asked.trust))
        is_same = asked.resume or config.keep_env == self.luggage.variables
        if executed(config.scenarios, config.model_config) != given or not is_same:
            raise ResultsError("it measured other files than it was asked for, or with other environment variables")
        carried = Carried(self.host, self.name, self.insecure)
        store = self._earlier(record.started) or Store.create(self.results, record.started)
        try:
            store.finish(dataclasses.replace(record, config=config, carried=carried))
        finally:
            store.journal.unlink(missing_ok=True)  # which has reserved the name
        self.store, self.record = store, dataclasses.replace(record, trials=[])
        if not (record.unfinished or record.out_of_time):  # such a run may go on
            with suppress(KerasbenchError):  # all of it is here
                self._whole(REMOVE.format(self._file.partition(".")[0]))

    def _earlier(self, started: str) -> Store | None:
        """Return where the same run was kept when it was interrupted."""
        for file in self.results.glob("*.json"):
            if file.name.startswith(started.replace(":", "").replace("Z", "")):
                with suppress(ResultsError):
                    earlier = load(file)
                    if earlier.carried and (earlier.carried.host, earlier.carried.share) == (self.host, self.name):
                        return Store(file.with_suffix(JOURNAL))
        return None

    def examined(self) -> list[str]:
        """Return what a doctor says of the machine."""
        if self.hello is None:
            return [f"error: {self.cause}"]
        hello = self.hello
        told = [
            f"connected; Python {hello.python}, {hello.interpreter}; kerasbench {hello.kerasbench}, code {hello.code}"
        ]
        if self._differs():
            told.append(f"error: {self._differs()}")
        if abs(self.skew_s) > SKEW_S:
            told.append(f"warning: its clock is {self.skew_s:+.0f} s off this one: set both by NTP")
        return [text.blanked(line) for line in [*told, *self.said, *([f"error: {self.cause}"] if self.cause else [])]]

    @property
    def is_fit(self) -> bool:
        errors = any(line.startswith("error:") for line in self.said)
        return self.end is not None and not self.cause and not errors and not self._differs()

    def _differs(self) -> str:
        """Return why another kerasbench is there, and what makes it the same; empty where it is the same."""
        if self.hello is None:
            return ""
        version, code = (text.one_line(word)[:SHOWN] for word in (self.hello.kerasbench, self.hello.code))
        if version != __version__:
            update = f"on {self.host}, {self.python or 'python3'} -m pip install kerasbench=={__version__}"
            return f"kerasbench {version} there, {__version__} here: {update}"
        if code != (here := all_measuring_code()):
            return (
                f"kerasbench {version} there has other code ({code}, and {here} here): install the same checkout or "
                "wheel there"
            )
        return ""


def _alone(name: str) -> AbstractContextManager[object]:
    """Hold a folder there against another command line here; raise ResultsError where one has it."""
    place = Path(platformdirs.user_state_dir("kerasbench"), "asking")
    try:
        place.mkdir(parents=True, exist_ok=True)
        return FileLock(place / re.sub(r"[^\w.@-]", "_", name)).acquire(timeout=0)
    except Timeout:
        raise ResultsError("another command here has it measure for the same --results: wait until that ends") from None
    except (OSError, NotImplementedError):  # a file system without locks
        return nullcontext()


def _connections(settings: Settings) -> AbstractContextManager[Mapping[str, Carrier]]:
    if settings.cluster:
        from kerasbench.machines import dask

        return dask.connected(settings.cluster, settings.insecure)
    return nullcontext({host: Shell(host) for host in settings.hosts})


def ask(command: str, settings: Settings, say: Say) -> list[Remote]:
    """Have the machines of ``--hosts`` or ``--cluster`` measure, and return what became of each.

    Raises:
        KerasbenchError: a setting means nothing, or no machine can be asked.
    """
    for_all = dataclasses.replace(settings, hosts=[], cluster="", insecure=False, python=[], results=Settings().results)
    if settings.hosts and settings.cluster:
        raise UsageError("--hosts and --cluster exclude each other: a cluster has its own machines")
    if settings.insecure and settings.hosts:
        raise UsageError("--insecure is for --cluster: ssh encrypts all that --hosts needs")
    if command != DOCTOR:
        config = configure.resumed(for_all) if settings.resume else configure.config_of(command, for_all)
        if isinstance(config, RunConfig):
            catalog.require_known(config.scenarios, config.model_config, config.suite)
    name, results = folder_name(settings.results), Path(settings.results)
    kept = variables.kept(settings.keep_env)
    luggage = packed(for_all, name, kept, kept | ({COMMIT: asked_in} if (asked_in := commit()) else {}))
    with _connections(settings) as carriers:
        hosts = list(carriers)
        python = {host: _python(host, hosts, settings.python) for host in hosts}
        remotes = []
        for host, carrier in carriers.items():
            runner, interpreters = python[host]
            asked = dataclasses.replace(for_all, python=interpreters)
            remotes.append(Remote(host, carrier, command, asked, results, name, luggage, runner, settings.insecure))
        _measure(remotes, say)
    return remotes


def _measure(remotes: Sequence[Remote], say: Say) -> None:
    """Let them work. Ctrl-C ends each block, and waits for what there still is; the second one waits for nothing."""
    patience_s: float | None = None
    with ThreadPoolExecutor(max(len(remotes), 1)) as pool:
        futures = [pool.submit(remote.measure, say) for remote in remotes]
        while True:
            try:
                if wait(futures, patience_s).not_done:
                    _at_once(remote.carrier.close for remote in remotes)
                break
            except KeyboardInterrupt:
                patience_s = STOP_S if patience_s is None else 0.0
                _at_once(remote.stop for remote in remotes)
    for future in futures:
        future.result()


def _at_once(acts: Iterable[Callable[[], None]]) -> None:
    """Have others do it: Ctrl-C, which is raised in this thread, leaves nothing undone."""
    for act in acts:
        threading.Thread(target=act, daemon=True).start()


def _python(host: str, hosts: Sequence[str], given: Sequence[str]) -> tuple[str, list[str]]:
    """Return what runs kerasbench on a machine (empty: python3), and what ``--python`` says of its backends."""
    paths: dict[str, str] = {}
    for word in given:
        names, equals, path = word.partition("=")
        place, _, name = names.rpartition(":")
        if not equals or not path.strip() or (place and place not in hosts):
            example = f"such as {host}:torch=.venvs/torch, with a HOST that is measured on"
            raise UsageError(f"--python takes [HOST:]NAME=PATH, {example}, not {word!r}")
        if place in ("", host):
            paths[name.strip()] = path.strip()
    runner = paths.pop(RUNNER, "")
    return runner, [f"{name}={path}" for name, path in paths.items()]
