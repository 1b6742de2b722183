"""Several machines at once: each measures its share of a run (``share.py``), and its records are kept here.

A machine that fails, or vanishes, is a row with its cause; the others go on. What has arrived of it is a run that was
interrupted, and ``--resume`` goes on with it.
"""

import dataclasses
import math
import queue
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from kerasbench import __version__, text
from kerasbench.errors import KerasbenchError, ResultsError, UsageError
from kerasbench.host import commit
from kerasbench.plan import catalog, live
from kerasbench.processes import variables
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results import store as results_store
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import INTERRUPTED, Carried, Run, RunConfig, Trial
from kerasbench.results.store import JOURNAL, MAX_FILE_BYTES, Store, is_held, load, records
from kerasbench.runs.resume import executed
from kerasbench.runs.run import PlannerOf
from kerasbench.runs.share import MOST_LINE_BYTES, SILENCE_S, Ask, Hello, Order, Told, Word, carried
from kerasbench.settings import Settings

DOCTOR = "doctor"  # in place of a command that measures: what is there is looked at
RUNNER = "kerasbench"  # --python HOST:kerasbench=PATH names what runs kerasbench there
ALIVE_S = 20.0  # between two signs of life
STOP_S = 60.0  # after Ctrl-C: what a machine has for ending its run and sending what is left
SKEW_S = 5.0  # clocks that differ by more are named
NO_HELLO = "no answer in {:g} s: something there keeps kerasbench from starting, such as a login script that waits"
SHOWN = 300  # characters of what a machine says
WAITING = 4  # lines that are read ahead for all machines together, at MOST_LINE_BYTES each
MOST_SAID = 100_000  # lines about a run: the longest says some thousands

# A line of a machine, or None: there are no more. Without a machine: Ctrl-C.
Inbox = queue.Queue[tuple["Share | None", bytes | None]]
Say = Callable[[str, str], None]  # a machine, and a line about it


class Carrier(Protocol):
    """What a machine's lines come and go by."""

    def start(self, share: "Share", inbox: Inbox) -> None:
        """Have the lines of a share put into the inbox, and None after the last one."""

    def send(self, line: bytes) -> None:
        """Send a line; nobody waits for it, and nothing happens where the machine is gone."""

    def close(self) -> None:
        """Leave nothing of it behind, here or there."""

    def why(self) -> str:
        """Return why there are no more lines."""


