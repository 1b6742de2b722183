"""Several machines at once: each runs the ordinary command, and keeps its ordinary file until that is here."""

import dataclasses
import re
import shlex
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import platformdirs
from filelock import FileLock, Timeout

from kerasbench import __version__, text
from kerasbench.errors import KerasbenchError, ResultsError, UsageError
from kerasbench.machines import dask
from kerasbench.machines.lines import End, Hello, Told
from kerasbench.machines.luggage import VARIABLES, Luggage, folder_name, packed, words
from kerasbench.machines.ssh import PYTHON, SHOWN, Shell
from kerasbench.modes import known
from kerasbench.names import DOCTOR
from kerasbench.plan import catalog
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import INTERRUPTED, Carried, RunConfig
from kerasbench.results.store import JOURNAL, MAX_FILE_BYTES, STAMP, Store, load, read
from kerasbench.runs.resume import executed
from kerasbench.settings import Settings

RUNNER = "kerasbench"  # --python HOST:kerasbench=PATH names what runs kerasbench there
STOP_S = 60.0  # after Ctrl-C: what machines have for ending their runs
KEEPING = threading.Lock()  # one run at a time: those of a hundred machines do not fit into memory

# Scripts, before which F is the folder there.
PUT = 'umask 077; mkdir -p "$F/results" && cd "$F" && rm -rf files && tar -xf -'
START = f'umask 077; [ ! -f "$F/{VARIABLES}" ] || . "$F/{VARIABLES}"; exec {{}} -m kerasbench {{}} --events {{}}'
REMOVE = 'rm -f "$F/results/{}".*; '
# What no longer counted when a run was resumed stays, and so do the variables of a run that has not ended.
TIDY = (
    'cd "$F" && rm -rf files && find results -type f -size 0 -exec rm {} + && if rmdir results 2>/dev/null; '
    f'then rm -f {VARIABLES}; cd .. && rmdir "$F"; fi'
)

Carrier = Shell | dask.DaskCarrier
Say = Callable[[str, str], None]  # a machine, and a line about it


@dataclass(eq=False)
class Remote:
    host: str
    carrier: Carrier
    command: str
    asked: Settings  # of this machine, with files by what the asker calls them
    results: Path
    name: str = "asker"  # of the folder there
    luggage: Luggage = field(default_factory=Luggage)
    python: str = ""  # what runs kerasbench there
    insecure: bool = False
    store: Store | None = None  # where its run is kept here
    cause: str = ""  # why there is less of it than was asked for
    unfinished: bool = False  # what it has measured lies there, and --resume has it go on
    said: list[str] = field(default_factory=list)  # by its doctor, and of what it is
    interpreters: list[str] = field(default_factory=list)  # what --python takes there to go on, as it says
    hello: Hello | None = None  # of the same kerasbench, unless its doctor is asked
    end: End | None = None
    stopped: bool = False

    def stop(self) -> None:
        self.stopped = True
        self.carrier.stop()

    def measure(self, say: Say) -> None:
        """Have it measure, and take in what it says; the causes of failures are kept, not raised."""
        try:
            if self.command == DOCTOR:
                self._hear(say)
            else:
                with _alone(f"{self.name}-{self.host}"):
                    self._measure(say)
        except KerasbenchError as error:
            self.cause = INTERRUPTED if self.stopped else self.cause or str(error)
        if self.cause:
            self.said.append(f"error: {text.blanked(self.cause)}")
        say(self.host, "; ".join(filter(None, [self.cause or "done", self.carrier.warning])))

    def _measure(self, say: Say) -> None:
        deque(self._run(PUT, self.luggage.archive), maxlen=0)  # to its end
        remove = ""
        try:
            self._hear(say)
            if self.end and self.end.file:
                with KEEPING:
                    remove = self._keep(self.end)
        finally:
            if self.end or not self.hello:  # else it may be measuring still
                with suppress(KerasbenchError):
                    deque(self._run(remove + TIDY, b""), maxlen=0)

    def _run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        try:
            yield from self.carrier.run(f'F="${{HOME:?}}/.local/state/kerasbench/asked/{self.name}"; {script}', given)
        except ResultsError as error:
            raise ResultsError(f"the connection has ended: {text.printable(str(error))}") from None

    def _hear(self, say: Say) -> None:
        """Start the command, and take in its lines; raise where it does not end in order, or is not this kerasbench."""
        runner = f'"${{{PYTHON}:-python3}}"'  # of this machine, or of a worker's: the one that runs this
        if self.python:
            is_at_home = self.python.startswith("~/")  # for the shell there to make out
            runner = f'"$HOME"/{shlex.quote(self.python[2:])}' if is_at_home else shlex.quote(self.python)
        script = START.format(runner, self.command, " ".join(words(self.command, self.asked, self.luggage)))
        try:
            for line in _lines(self._run(script)):
                self._take(line, say)
        except UsageError:
            self.carrier.close()
            raise
        except ResultsError:
            if self.end is None:  # what has ended in order may have failed
                raise
        if self.end is None:
            raise ResultsError("the connection has ended before its run")
        self.cause = self.cause or text.one_line(text.printable(self.end.cause))[: 4 * SHOWN]

    def _take(self, line: bytes, say: Say) -> None:
        try:
            message = msgspec.json.decode(line, type=Told)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = text.one_line(line[:80].decode(errors="replace"))
            raise UsageError(f"its answer is not one of kerasbench: {shown!r} ({error})") from None
        if hello := message.hello:
            self.cause = _difference(hello, f"on {self.host}, {self.python or 'python3'}")
            if self.cause and self.command != DOCTOR:
                raise UsageError(self.cause)
            about = f"Python {hello.python}, {hello.interpreter}; kerasbench {hello.kerasbench}, code {hello.code}"
            self.said.append(text.blanked(f"connected; {about}"))
            self.hello, self.unfinished = hello, True
        if self.hello is None:
            raise UsageError("its answer is not one of kerasbench: it did not say which one it is")
        if message.end and message.end.file and not STAMP.fullmatch(message.end.file):
            raise UsageError(f"not the name of a run's file: {message.end.file[:SHOWN]!r}")
        if message.say and self.command == DOCTOR:
            self.said.append(text.blanked(message.say)[:SHOWN])
        elif message.say:
            say(self.host, text.blanked(message.say)[:SHOWN])
        self.interpreters = list(map(text.blanked, message.python)) or self.interpreters
        if message.end:
            self.end, self.unfinished = message.end, message.end.file != ""

    def _keep(self, end: End) -> str:
        """Put its run here, in the place of what it had left before; return what removes it there if it is over."""
        run = read(bytes(end.run), Path(f"{end.file}.json"))
        self.end = End(end.code, end.cause, end.file)  # without the run, which may be large
        asked, config = self.asked, self.luggage.with_names_here(run.config, self.name)
        given = executed(asked.scenarios, ModelConfig(custom=asked.custom, trust=asked.trust))
        is_same = asked.resume or config.keep_env == self.luggage.variables
        if executed(config.scenarios, config.model_config) != given or not is_same:
            raise ResultsError("it measured other files than it was asked for, or with other environment variables")
        carried = Carried(self.host, self.name, self.insecure)
        store = self._earlier(run.started) or Store.create(self.results, run.started)
        try:
            store.finish(dataclasses.replace(run, config=config, carried=carried))
        finally:
            store.journal.unlink(missing_ok=True)  # which has reserved the name
        self.store, self.unfinished = store, run.unfinished
        if run.unfinished:
            self.cause = self.cause or run.stopped_because
        return "" if run.unfinished or run.out_of_time else REMOVE.format(end.file)

    def _earlier(self, started: str) -> Store | None:
        for file in self.results.glob(f"{started.replace(':', '').replace('Z', '')}*.json"):
            with suppress(ResultsError):
                earlier = load(file)
                if earlier.carried and (earlier.carried.host, earlier.carried.share) == (self.host, self.name):
                    return Store(file.with_suffix(JOURNAL))
        return None


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    held, total = bytearray(), 0
    for block in blocks:
        total += len(block)
        if total > MAX_FILE_BYTES:
            raise UsageError(f"it says more than a run can have to say ({total:,} bytes)")
        *ends, rest = block.split(b"\n")
        for end in ends:
            yield bytes(held + end)
            held.clear()
        held += rest


