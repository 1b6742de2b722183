"""One run at a time on a machine: two at once would poison each other's numbers."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from kerasbench.errors import MachineBusy
from kerasbench.results import now

# The kernel frees the lock when its holder dies, however it dies: a file that is left behind is no obstacle.
LOCK = Path("/tmp/kerasbench.lock")  # noqa: S108 - one for all users of the machine, whatever their TMPDIR


@contextmanager
def machine_lock(file: Path | None = None) -> Iterator[None]:
    """Hold this machine for a run.

    Raises:
        MachineBusy: another run holds it; the message names it.
    """
    file = file or LOCK
    lock = FileLock(file, timeout=0, mode=0o666)
    try:
        lock.acquire()
    except Timeout:
        raise MachineBusy(busy(_read(_holder(file)))) from None
    except OSError as error:
        raise MachineBusy(
            f"{file}: the lock of this machine cannot be taken: {error.strerror}; remove the file"
        ) from None
    try:
        _write(_holder(file), {"pid": os.getpid(), "since": now(), "command": shlex.join(sys.argv)})
        yield
    finally:
        with suppress(OSError):
            _holder(file).unlink()
        lock.release()


def busy(holder: dict[str, Any]) -> str:
    """Return what to say of the run that holds the machine, by what it wrote down."""
    who = f"process {holder['pid']}, since {holder['since']}: {holder['command']}" if holder else "it gives no name"
    return f"another kerasbench run is measuring on this machine ({who}); wait for its end, or stop it"


def _holder(file: Path) -> Path:
    return file.with_suffix(".json")


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    named = isinstance(found, dict) and {"pid", "since", "command"} <= found.keys()
    return found if named and isinstance(found["pid"], int) and psutil.pid_exists(found["pid"]) else {}


def _write(file: Path, content: dict[str, Any]) -> None:
    with suppress(OSError):  # the lock holds without it; only its name is missing then
        file.unlink(missing_ok=True)
        file.write_text(json.dumps(content), "utf-8")
