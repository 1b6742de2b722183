"""One run at a time on a machine: two at once would poison each other's numbers."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from filelock import BaseFileLock, FileLock, Timeout

from kerasbench.errors import MachineBusy, ResultsError
from kerasbench.files import read_plain
from kerasbench.text import blanked, now

# The kernel frees the lock when its holder dies, however it dies: a file that is left behind is no obstacle.
LOCK = Path("/tmp/kerasbench.lock")  # noqa: S108 - one for all users of the machine, whatever their TMPDIR
MAX_CARD_BYTES = 1 << 16  # a command line, with room to spare
RETRY_S = 2.0  # a look takes well under a millisecond, so that it costs the run that is waited for nothing
FOR_ALL = 0o666  # filelock sets it in spite of the umask, so that another user can lock the same file


@contextmanager
def machine_lock(file: Path | None = None, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold this machine for a run. ``on_wait``: wait as long as others hold it, and be told what to say of each."""
    file = file or LOCK
    lock = FileLock(file, timeout=0, mode=FOR_ALL)
    _acquire(lock, file, on_wait)
    # Each user's runs give their names in a file of their own: in /tmp nobody may replace another's.
    card = file.with_suffix(f".{os.getuid()}.json")
    program, *words = sys.argv  # all users see them, and options may hold a secret
    command = " ".join([Path(program).name, *(word for word in words[:1] if word.isalpha())])
    holder = {"pid": os.getpid(), "born": _born(os.getpid()), "since": now(), "command": command}
    try:
        with suppress(OSError):  # the lock holds without it; only its name is missing then
            card.unlink(missing_ok=True)
            with card.open("x", encoding="utf-8") as stream:  # never through what somebody else has put there
                json.dump(holder, stream)
        yield
    finally:
        with suppress(OSError):
            card.unlink()
        lock.release()


def _acquire(lock: BaseFileLock, file: Path, on_wait: Callable[[str], None] | None) -> None:
    announced = None
    while True:
        try:
            lock.acquire()
            return
        except Timeout:
            holder = _holder(file)
        except (OSError, NotImplementedError) as error:
            remedy = f"remove the file{_owner(file)}" if file.exists() else f"make {file.parent} writable"
            why = getattr(error, "strerror", None) or error
            raise MachineBusy(f"{file}: the lock of this machine cannot be taken: {why}; {remedy}") from None
        if on_wait is None:
            advice = "wait until it ends (--wait does that for you), or stop it"
            raise MachineBusy(f"another kerasbench run is measuring on this machine ({holder}); {advice}")
        if holder != announced:
            on_wait(f"waiting for another kerasbench run on this machine ({holder}); Ctrl-C stops waiting")
            announced = holder
        time.sleep(RETRY_S)


def _holder(file: Path) -> str:
    """Return what the run that holds the machine wrote down; any user can have written anything there."""
    for card in sorted(file.parent.glob(f"{file.stem}.*.json")):
        with suppress(ResultsError, OSError, ValueError, RecursionError, KeyError, TypeError):
            holder = json.loads(read_plain(card, MAX_CARD_BYTES))
            if _born(holder["pid"]) == holder["born"]:
                return blanked(f"process {holder['pid']}, since {holder['since']}: {holder['command']}")
    return "unknown process"


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
