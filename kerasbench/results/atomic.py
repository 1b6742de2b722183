"""Write a file so that a reader sees the old whole or the new whole."""

import os
from contextlib import suppress
from pathlib import Path

from kerasbench.errors import ResultsError

PARTIAL = ".partial"


def replace(file: Path, content: bytes) -> None:
    """Write beside the file, sync, rename: a reader sees the old whole or the new whole.

    Raises:
        ResultsError: the disk refuses; what the file held before is kept.
    """
    partial = file.with_name(file.name + PARTIAL)
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be written: {error.strerror}; what it held before is kept") from None
    finally:
        with suppress(OSError):  # a second Ctrl-C, or a full disk
            partial.unlink(missing_ok=True)
