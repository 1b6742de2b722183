"""The scenarios, as a table and as data."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from kerasbench.exchange.descriptions import Description
from kerasbench.report.markdown import draw_table, escape
from kerasbench.report.sections import NOTHING
from kerasbench.text import label


class Entry(Protocol):
    """A scenario as the catalog has it."""

    @property
    def file(self) -> Path: ...
    @property
    def description(self) -> Description: ...


def as_table(entries: Sequence[Entry]) -> str:
    """Return one line for each regime: parameters, batch, steps in an epoch, published epochs, what it is."""
    rows = [
        [
            escape(label(entry.description.name, regime.name)),
            NOTHING if entry.description.parameters is None else f"{entry.description.parameters:,}",
            f"{regime.batch:,}",
            f"{regime.steps:,}",
            f"{regime.epochs:,}",
            escape(entry.description.title),
        ]
        for entry in entries
        for regime in entry.description.regimes
    ]
    headers = ["scenario", "parameters", "batch", "steps", "epochs", "what"]
    return draw_table(headers, rows)


def as_data(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the descriptions as plain data, with each one's file."""
    return [{"file": str(entry.file)} | dataclasses.asdict(entry.description) for entry in entries]
