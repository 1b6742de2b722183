"""Which code of kerasbench measured a trial: a hash of all that a measurement passes through."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
MEASURES = ("backends", "children", "exchange", "native", "runs", "worker")
SCENARIOS_IMPORT = ("datasets.py", "scenario.py")
LENGTH = 12  # hexadecimal digits: two of a million versions are alike once in 500 times


@cache
def measuring(package: Path = PACKAGE) -> str:
    """Return the hash of the code that measures, by names inside the package and contents: a millisecond or two.

    It is the same wherever that code is installed, and stays when nothing but reports has changed.
    """
    digest = hashlib.sha256()
    for name, file in sorted((file.relative_to(package).as_posix(), file) for file in _files(package)):
        content = file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:LENGTH]


def _files(package: Path) -> Iterator[Path]:
    for folder in MEASURES:
        yield from (package / folder).rglob("*.py")
    yield from (package / name for name in SCENARIOS_IMPORT)
