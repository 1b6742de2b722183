"""The command line: parse, call, print, exit code (``kerasbench/errors.py``); and what an interruption ends."""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import click

from kerasbench import __version__
from kerasbench.cli import measuring
from kerasbench.cli.options import CommandGroup
from kerasbench.cli.preparing import create, doctor, list_, new
from kerasbench.cli.reading import compare, contribute, docs, history, report
from kerasbench.errors import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    KerasbenchError,
    UsageError,
    uninstalled,
)
from kerasbench.text import complain, printable, write_whatever_stdout_takes

NAME = "kerasbench"

environments = CommandGroup(
    "env",
    purposes={"Commands": [create]},
    help="Make a virtual environment for each backend, with the wheels that fit this machine.",
)
app = CommandGroup(
    NAME,
    purposes={
        "Measure": measuring.commands(),
        "Read results": [report, compare, history, contribute],
        "Prepare": [list_, new, doctor, environments],
        "Learn": [docs],
    },
    help="Which Keras 3 backend is fastest for a model on this machine? Measure it.\n\n"
    "Scenarios and options without a command are those of `run`: `kerasbench mnist_dense --quick` is `kerasbench run "
    "mnist_dense --quick`. `kerasbench run --help` shows them.",
    invoke_without_command=True,
)
app = click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")(app)


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    write_whatever_stdout_takes()
    try:
        _hold_streams()
        with heeded():
            if f"_{NAME.upper()}_COMPLETE" in os.environ:  # a shell asks what a command line can go on with
                app.main(given, prog_name=NAME)
            with app.make_context(NAME, list(given) or ["--help"]) as context:
                code: int = app.invoke(context)
        sys.stdout.flush()  # a full disk is said here, and not after the exit code is chosen
    except click.exceptions.Exit as asked:  # --help, --version
        return asked.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `kerasbench | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except Exception as error:
        return _explain(error)
    return code


def _hold_streams() -> None:
    """Put something in the place of closed streams, whose text the next file would get; without stdout, UsageError."""
    if sys.stdout is None:
        raise UsageError("standard output is closed, so nothing can be printed: leave out >&-, or use > /dev/null")
    for name, mode in (("stdin", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


# What to do about errors of the system that name no file.
MENDABLE = {
    errno.ENOENT: "the current folder no longer exists: change to another one",
    errno.ENOSPC: "free disk space",
    errno.EDQUOT: "free disk space",
    errno.EMFILE: "raise the limit of open files: ulimit -n 1024",
    errno.ENOMEM: "free memory: end other programs",
}


def _explain(error: Exception) -> int:
    """Say what is wrong, in one line if a user can mend it, and return the exit code."""
    if isinstance(error, KerasbenchError):
        complain(str(error))
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # `kerasbench env`
        print(error.format_message(), file=sys.stderr)
    elif isinstance(error, click.ClickException):
        complain(error.format_message())
    elif isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith(NAME):
        complain(uninstalled(error.name))
    elif isinstance(error, OSError) and error.filename is not None:
        complain(f"{error.filename}: {error.strerror or error}")
    elif isinstance(error, OSError) and error.errno in MENDABLE:
        complain(f"{error.strerror}: {MENDABLE[error.errno]}")
    else:
        import traceback

        complain("this is a bug in kerasbench: please report it, with the text below and `kerasbench doctor --json`")
        print(printable("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        return EXIT_INTERNAL
    return EXIT_USAGE


# Ctrl-C, SIGTERM and a closed terminal: once ends a run in order, twice at once.

ORDERLY = 2  # interruptions that unwind what is going on; a third comes while that is done, and would only disturb it
AGAIN_S = 0.01  # until one that came where nothing can be raised is raised again: such places are left within µs
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPORTING = "<frozen importlib._bootstrap>"  # the file, in Python's words, of the frames beneath an import
BY_DEFAULT = (signal.SIG_DFL, signal.default_int_handler)  # handlers that nobody has chosen


@dataclass
class Interruptions:
    """Two raise KeyboardInterrupt, the third leaves at once: children follow when their input ends."""

    count: int = 0
    number: int = signal.SIGINT  # of the last one: SIGINT may be ignored (a background job) where SIGTERM is not
    is_held: bool = False  # one that comes now is counted and not raised: another one that stands for it is on its way
    again: list[threading.Timer] = field(default_factory=list)

    def take(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self.count:
            return  # a shell that ends with its terminal says again what the kernel has said
        self.count += 1
        self.number = number
        if self.count > ORDERLY:
            os._exit(EXIT_INTERRUPTED)
        if not self.is_held:
            if not _imports(frame):
                raise KeyboardInterrupt
            self._send_later()

    def lost(self, ignored: "sys.UnraisableHookArgs") -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            self._send_later()
        else:
            sys.__unraisablehook__(ignored)

    def _send_later(self) -> None:  # where Python drops it, or during an import, which might not work again
        self.is_held = True
        self.count -= 1
        timer = threading.Timer(AGAIN_S, self._send, [self.number])
        self.again.append(timer)
        timer.start()
        self.is_held = False  # last: between an assignment and the return Python heeds no signal

    def _send(self, number: int) -> None:
        while self.is_held:
            time.sleep(AGAIN_S)
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def _imports(frame: FrameType | None) -> bool:
    """Tell whether this command line is importing a module; whoever imported what calls ``main`` does not count."""
    while frame is not None and frame.f_code is not main.__code__:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False


@contextmanager
def heeded() -> Iterator[None]:
    """Turn every signal that ends a process into KeyboardInterrupt meanwhile; what is ignored (nohup) stays so."""
    received = Interruptions()
    before = {number: signal.getsignal(number) for number in ENDINGS if signal.getsignal(number) in BY_DEFAULT}
    hook = sys.unraisablehook
    try:
        sys.unraisablehook = received.lost
        for number in before:
            signal.signal(number, received.take)
        yield
    finally:
        for timer in received.again:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
