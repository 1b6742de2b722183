"""Files that are replaced as a whole, and folders that go with their process."""

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kerasbench.errors import ResultsError
from kerasbench.text import MADE

PARTIAL = ".partial"
MAX_PAGE_BYTES = 64 << 20  # a page of all built-in scenarios has a thousandth of that


def read_plain(file: Path, most_bytes: int) -> bytes:
    """Return what a file holds, up to the size that it says it has: a FIFO, a device and /proc may never end.

    Raises OSError if it cannot be read, and ResultsError if it is no plain file, or a larger one.
    """
    status = file.stat()  # before it is opened: opening alone does something to some devices
    if not stat.S_ISREG(status.st_mode):
        raise ResultsError(f"{file}: not a file")
    if status.st_size > most_bytes:
        raise ResultsError(f"{file}: larger than {most_bytes:,} bytes: not read")
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        return stream.read(status.st_size) or b""


def replace_page(page: Path, text: str) -> None:
    """Write a page as ``replace`` does; raise ResultsError if somebody else made it, or wrote below its last line."""
    try:
        before = read_plain(page, MAX_PAGE_BYTES).decode("utf-8", "replace").rstrip()
    except FileNotFoundError:
        before = MADE
    except OSError:
        before = ""
    if MADE not in before:
        why = "kerasbench did not write this page: move it, or keep the results in a folder of their own"
        raise ResultsError(f"{page}: left as it is, because {why}")
    if not before.endswith(MADE):
        why = "there is text below the last line that kerasbench wrote: move that text elsewhere"
        raise ResultsError(f"{page}: left as it is, because {why}")
    replace(page, text.encode())


def replace(file: Path, content: bytes) -> None:
    """Write beside the file, sync, rename: a reader sees the old whole or the new whole.

    The file keeps its permissions. Two processes that write it at once do not meet. Nothing is written through a link,
    which may be anybody's: a folder of results comes from a checkout, too. Raises ResultsError where the disk refuses.
    """
    if file.is_symlink():
        raise ResultsError(f"{file}: left as it is, because it is a link: replace it with a file")
    if file.is_dir():
        raise ResultsError(f"{file}: cannot be written: it is a folder")
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}{PARTIAL}")  # nobody can put a link there before
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if file.exists():
            shutil.copymode(file, partial)
        partial.replace(file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be written: {error.strerror}; its old content is kept") from None
    finally:
        with suppress(OSError):  # a second Ctrl-C, or a full disk
            partial.unlink(missing_ok=True)


SCRATCH_PREFIX = "kerasbench-scratch-"
SCRATCH_LOCK = ".lock"


@contextmanager
def scratch_folder(prefix: str = SCRATCH_PREFIX) -> Iterator[str]:
    """The kernel's lock in it says that its process lives; it is free once that has gone, however it went."""
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
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                with FileLock(folder / SCRATCH_LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
