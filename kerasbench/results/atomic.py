"""Write a file so that a reader sees the old whole or the new whole."""

import os
import shutil
from contextlib import suppress
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
