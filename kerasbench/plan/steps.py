"""How long a training step took here: the fastest column of each regime, remembered for `list` from run to run.

What was measured is in the result files. Reading all of them would take `list` seconds, so each run leaves a line.
"""

import json
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

if TYPE_CHECKING:
    from kerasbench.analysis.cells import Row
    from kerasbench.analysis.summary import Summary

MAX_FILE_BYTES = 1 << 20  # a hundred bytes for each regime: a megabyte was not written here


@dataclass(frozen=True)
class Taken:
    """The time of a step, and the column in which it was measured: ``jax cpu``."""

    ms: float
    column: str


Steps = dict[tuple[str, str], Taken]  # by the hash of a scenario's file and the name of its regime


def recalled() -> Steps:
    """Return what is remembered of this machine; nothing where nothing is, or where it cannot be read."""
    found: Steps = {}
    with suppress(TypeError, ValueError, AttributeError):  # somebody else wrote it
        for file_hash, regimes in _read().get(platform.node(), {}).items():
            for regime, (ms, column) in regimes.items():
                found[file_hash, regime] = Taken(float(ms), str(column))
    return found


def remember(summary: "Summary") -> None:
    """Remember the fastest column of each row that was measured with Keras at its own size and without options."""
    hashes = {one.description.name: one.file_hash for one in summary.record.scenarios}
    known = recalled()
    for row in summary.plain.rows:
        taken = min(_taken(row), key=lambda one: one.ms, default=None)
        if taken is not None:
            known[hashes[row.scenario.name], row.regime.name] = taken
    here: dict[str, dict[str, tuple[float, str]]] = {}
    for (file_hash, regime), one in known.items():
        here.setdefault(file_hash, {})[regime] = (one.ms, one.column)
    kept = _read() | {platform.node(): here}
    with suppress(OSError):  # `list` then shows no times
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(kept), "utf-8")
        partial.replace(file)


def _taken(row: "Row") -> "Iterator[Taken]":
    for (backend, device, options), cell in row.cells.items():
        found = cell.estimate(row.headline)
        if found is not None and not options:
            yield Taken(found.value, f"{backend} {device}")


def _file() -> Path:
    return Path(platformdirs.user_cache_dir("kerasbench")) / "steps.json"


def _read() -> dict[str, Any]:
    try:
        with _file().open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        found = json.loads(content) if len(content) <= MAX_FILE_BYTES else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
