"""The table of everything that runs amount to, as CSV."""

import csv
import dataclasses
import io
from collections.abc import Sequence

from kerasbench.analysis.summary import Summary
from kerasbench.analysis.table import NAMES, observations
from kerasbench.text import blanked


def document(summaries: Sequence[Summary]) -> str:
    """Return the CSV of one or more runs, with a line of names above."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES)
    writer.writerows(map(_text, dataclasses.astuple(one)) for one in observations(summaries))
    return text.getvalue()


def _text(value: str | float | None) -> str:
    """Return a value as it stands in the file; text is no formula to a spreadsheet and has no control characters."""
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    printable = blanked(value)
    return f"'{printable}" if printable[:1] in ("=", "+", "-", "@") else printable
