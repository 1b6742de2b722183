"""The scenarios, as a table and as data."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kerasbench.exchange.descriptions import Description, RegimeDescription
from kerasbench.report.markdown import draw_table, escape
from kerasbench.report.sections import NOTHING
from kerasbench.text import label

PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
HEADERS = ["suite", "scenario", "parameters", "batch", "steps", "epochs", "operations a step", "step here", "what"]


class Entry(Protocol):
    """A scenario as the catalog has it."""

    @property
    def file(self) -> Path: ...
    @property
    def file_hash(self) -> str: ...
    @property
    def description(self) -> Description: ...
    @property
    def suite(self) -> str: ...


class Taken(Protocol):
    """The time of a step, and the column in which it was measured."""

    @property
    def ms(self) -> float: ...
    @property
    def column(self) -> str: ...


Steps = Mapping[tuple[str, str], Taken]  # by the hash of a scenario's file and the name of its regime


def as_table(entries: Sequence[Entry], taken: Steps) -> str:
    """Return one line for each regime: what it is and how large, and how long a step took in earlier runs here."""
    rows = [_line(entry, regime, taken) for entry in entries for regime in entry.description.regimes]
    return draw_table(HEADERS, rows)


def _line(entry: Entry, regime: RegimeDescription, taken: Steps) -> list[str]:
    description, earlier = entry.description, taken.get((entry.file_hash, regime.name))
    return [
        entry.suite,
        escape(label(description.name, regime.name)),
        NOTHING if regime.parameters is None else f"{regime.parameters:,}",
        f"{regime.batch:,}",
        f"{regime.steps:,}",
        f"{regime.epochs:,}",
        NOTHING if regime.operations is None else operations(regime.operations),
        "" if earlier is None else f"{earlier.ms:.3g} ms ({earlier.column})",
        escape(description.title + (" For a GPU." if regime.large else "")),
    ]


def operations(count: int) -> str:
    """Return a number of operations in three digits: ``9.28 T``, ``752 M``, ``812``."""
    for prefix, unit in PREFIXES:
        if count >= unit:
            return f"{float(f'{count / unit:.3g}'):g} {prefix}"
    return str(count)


def as_data(entries: Sequence[Entry], taken: Steps) -> list[dict[str, Any]]:
    """Return the descriptions as plain data, with each one's suite, file, and steps of earlier runs by regime."""
    return [
        {"suite": entry.suite, "file": str(entry.file), "steps_here": _steps_here(entry, taken)}
        | dataclasses.asdict(entry.description)
        for entry in entries
    ]


def _steps_here(entry: Entry, taken: Steps) -> dict[str, dict[str, Any]]:
    known = {one.name: taken.get((entry.file_hash, one.name)) for one in entry.description.regimes}
    return {name: {"ms": one.ms, "column": one.column} for name, one in known.items() if one is not None}
