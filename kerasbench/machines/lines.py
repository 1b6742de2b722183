"""A run as JSON lines (``--events``), told to the machine that has started this command.

::

    {"handshake": {...}}                  who measures
    {"interpreters": ["torch@old=/..."]}  what --python takes to go on with it, where no file says so
    {"line": "[1/8] mnist_dense torch cpu: 2.10 ms ..."}
    {"end": {"code": 0, "file": "2026-11-27T021000", "run": {...}}}   the last one, with what the file holds

The end of the standard input is Ctrl-C.
"""

import io
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from pathlib import Path

import msgspec
from rich.console import Console

from kerasbench import __version__
from kerasbench.errors import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, KerasbenchError
from kerasbench.machines.ssh import BLOCK, SHOWN
from kerasbench.modes import registry
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import INTERRUPTED
from kerasbench.results.store import as_line, records
from kerasbench.runs.run import SUPERSEDED, measured
from kerasbench.settings import Settings


class Handshake(msgspec.Struct, frozen=True):
    kerasbench: str
    code: str  # the hash of the code that measures
    python: str
    interpreter: str


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    code: int
    cause: str = ""  # why it measured less than was asked for, where no file says so
    file: str = ""  # its name there, without the ending
    run: msgspec.Raw = msgspec.Raw()


class RemoteMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    handshake: Handshake | None = None
    interpreters: list[str] = []
    line: str = ""
    end: End | None = None


class Lines(io.StringIO):
    def __init__(self, outgoing: int) -> None:
        super().__init__()
        self._outgoing, self._unsent = os.fdopen(outgoing, "wb"), ""

    def send(self, message: RemoteMessage) -> None:
        with suppress(OSError):  # nobody hears any more: the end of the input says so, too
            self._outgoing.write(msgspec.json.encode(message) + b"\n")
            self._outgoing.flush()

    def write(self, text: str) -> int:
        *whole, self._unsent = (self._unsent + text).split("\n")
        for line in filter(str.strip, whole):
            self.send(RemoteMessage(line=line[:SHOWN]))  # so short, it is written at once: Ctrl-C leaves no half of it
        return len(text)


def run_as_lines(act: Callable[[Lines], End]) -> int:
    """Run a command whose output is lines, and return its exit code; whatever else it prints goes to stderr."""
    lines = Lines(os.dup(sys.stdout.fileno()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines.send(
        RemoteMessage(handshake=Handshake(__version__, all_measuring_code(), platform.python_version(), sys.executable))
    )
    end = End(EXIT_INTERNAL, "this is a bug in kerasbench: type the command there, and report what it says")
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        with redirect_stderr(lines):
            end = act(lines)
    except KerasbenchError as error:
        end = End(error.exit_code, str(error))
    except KeyboardInterrupt:
        end = End(EXIT_INTERRUPTED, INTERRUPTED)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # all is over but the last line
        lines.send(RemoteMessage(end=end))
    return end.code


def _end_with_input() -> None:
    with suppress(OSError):
        while os.read(sys.stdin.fileno(), BLOCK):
            pass
    # Not SIGINT, which is ignored in what a shell has put into the background.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def measure(command: str, settings: Settings, lines: Lines) -> End:
    """Measure as on a command line, without a page; raise KerasbenchError where nothing can be measured."""
    folder = Path(settings.results)
    for file, run in records(folder, newest_first=True) if settings.resume and any(folder.glob("*.json")) else ():
        if run.stopped_because != SUPERSEDED:
            if run.unfinished or (settings.budget is not None and run.out_of_time):
                break
            # Whoever asked for it was gone before it was fetched.
            return End(EXIT_OK, "", file.stem, msgspec.Raw(as_line(run).strip()))
    progress = ConsoleProgress(Console(file=lines, width=SHOWN, highlight=False), registry.sentences)
    config, chosen = registry.configured(command, settings, progress)
    lines.send(RemoteMessage(interpreters=chosen.to_name_again()))
    with measured(config, folder, chosen, registry.planner, progress, settings.wait) as finished:
        code = EXIT_USAGE if finished.unsaved else EXIT_OK
        return End(code, finished.unsaved, finished.store.data.stem, msgspec.Raw(as_line(finished.record).strip()))
