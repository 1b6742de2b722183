"""Write a file so that a reader sees the old whole or the new whole.

A folder for a child's files, or for files of a run: gone with it, or removed after a parent that was killed.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kerasbench.errors import ResultsError
from kerasbench.text import MADE

PARTIAL = ".partial"


def is_own(page: Path) -> bool:
    """Tell whether a page may be written: kerasbench made it, or there is none."""
    try:
        return MADE in page.read_text("utf-8")
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False


def replace_page(page: Path, text: str) -> None:
    """Write a page as ``replace`` does, but none that somebody else has made.

    Raises:
        ResultsError: it is somebody else's, or the disk refuses.
    """
    if not is_own(page):
        raise ResultsError(
            f"{page}: left as it is, because kerasbench did not make this page: move it, or keep the results in a "
            "folder of their own"
        )
    replace(page, text.encode())


def replace(file: Path, content: bytes) -> None:
    """Write beside the file, sync, rename: a reader sees the old whole or the new whole.

    A link stays one, and the file keeps its permissions. Two processes that write it at once do not meet.

    Raises:
        ResultsError: the disk refuses; what the file held before is kept.
    """
    target = Path(os.path.realpath(file))
    partial = target.with_name(f"{target.name}.{os.getpid()}{PARTIAL}")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be written: {error.strerror}; what it held before is kept") from None
    finally:
        with suppress(OSError):  # a second Ctrl-C, or a full disk
            partial.unlink(missing_ok=True)


SCRATCH_PREFIX = "kerasbench-scratch-"


@contextmanager
def scratch_folder(prefix: str = SCRATCH_PREFIX) -> Iterator[str]:
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
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*"):
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
