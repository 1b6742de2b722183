"""The tables that lie beside result files: made anew, or checked against their data."""

from collections.abc import Sequence
from pathlib import Path

from kerasbench.report.markdown import document
from kerasbench.results import load, replace, tables_file
from kerasbench.summary import summarize


def regenerate(data: Path) -> Path:
    """Write the tables of a result file beside it and return where; raise ResultsError if either refuses."""
    tables = tables_file(data)
    replace(tables, document(summarize(load(data))).encode())
    return tables


def stale(files: Sequence[Path]) -> list[Path]:
    """Return the tables that are missing or differ from their data; raise ResultsError for data that cannot be read."""
    return [tables_file(data) for data in files if _text(tables_file(data)) != document(summarize(load(data)))]


def _text(file: Path) -> str | None:
    return file.read_text("utf-8") if file.is_file() else None
