"""Several machines at once: each runs the ordinary command, and keeps its ordinary file until that is here."""

import dataclasses
import re
import shlex
import threading
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
from kerasbench.machines.bundle import VARIABLES, RemoteBundle, folder_name, packed, shell_words
from kerasbench.machines.lines import End, Handshake, RemoteMessage
from kerasbench.machines.ssh import PYTHON, SHOWN, Shell
from kerasbench.modes import registry
from kerasbench.plan import catalog
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import INTERRUPTED, RemoteOrigin, RunConfig
from kerasbench.results.store import JOURNAL, MAX_FILE_BYTES, STAMP, Store, load, read
from kerasbench.runs.resume import executed
from kerasbench.settings import DOCTOR, Settings

RUNNER = "kerasbench"  # --python HOST:kerasbench=PATH names what runs kerasbench there
STOP_S = 60.0  # after Ctrl-C: what machines have for ending their runs
KEEPING = threading.Lock()  # one run at a time: those of a hundred machines do not fit into memory

# Scripts, before which F is the folder there.
PUT = 'umask 077; mkdir -p "$F/results" && cd "$F" && rm -rf files && tar -xf -'
# What no longer counted when a run was resumed stays, and so do the variables of a run that has not ended.
TIDY = (
    'cd "$F" && rm -rf files && find results -type f -size 0 -exec rm {} + && if rmdir results 2>/dev/null; '
    f'then rm -f {VARIABLES}; cd .. && rmdir "$F"; fi'
)

Carrier = Shell | dask.DaskCarrier
Say = Callable[[str, str], None]  # a machine, and a line about it


def start_script(python: str, command: str, words: Sequence[str]) -> str:
    """Return the script that starts kerasbench there; ``words`` are those of a shell."""
    interpreter = f'"${{{PYTHON}:-python3}}"'  # of this machine, or of a worker's: the one that runs this
    if python.startswith("~/"):  # for the shell there to make out
        interpreter = f'"$HOME"/{shlex.quote(python[2:])}'
    elif python:
        interpreter = shlex.quote(python)
    variables = f'[ ! -f "$F/{VARIABLES}" ] || . "$F/{VARIABLES}"'
    return f"umask 077; {variables}; exec {interpreter} -m kerasbench {command} --events {' '.join(words)}"


@dataclass(frozen=True)
class RemoteConfig:
    """What one machine is to measure."""

    host: str
    command: str
    settings: Settings  # with files by the names that they have here
    results: Path  # the folder here
    folder: str = "asker"  # the name of the folder there
    bundle: RemoteBundle = field(default_factory=RemoteBundle)
    python: str = ""  # runs kerasbench there; empty: python3
    insecure: bool = False

    @property
    def shown_python(self) -> str:
        return self.python or "python3"


