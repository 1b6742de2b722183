"""Tables in markdown, and text that cannot break one. No word of a measurement: ``list`` draws with it too."""

import re
from collections.abc import Sequence

from tabulate import tabulate

from kerasbench.text import blanked

NOTHING = "–"
_MARKUP = re.compile(r"[\\`*\[\]<>|#~]|&(?=#|\w+;)|(?<![^\W_])_|_(?![^\W_])")  # inside a word an underscore is none
_BEGINNING = re.compile(r"^(?P<number>[0-9]*)(?P<sign>[-+.)])(?= |-|$)")  # of a list, or a line across the page


def draw_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    # disable_numparse: cells are text already; tabulate would reformat "1,230".
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def escape(text: str) -> str:
    """Make text from a file or a child harmless in a markdown table: one line, no markup, no control characters."""
    one_line = " ".join(blanked(text).split())
    return _BEGINNING.sub(r"\g<number>\\\g<sign>", _MARKUP.sub(r"\\\g<0>", one_line))