@dataclass(eq=False)
class Share:
    """One machine's share, as the asker sees it."""

    host: str
    carrier: Carrier
    order: Order
    folder: Path
    files: Sequence[bytes] = ()  # lines, the same for all machines
    earlier: Path | None = None  # the file of an interrupted run that it goes on with
    update: str = ""  # what makes another kerasbench there
    insecure: bool = False
    hello: Hello | None = None
    skew_s: float = 0.0  # how much its clock is ahead
    store: Store | None = None
    header: Run | None = None  # the run without its trials
    trials: int = 0
    cause: str = ""  # why it did not measure to its end
    is_done: bool = False  # all of it is on the disk here
    is_over: bool = False
    said: list[str] = field(default_factory=list)  # where it was not asked to measure
    lines_said: int = 0
    python: list[str] = field(default_factory=list)  # what --python takes there to go on, as it says
    _next: int = 0
    _bytes: int = 0
    _awaited: int = 0  # trials that it had when it began
    _known: list[Trial] = field(default_factory=list)
    _began: bool = False  # the journal has its first lines

    @property
    def failed(self) -> str:
        """Why there is less of it than was asked for; empty if there is not."""
        return self.cause or (self.header.stopped_because if self.header and self.header.unfinished else "")

    @property
    def file(self) -> Path | None:
        """What can be read of it here: what it went on with, where it was lost before it had sent all it had."""
        if self.store is None or not (self.is_done or self._began):
            return self.earlier
        return self.store.data if self.is_done else self.store.journal

    @property
    def is_unfinished(self) -> bool:
        return self.header is not None and self.file is not None and (not self.is_done or self.header.unfinished)

    def take(self, line: bytes, say: Say) -> None:
        """Take in a line: put records onto the disk, then acknowledge them; raise KerasbenchError for an unfit one."""
        self._bytes += len(line)
        if len(line) > MOST_LINE_BYTES or self._bytes > MAX_FILE_BYTES:
            raise ResultsError(f"it sent more data than a run can have ({self._bytes:,} bytes)")
        try:
            message = msgspec.json.decode(line, type=Told)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = text.one_line(line[:80].decode(errors="replace"))
            raise ResultsError(f"its answer is not one of kerasbench: {shown!r} ({error})") from None
        if message.number != self._next:
            raise ResultsError(f"line {message.number} came in place of line {self._next}")
        self._next += 1
        if message.hello:
            self._meet(message.hello)
        elif message.say:
            said = text.blanked(message.say)[:SHOWN]
            self.lines_said += 1
            if self.lines_said > MOST_SAID:
                raise ResultsError(f"it sent more messages than a run can have ({self.lines_said:,} lines)")
            if self.order.command == DOCTOR:
                self.said.append(said)
            else:
                say(self.host, said)
        else:
            self._record(message)
            self.carrier.send(msgspec.json.encode(Word(acknowledged=message.number)) + b"\n")

    def _record(self, message: Told) -> None:
        """Put what is acknowledged afterwards onto the disk; what it had before, when all of that is here."""
        if message.begin:
            self._begin(message)
        elif message.trial:
            self._keep(results_store.read_trial(message.trial, self._begun()))
        elif message.end:
            self._end(message)
            self.is_done = True
        else:
            self.cause = text.one_line(text.printable(message.refused))[: 4 * SHOWN] or "it gave no reason"

    def _meet(self, hello: Hello) -> None:
        """Send the order, unless it is another kerasbench that would measure."""
        self.hello, self.skew_s = hello, hello.now_s - time.time()
        if self.order.command != DOCTOR and (differs := self._differs(hello)):
            raise UsageError(differs)
        order = self.order
        if self.earlier is not None:
            order = msgspec.structs.replace(order, earlier=dataclasses.replace(load(self.earlier), carried=None))
        for line in (*self.files, msgspec.json.encode(Ask(order=order)) + b"\n"):
            self.carrier.send(line)

    def _begin(self, message: Told) -> None:
        self.header = self._read(message.begin)
        if self.store is None and self.earlier is not None:
            self.store = Store(self.earlier.with_suffix(JOURNAL))
        elif self.store is None:
            self.store = Store.create(self.folder, self.header.started)
        self._awaited, self._known = message.known, []
        self.python = [text.blanked(word) for word in message.python]
        if not self._awaited:
            self._restart()

    def _read(self, header: bytes) -> Run:
        """Return a run without its trials; raise ResultsError where it executes, or lets in, what nobody has asked for.

        ``--resume`` goes by what a run says of itself.
        """
        record, asked = results_store.read_header(header), self.order.settings
        given = executed(asked.scenarios, ModelConfig(custom=asked.custom, trust=asked.trust))
        config = record.config
        if executed(config.scenarios, config.model_config) != given or config.keep_env != self.order.keep_env:
            raise ResultsError("it measured other files than it was asked for, or with other environment variables")
        return dataclasses.replace(record, carried=Carried(self.host, self.order.share, self.insecure))

    def _restart(self) -> None:
        """Begin the journal again with what the machine had; until all that is here, the old one stays."""
        assert self.store is not None
        self.store.begin(dataclasses.replace(self._begun(), trials=self._known))
        self.store.hold()
        self.trials, self._known, self._awaited, self._began = len(self._known), [], 0, True

    def _keep(self, trial: Trial) -> None:
        assert self.store is not None
        if self._awaited:
            self._known.append(trial)
            if len(self._known) == self._awaited:
                self._restart()
            return
        self.store.add([trial])
        self.trials += 1

    def _begun(self) -> Run:
        if self.header is None:
            raise ResultsError("it sent a trial before its run")
        return self.header

    def _end(self, message: Told) -> None:
        """Put the data file into the journal's place."""
        if self.order.command == DOCTOR:
            return
        self._begun()
        ended = self._read(message.end)
        if message.known != self.trials or self.store is None:
            raise ResultsError(f"it measured {message.known} trials, but {self.trials} arrived")
        whole = load(self.store.journal)
        self.store.finish(dataclasses.replace(ended, trials=whole.trials))
        self.header = ended

    def examined(self) -> list[str]:
        """Return what a doctor says of the machine."""
        if self.hello is None:
            return [f"error: {self.cause}"]
        hello = self.hello
        told = [
            f"connected; Python {hello.python}, {hello.interpreter}; kerasbench {hello.kerasbench}, code {hello.code}"
        ]
        if self._differs(hello):
            told.append(f"error: {self._differs(hello)}")
        if abs(self.skew_s) > SKEW_S:
            told.append(f"warning: its clock is {self.skew_s:+.0f} s off this one: set both by NTP")
        return [text.blanked(line) for line in [*told, *self.said, *([f"error: {self.cause}"] if self.cause else [])]]

    @property
    def is_fit(self) -> bool:
        errors = any(line.startswith("error:") for line in self.said)
        return self.is_done and not errors and self.hello is not None and not self._differs(self.hello)

    def _differs(self, hello: Hello) -> str:
        """Return why another kerasbench is there, and what makes it the same; empty where it is the same."""
        version, code = (text.one_line(word)[:SHOWN] for word in (hello.kerasbench, hello.code))
        if version != __version__:
            return f"kerasbench {version} there, {__version__} here: {self.update}=={__version__}"
        if code != (here := all_measuring_code()):
            return (
                f"kerasbench {version} there has other code ({code}, and {here} here): install the same checkout or "
                "wheel there"
            )
        return ""

    def leave(self, cause: str) -> None:
        """End with the machine; the cause counts where it is not done."""
        self.carrier.close()
        self.is_over = True
        if self.store is not None:
            self.store.release()
            if self.file is None:  # its name was reserved, and nothing has come that could be read
                self.store.journal.unlink(missing_ok=True)
        if not self.is_done:
            self.cause = self.cause or cause