@dataclass(eq=False)
class RemoteRun:
    """A run on another machine, and what has become of it so far."""

    config: RemoteConfig
    carrier: Carrier
    handshake: Handshake | None = None  # of the same kerasbench, unless its doctor is asked
    end: End | None = None
    store: Store | None = None  # of its run here
    cause: str = ""  # why there is less of it than was asked for
    unfinished: bool = False  # what it has measured lies there, and --resume has it go on
    report: list[str] = field(default_factory=list)  # lines of its doctor, and about its kerasbench
    interpreters: list[str] = field(default_factory=list)  # what --python takes there to go on, as it says
    stopped: bool = False

    @property
    def host(self) -> str:
        return self.config.host

    def stop(self) -> None:
        self.stopped = True
        self.carrier.stop()

    def measure(self, say: Say) -> None:
        """Have it measure, and take in its messages; the causes of failures are kept, not raised."""
        try:
            if self.config.command == DOCTOR:
                self._start_and_follow(say)
            else:
                with _alone(f"{self.config.folder}-{self.host}"):
                    self._measure(say)
        except KerasbenchError as error:
            self.cause = INTERRUPTED if self.stopped else self.cause or str(error)
        if self.cause:
            self.report.append(f"error: {text.blanked(self.cause)}")
        say(self.host, "; ".join(filter(None, [self.cause or "done", self.carrier.warning])))

    def _measure(self, say: Say) -> None:
        self._run_to_end(PUT, self.config.bundle.archive)
        remove = ""
        try:
            self._start_and_follow(say)
            if self.end and self.end.file:
                with KEEPING:
                    remove = self._store_run(self.end)
        finally:
            if self.end or not self.handshake:  # else it may be measuring still
                with suppress(KerasbenchError):
                    self._run_to_end(remove + TIDY, b"")

    def _run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        folder = f"${{HOME:?}}/.local/state/kerasbench/asked/{self.config.folder}"
        try:
            yield from self.carrier.run(f'F="{folder}"; {script}', given)
        except ResultsError as error:
            raise ResultsError(f"the connection has ended: {text.printable(str(error))}") from None

    def _run_to_end(self, script: str, given: bytes) -> None:
        for _ in self._run(script, given):
            pass

    def _start_and_follow(self, say: Say) -> None:
        """Start the command, and take in its lines; raise where it does not end in order, or is not this kerasbench."""
        config = self.config
        words = shell_words(config.settings, config.bundle)
        try:
            for line in _lines(self._run(start_script(config.python, config.command, words))):
                self._take(_message(line), say)
        except UsageError:
            self.carrier.close()
            raise
        except ResultsError:
            if self.end is None:  # what has ended in order may have failed
                raise
        if self.end is None:
            raise ResultsError("the connection has ended before its run")
        self.cause = self.cause or text.one_line(text.printable(self.end.cause))[: 4 * SHOWN]

    def _take(self, message: RemoteMessage, say: Say) -> None:
        if message.handshake:
            self._shake_hands(message.handshake)
        if self.handshake is None:
            raise UsageError("its answer does not come from kerasbench: it names no version")
        if message.end and message.end.file and not STAMP.fullmatch(message.end.file):
            raise UsageError(f"not the name of a run's file: {message.end.file[:SHOWN]!r}")
        line = text.blanked(message.line)[:SHOWN]
        if line and self.config.command == DOCTOR:
            self.report.append(line)
        elif line:
            say(self.host, line)
        self.interpreters = list(map(text.blanked, message.interpreters)) or self.interpreters
        if message.end:
            self.end, self.unfinished = message.end, message.end.file != ""

    def _shake_hands(self, there: Handshake) -> None:
        """Raise UsageError for another kerasbench, which only its doctor may be."""
        self.cause = _difference(there, f"on {self.host}, {self.config.shown_python}")
        if self.cause and self.config.command != DOCTOR:
            raise UsageError(self.cause)
        about = f"Python {there.python}, {there.interpreter}; kerasbench {there.kerasbench}, code {there.code}"
        self.report.append(text.blanked(f"connected; {about}"))
        self.handshake, self.unfinished = there, True

    def _store_run(self, end: End) -> str:
        """Store its run here, in place of an earlier part of it; return what deletes it there if it is over."""
        run = read(bytes(end.run), Path(f"{end.file}.json"))
        self.end = End(end.code, end.cause, end.file)  # without the run, which may be large
        config = self.config.bundle.with_names_here(run.config, self.config.folder)
        self._require_same_files(config)
        origin = RemoteOrigin(self.host, self.config.folder, self.config.insecure)
        store = self._earlier_part(run.started) or Store.create(self.config.results, run.started)
        try:
            store.finish(dataclasses.replace(run, config=config, carried=origin))
        finally:
            store.journal.unlink(missing_ok=True)  # which has reserved the name
        self.store, self.unfinished = store, run.unfinished
        if run.unfinished:
            self.cause = self.cause or run.stopped_because
        return "" if run.unfinished or run.out_of_time else f'rm -f "$F/results/{end.file}".*; '

    def _require_same_files(self, there: RunConfig) -> None:
        """Raise ResultsError for the configuration of a run that has executed what it was not asked to."""
        settings = self.config.settings
        here = executed(settings.scenarios, ModelConfig(custom=settings.custom, trust=settings.trust))
        has_variables = settings.resume or there.keep_env == self.config.bundle.variables
        if executed(there.scenarios, there.model_config) != here or not has_variables:
            raise ResultsError("it measured other files than it was asked for, or with other environment variables")

    def _earlier_part(self, started: str) -> Store | None:
        for file in self.config.results.glob(f"{started.replace(':', '').replace('Z', '')}*.json"):
            with suppress(ResultsError):
                origin = load(file).carried
                if origin and (origin.host, origin.share) == (self.host, self.config.folder):
                    return Store(file.with_suffix(JOURNAL))
        return None


def _message(line: bytes) -> RemoteMessage:
    try:
        return msgspec.json.decode(line, type=RemoteMessage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shown = text.one_line(line[:80].decode(errors="replace"))
        raise UsageError(f"its answer does not come from kerasbench: {shown!r} ({error})") from None


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    held, total = bytearray(), 0
    for block in blocks:
        total += len(block)
        if total > MAX_FILE_BYTES:
            raise UsageError(f"its answer is longer than that of a run can be ({total:,} bytes)")
        *ends, rest = block.split(b"\n")
        for end in ends:
            yield bytes(held + end)
            held.clear()
        held += rest


def _difference(there: Handshake, python: str) -> str:
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


def ask(command: str, settings: Settings, say: Say) -> list[RemoteRun]:
    """Have machines measure, and return what became of each; raise where a setting is amiss, or none can be asked."""
    for_all = dataclasses.replace(settings, hosts=[], cluster="", insecure=False, python=[], results=Settings().results)
    if settings.hosts and settings.cluster:
        raise UsageError("--hosts and --cluster exclude each other: a cluster has its own machines")
    if settings.insecure and settings.hosts:
        raise UsageError("--insecure is for --cluster: ssh encrypts all that --hosts needs")
    if command != DOCTOR:
        config = registry.config_of(command, for_all)
        if isinstance(config, RunConfig):
            catalog.require_known(config.scenarios, config.model_config, config.suite)
    bundle = packed(for_all)
    shells = nullcontext({host: Shell(host) for host in settings.hosts})
    with dask.connected(settings.cluster, settings.insecure) if settings.cluster else shells as machines:
        remotes = []
        for host, carrier in machines.items():
            runner, interpreters = _python(host, list(machines), settings.python)
            remote = RemoteConfig(
                host,
                command,
                dataclasses.replace(for_all, python=interpreters),
                results=Path(settings.results),
                folder=folder_name(settings.results),
                bundle=bundle,
                python=runner,
                insecure=settings.insecure,
            )
            remotes.append(RemoteRun(remote, carrier))
        _together(remotes, say)
    return remotes


def _together(remotes: Sequence[RemoteRun], say: Say) -> None:
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