def _difference(there: Hello, python: str) -> str:
    """Return why another kerasbench is there, and what makes it the same; empty where it is the same."""
    version, code = (text.one_line(word)[:SHOWN] for word in (there.kerasbench, there.code))
    if version != __version__:
        return f"kerasbench {version} there, {__version__} here: {python} -m pip install kerasbench=={__version__}"
    if code == (here := all_measuring_code()):
        return ""
    differs = f"has other code ({code}, and {here} here)"
    return f"kerasbench {version} there {differs}: install the same checkout or wheel there"


def _alone(name: str) -> AbstractContextManager[object]:
    """Hold a folder there against another command line here; raise ResultsError where one has it."""
    place = Path(platformdirs.user_state_dir("kerasbench"), "asking")
    try:
        place.mkdir(parents=True, exist_ok=True)
        return FileLock(place / re.sub(r"[^\w.@-]", "_", name)).acquire(timeout=0)
    except Timeout:
        raise ResultsError("another command here measures there for the same --results: wait until it ends") from None
    except (OSError, NotImplementedError):  # a file system without locks
        return nullcontext()


def ask(command: str, settings: Settings, say: Say) -> list[Remote]:
    """Have machines measure, and return what became of each; raise where a setting is amiss, or none can be asked."""
    for_all = dataclasses.replace(settings, hosts=[], cluster="", insecure=False, python=[], results=Settings().results)
    if settings.hosts and settings.cluster:
        raise UsageError("--hosts and --cluster exclude each other: a cluster has its own machines")
    if settings.insecure and settings.hosts:
        raise UsageError("--insecure is for --cluster: ssh encrypts all that --hosts needs")
    if command != DOCTOR:
        config = known.planner(command).configured(for_all)
        if isinstance(config, RunConfig):
            catalog.require_known(config.scenarios, config.model_config, config.suite)
    name, results = folder_name(settings.results), Path(settings.results)
    luggage = packed(for_all)
    shells = nullcontext({host: Shell(host) for host in settings.hosts})
    with dask.connected(settings.cluster, settings.insecure) if settings.cluster else shells as machines:
        remotes = []
        for host, carrier in machines.items():
            runner, interpreters = _python(host, list(machines), settings.python)
            asked = dataclasses.replace(for_all, python=interpreters)
            remotes.append(Remote(host, carrier, command, asked, results, name, luggage, runner, settings.insecure))
        _together(remotes, say)
    return remotes


def _together(remotes: Sequence[Remote], say: Say) -> None:
    """Let them work. Ctrl-C ends each block, and waits for what there still is; the second one waits for nothing."""
    patience_s: float | None = None
    with ThreadPoolExecutor(len(remotes)) as pool:
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
