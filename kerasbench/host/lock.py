"""One run at a time on a machine: two at once would poison each other's numbers."""

import json
import os
import pwd
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import BaseFileLock, FileLock, Timeout

from kerasbench.errors import MachineBusy
from kerasbench.text import blanked, now

# The kernel frees the lock when its holder dies, however it dies: a file that is left behind is no obstacle.
LOCK = Path("/tmp/kerasbench.lock")  # noqa: S108 - one for all users of the machine, whatever their TMPDIR
MAX_CARD_BYTES = 1 << 16  # a command line, with room to spare
RETRY_S = 2.0  # a look takes well under a millisecond, so that it costs the run that is waited for nothing
FOR_ALL = 0o666  # filelock sets it in spite of the umask, so that another user can lock the same file


@contextmanager
def machine_lock(file: Path | None = None, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold this machine for a run.

    ``on_wait``: wait as long as other runs hold it, and be told what to say of each of them.
    """
    file = file or LOCK
    lock = FileLock(file, timeout=0, mode=FOR_ALL)
    _acquire(lock, file, on_wait)
    own = _card(file)
    try:
        _write(own, {"pid": os.getpid(), "born": _born(os.getpid()), "since": now(), "command": _command()})
        yield
    finally:
        with suppress(OSError):
            own.unlink()
        lock.release()


def _command() -> str:
    """Return what this run is called to others: all users see it, and options may hold a secret."""
    name, *words = sys.argv
    return " ".join([Path(name).name, *(word for word in words[:1] if word.isalpha())])


def _acquire(lock: BaseFileLock, file: Path, on_wait: Callable[[str], None] | None) -> None:
    announced: dict[str, Any] | None = None
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
            raise MachineBusy(
                f"another kerasbench run is measuring on this machine ({_who(holder)}); wait until it ends (--wait "
                "does that for you), or stop it"
            )
        if holder != announced:
            on_wait(f"waiting for another kerasbench run on this machine ({_who(holder)}); Ctrl-C stops waiting")
            announced = holder
        time.sleep(RETRY_S)


def _who(holder: dict[str, Any]) -> str:
    """Return what a run that holds the machine wrote down; any user can have written it."""
    if not holder:
        return "unknown process"
    return blanked(f"process {holder['pid']}, since {holder['since']}: {holder['command']}")


def _card(file: Path) -> Path:
    """Return where a run of this user gives its name; each user has a file: in /tmp nobody may replace another's."""
    return file.with_suffix(f".{os.getuid()}.json")


def _holder(file: Path) -> dict[str, Any]:
    cards = map(_read, sorted(file.parent.glob(f"{file.stem}.*.json")))
    return next((card for card in cards if card and _born(card["pid"]) == card["born"]), {})


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():  # a pipe would be waited for
        return {}
    try:
        with file.open("rb") as stream:
            found = json.loads(stream.read(MAX_CARD_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    named = isinstance(found, dict) and {"pid", "born", "since", "command"} <= found.keys()
    return found if named and type(found["pid"]) is int else {}


def _born(pid: int) -> float | None:
    """Return when a process began, which tells it from a later one of the same number; None where there is none."""
    try:
        return psutil.Process(pid).create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None


def _write(file: Path, content: dict[str, Any]) -> None:
    with suppress(OSError):  # the lock holds without it; only its name is missing then
        file.unlink(missing_ok=True)
        with file.open("x", encoding="utf-8") as stream:  # never through what somebody else has put there
            stream.write(json.dumps(content))


def _owner(file: Path) -> str:
    """Return who must remove the lock file, where that is somebody else: in /tmp only its owner may."""
    try:
        owner = file.lstat().st_uid
        return "" if owner == os.getuid() else f", which is {pwd.getpwuid(owner).pw_name}'s"
    except (OSError, KeyError):
        return ""
