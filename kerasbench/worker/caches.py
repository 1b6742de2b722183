"""Whether a child finds what earlier processes have compiled."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


class CacheReads:
    """Count which files of earlier processes are read, by their time of last access, which ``relatime`` keeps too."""

    def __init__(self, folder: str, patterns: Sequence[str]) -> None:
        files = (file for pattern in patterns for file in Path(folder).glob(pattern)) if folder else ()
        self._files = [file for file in files if file.is_file()]
        for file in self._files:
            os.utime(file, ns=(0, file.stat().st_mtime_ns))
        self._keeps_times = not self._files or keeps_access_times(folder)

    @property
    def count(self) -> int | None:  # None: the system keeps no such time
        read = sum(file.exists() and file.stat().st_atime_ns > 0 for file in self._files)
        return read if self._keeps_times else None


def keeps_access_times(folder: str) -> bool:
    """Tell whether the system notes in this folder that a file is read: not with noatime."""
    with tempfile.NamedTemporaryFile(dir=folder) as probe:
        probe.write(b"x")
        probe.flush()
        file = Path(probe.name)
        os.utime(file, ns=(0, file.stat().st_mtime_ns))
        file.read_bytes()
        return file.stat().st_atime_ns > 0
