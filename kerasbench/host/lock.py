"""One run at a time on a machine: two at once would poison each other's numbers."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
from filelock import BaseFileLock, FileLock, Timeout

from kerasbench.errors import MachineBusy, ResultsError
from kerasbench.files import read_plain
from kerasbench.text import blanked, now

# The kernel frees the lock when its holder dies, however it dies: a file that is left behind is no obstacle.
LOCK = Path("/tmp/kerasbench.lock")  # noqa: S108 - one for all users of the machine, whatever their TMPDIR
MAX_CARD_BYTES = 1 << 16  # a command line, with room to spare
TICKET = ".waits"  # how the name of a ticket ends
RETRY_S = 2.0  # a look takes well under a millisecond, so that it costs the run that is waited for nothing
FOR_ALL = 0o666  # filelock sets it in spite of the umask, so that another user can lock the same file


@contextmanager
def machine_lock(file: Path | None = None, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold this machine for a run. ``on_wait``: wait as long as others hold it, and be told what to say of each.

    Those who wait are served in turn: by the times in the names of the tickets that they have drawn.
    """
    file = file or LOCK
    lock = FileLock(file, timeout=0, mode=FOR_ALL)
    with _ticket(file) if on_wait else nullcontext(None) as ticket:
        _acquire(lock, file, on_wait, ticket)
    # Each user's runs give their names in a file of their own: in /tmp nobody may replace another's.
    card = file.with_suffix(f".{os.getuid()}.json")
    try:
        with _written(card):
            yield
    finally:
        lock.release()


@contextmanager
def _written(card: Path) -> Iterator[None]:
    """Have a file that names this process, for as long as this lasts."""
    program, *words = sys.argv  # all users see them, and options may hold a secret
    command = " ".join([Path(program).name, *(word for word in words[:1] if word.isalpha())])
    process = {"pid": os.getpid(), "born": _born(os.getpid()), "since": now(), "command": command}
    try:
        with suppress(OSError):  # the lock holds without it; only its name, or its turn, is missing then
            card.unlink(missing_ok=True)
            with card.open("x", encoding="utf-8") as stream:  # never through what somebody else has put there
                json.dump(process, stream)
        yield
    finally:
        with suppress(OSError):
            card.unlink()


@contextmanager
def _ticket(file: Path) -> Iterator[Path]:
    ticket = file.with_suffix(f".{time.time_ns():020}-{os.getpid()}{TICKET}")  # by the clock that all processes share
    with _written(ticket):
        yield ticket


def _waiting(file: Path, ticket: Path) -> list[str]:
    """Return the runs that drew their tickets before this one, and still wait, first come first."""
    earlier = sorted(other for other in file.parent.glob(f"{file.stem}.*{TICKET}") if other.name < ticket.name)
    return [process for other in earlier if (process := _process(other, is_running=True))]


def _acquire(lock: BaseFileLock, file: Path, on_wait: Callable[[str], None] | None, ticket: Path | None) -> None:
    announced = None
    while True:
        first = _waiting(file, ticket) if ticket else []
        try:
            if not first:
                lock.acquire()
                return
        except Timeout:
            pass
        except (OSError, NotImplementedError) as error:
            remedy = f"remove the file{_owner(file)}" if file.exists() else f"make {file.parent} writable"
            why = getattr(error, "strerror", None) or error
            raise MachineBusy(f"{file}: the lock of this machine cannot be taken: {why}; {remedy}") from None
        holder = _holder(file) or next(iter(first), "unknown process")
        if on_wait is None:
            advice = "wait until it ends (--wait does that for you), or stop it"
            raise MachineBusy(f"another kerasbench run is measuring on this machine ({holder}); {advice}")
        before = f"; waiting before this run: {len(first)}" if first else ""
        if (holders := f"{holder}{before}") != announced:
            on_wait(f"waiting for another kerasbench run on this machine ({holders}); Ctrl-C stops waiting")
            announced = holders
        time.sleep(RETRY_S)


def _holder(file: Path) -> str:
    """Return what the run that holds the machine wrote down; any user can have written anything there."""
    return next(filter(None, map(_process, sorted(file.parent.glob(f"{file.stem}.*.json")))), "")


def _process(card: Path, is_running: bool = False) -> str:
    """Return the process that a file names; empty where it is gone, or the file is none of these.

    ``is_running``: empty also where it is stopped (Ctrl-Z), which would keep all behind it waiting.
    """
    with suppress(ResultsError, OSError, ValueError, RecursionError, KeyError, TypeError, psutil.Error):
        process = json.loads(read_plain(card, MAX_CARD_BYTES))
        is_stopped = is_running and psutil.Process(process["pid"]).status() == psutil.STATUS_STOPPED
        if _born(process["pid"]) == process["born"] and not is_stopped:
            return blanked(f"process {process['pid']}, since {process['since']}: {process['command']}")
    return ""


def _born(pid: int) -> float | None:
    """Return when a process began, which tells it from a later one of the same number; None where there is none."""
    try:
        return psutil.Process(pid).create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None


def _owner(file: Path) -> str:
    with suppress(OSError, KeyError):  # a user without a name
        return f", which is {file.owner()}'s"
    return ""