@dataclass
class Gathering:
    """All machines at work at the same time, until each is done or has failed."""

    shares: Sequence[Share]
    say: Say
    inbox: Inbox
    hello_s: float = SILENCE_S  # what a machine has for its first line
    deadline_s: float = math.inf  # after Ctrl-C
    alive_s: float = field(default_factory=time.monotonic)  # when they were given the last sign of life

    def run(self) -> None:
        """Let them work. Ctrl-C ends each block, and waits for what there still is; the second one waits for nothing.

        What comes is taken in by another thread: Ctrl-C, which is raised in this one, breaks no record in two.
        """
        with ThreadPoolExecutor(1) as pool:
            gathering = pool.submit(self._gather)
            while True:
                try:
                    return gathering.result()
                except KeyboardInterrupt:
                    self.inbox.put((None, None))

    def _gather(self) -> None:
        for share in self.shares:
            try:
                share.carrier.start(share, self.inbox)
            except KerasbenchError as error:
                share.leave(str(error))
        greeted_by_s = time.monotonic() + self.hello_s
        while left := [share for share in self.shares if not share.is_over]:
            now_s = time.monotonic()
            if now_s >= self.deadline_s:
                _leave(left, INTERRUPTED)
                return
            silent = [share for share in left if share.hello is None]
            if silent and now_s >= greeted_by_s:
                _leave(silent, NO_HELLO.format(self.hello_s))
                for share in silent:
                    self.say(share.host, share.cause)
                continue
            if now_s - self.alive_s >= ALIVE_S:
                self.alive_s = now_s
                self._tell(left, Word())
            until_s = min(now_s + ALIVE_S, self.deadline_s, greeted_by_s if silent else math.inf)
            with suppress(queue.Empty):
                who, line = self.inbox.get(timeout=until_s - now_s)
                if who is None:
                    self.deadline_s = now_s + STOP_S if self.deadline_s == math.inf else now_s
                    self._stop(left)
                elif who in left:
                    self._take(who, line)

    def _take(self, share: Share, line: bytes | None) -> None:
        try:
            if line is None:
                raise ResultsError(f"the connection has ended: {share.carrier.why()}")
            share.take(line, self.say)
        except KerasbenchError as error:
            share.leave(INTERRUPTED if line is None and self.deadline_s < math.inf else str(error))
            self.say(share.host, share.cause or "done")

    def _stop(self, shares: Sequence[Share]) -> None:
        """Have them end what they measure; those that have not been asked yet are not asked any more."""
        self._tell([share for share in shares if share.hello is not None], Word(stop=True))
        for share in shares:
            if share.hello is None:
                share.leave(INTERRUPTED)

    def _tell(self, shares: Sequence[Share], word: Word) -> None:
        for share in shares:
            share.carrier.send(msgspec.json.encode(word) + b"\n")


