"""A folder for a child's files, or for files of a run: gone with it, or removed after a parent that was killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "kerasbench-scratch-"


@contextmanager
def scratch_folder(prefix: str = PREFIX) -> Iterator[str]:
    """Make a folder and remove it at the end. ``prefix`` begins its name, and with PREFIX.

    The kernel's lock on it says that its parent lives; it is free once the parent has gone, however it went.
    """
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        descriptor = _lock(folder)
        try:
            yield folder
        finally:
            if descriptor is not None:
                os.close(descriptor)


def remove_abandoned() -> None:
    """Remove the folders of this user's parents that were killed: compilation caches can be large."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            descriptor = _lock(str(folder))
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def _lock(folder: str) -> int | None:
    """Lock a folder and return what holds the lock until it is closed; None where another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks: then nobody sweeps there
        os.close(descriptor)
        return None
    return descriptor
