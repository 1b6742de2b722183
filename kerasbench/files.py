"""Files that are replaced as a whole, and folders that go with their process."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kerasbench.errors import ResultsError
from kerasbench.text import MADE

PARTIAL = ".partial"


def replace_page(page: Path, text: str) -> None:
    """Write a page as ``replace`` does, unless somebody else has made it.

    Raises:
        ResultsError: it is somebody else's, or the disk refuses.
    """
    try:
        is_own = MADE in page.read_text("utf-8")
    except FileNotFoundError:
        is_own = True
    except (OSError, UnicodeDecodeError):
        is_own = False
    if not is_own:
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
    if target.is_dir():
        raise ResultsError(f"{file}: cannot be written: it is a folder")
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
SCRATCH_LOCK = ".lock"


@contextmanager
def scratch_folder(prefix: str = SCRATCH_PREFIX) -> Iterator[str]:
    """Make a folder whose name begins with a prefix, and remove it at the end.

    The kernel's lock in it says that its process lives; it is free once that has gone, however it went.
    """
    from filelock import FileLock  # which takes as long to import as all else of a short command

    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        lock = FileLock(Path(folder, SCRATCH_LOCK))
        with suppress(OSError, NotImplementedError):  # a file system without locks: then nobody sweeps there
            lock.acquire(timeout=0)
        try:
            yield folder
        finally:
            lock.release()


def remove_abandoned() -> None:
    """Remove the folders of this user's processes that were killed: compilation caches can be large."""
    from filelock import FileLock, Timeout

    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*"):
        with suppress(OSError, NotImplementedError, Timeout):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                with FileLock(folder / SCRATCH_LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