def _leave(shares: Sequence[Share], cause: str) -> None:
    with ThreadPoolExecutor(len(shares)) as pool:  # each waits a second for its carrier
        list(pool.map(lambda share: share.leave(cause), shares))


Connect = Callable[[str], Carrier]  # makes what carries the lines of one machine, by the interpreter that answers there
Connections = Callable[[Settings], AbstractContextManager[dict[str, Connect]]]  # machines by their names


def ask(command: str, settings: Settings, say: Say, connections: Connections, planner_of: PlannerOf) -> list[Share]:
    """Have the machines of ``--hosts`` or ``--cluster`` measure their shares, and return what became of each.

    ``connections`` find these machines.

    Raises:
        KerasbenchError: a setting means nothing, or no machine can be asked.
    """
    for_all = dataclasses.replace(settings, hosts=[], cluster="", insecure=False, python=[], results=Settings().results)
    if settings.hosts and settings.cluster:
        raise UsageError("--hosts and --cluster exclude each other: a cluster has its own machines")
    if settings.insecure and settings.hosts:
        raise UsageError("--insecure is for --cluster: ssh encrypts all that --hosts needs")
    if command != DOCTOR:
        config = planner_of(command).configured(for_all)
        if isinstance(config, RunConfig):
            catalog.require_known(config.scenarios, config.model_config, config.suite)
    files = [msgspec.json.encode(Ask(file=file)) + b"\n" for file in carried(for_all)]
    keep_env, asked_in = variables.kept(settings.keep_env), commit()
    folder = Path(settings.results)
    with connections(settings) as connect:
        hosts = list(connect)
        python = {host: _python(host, hosts, settings.python) for host in hosts}
        earlier = _interrupted(folder, hosts, settings.budget is not None) if settings.resume else {}
        shares = []
        for host in [host for host in hosts if host in earlier or not settings.resume]:
            runner, interpreters = python[host]
            for_host = dataclasses.replace(for_all, python=interpreters)
            order = Order(secrets.token_hex(6), command, for_host, keep_env, commit=asked_in)
            file, before = earlier.get(host, (None, None))
            if before is not None and before.carried is not None:
                variables.require_same(before.config.keep_env)
                order = msgspec.structs.replace(order, share=before.carried.share, keep_env=before.config.keep_env)
            update = f"on {host}, {runner or 'python3'} -m pip install kerasbench"
            share = Share(host, connect[host](runner), order, folder, files, file, update, settings.insecure)
            shares.append(share)
        if settings.cluster:  # there a share waits its turn: a worker has one task at a time, and Dask looks after it
            Gathering(shares, say, queue.Queue(), math.inf).run()
        else:
            Gathering(shares, say, queue.Queue(WAITING)).run()
    return shares


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


def _interrupted(folder: Path, hosts: Sequence[str], longer: bool) -> dict[str, tuple[Path, Run]]:
    """Return the newest run of each of these machines, of those where it did not finish.

    Raises:
        ResultsError: there is none.
    """
    newest: dict[str, tuple[Path, Run]] = {}
    gone = ""
    for file, record in records(folder, newest_first=True) if folder.is_dir() else ():
        if live.is_gone(record.config.scenarios):
            gone = gone or f"; {file} measured a model object of a Python process that has ended"
        elif record.carried is not None and record.carried.host in hosts:
            kept = dataclasses.replace(record, trials=[], scenarios=[])
            newest.setdefault(record.carried.host, (file, kept))
    open_runs = {
        host: (file, run) for host, (file, run) in newest.items() if run.unfinished or (longer and run.out_of_time)
    }
    if held := next((file for file, _ in open_runs.values() if is_held(file)), None):
        raise ResultsError(f"{held}: another process is still measuring this run: wait until it ends")
    if not open_runs:
        raise ResultsError(
            f"{folder}: no run on {', '.join(hosts)} can be continued{gone}; leave out --resume to start one"
        )
    return open_runs
