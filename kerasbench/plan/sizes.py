"""The sizes of a sweep, as a user names them, and those between two of them."""

import math
import re
from collections.abc import Sequence

from kerasbench.errors import UsageError
from kerasbench.exchange.options import Options, Size
from kerasbench.plan.catalog import Selected

RANGE = re.compile(r"(?P<first>[0-9]+)\.\.(?P<last>[0-9]+)")
DEFAULT_BATCHES = ["1..4096"]
MAX_BATCH = 1 << 20  # a million samples a step; a larger number is a slip of the finger
MAX_WIDTH = 1024.0
MORE_SIZES = 2  # inside the bracket of a crossover (METHOD): thirds of an octave


def parse_batches(given: Sequence[str]) -> list[int]:
    """Return the batch sizes in ``1..4096`` (doubled from the first on) and ``8``, ascending, without repeats.

    Raises:
        UsageError: something else, a range that goes down, or a batch that is none.
    """
    found = sorted({size for text in given for size in _batches(text.strip())})
    if found and not 1 <= found[0] <= found[-1] <= MAX_BATCH:
        raise UsageError(f"--batch-size takes whole numbers from 1 to {MAX_BATCH:,}, not {','.join(given)!r}")
    return found


def _batches(text: str) -> list[int]:
    found = RANGE.fullmatch(text)
    if found is None and not (text.isascii() and text.isdecimal()):
        raise UsageError(f"--batch-size takes 1..4096 (doubled from 1 on) or a list such as 1,8,64, not {text!r}")
    if found is None:
        return [int(text)]
    first, last = int(found["first"]), int(found["last"])
    if not 1 <= first <= last <= MAX_BATCH:
        raise UsageError(f"--batch-size {text} is no range: say the smaller first, from 1 to {MAX_BATCH:,}")
    return [first << doubled for doubled in range((last // first).bit_length())]


def parse_widths(given: Sequence[str]) -> list[float]:
    """Return the factors on hidden layers, ascending, without repeats; raise UsageError for what is none."""
    found: set[float] = set()
    for text in given:
        try:
            width = float(text)
        except ValueError:
            width = math.nan
        if not 1 / MAX_WIDTH <= width <= MAX_WIDTH:
            raise UsageError(f"--width takes factors on hidden layers such as 0.5,1,2,4, not {text!r}")
        found.add(width)
    return sorted(found)


def crossed(terms: Sequence[Options], batches: Sequence[int], widths: Sequence[float]) -> list[Options]:
    """Return each of the terms at each size; raise UsageError where there is only one size, which is no sweep."""
    every_batch: list[int | None] = [*batches] or [None]
    every_width: list[float | None] = [*widths] or [None]
    sizes = [Size(batch, width) for batch in every_batch for width in every_width]
    if len(sizes) < 2:
        raise UsageError("a sweep needs two sizes or more: --batch-size 1..4096, --width 0.5,1,2")
    return [one.at(size) for size in sizes for one in terms]


def require_sweepable(selected: Sequence[Selected], options: Sequence[Options]) -> None:
    """Raise UsageError for a sweep of more than one regime, or of the width of one that does not scale."""
    if len(selected) > 1:
        names = ", ".join(one.label for one in selected)
        raise UsageError(f"a sweep is of one regime, and this names {len(selected)}: {names}; name one of them")
    for one in selected:
        if not one.entry.description.scalable and any(each.width is not None for each in options):
            raise UsageError(
                f"{one.label} has no --width: its hidden layers are as wide as they are; docs/scenarios.md says how a "
                "scenario is made scalable"
            )


def between(low: float, high: float, whole: bool) -> list[float]:
    """Return MORE_SIZES sizes that divide a bracket evenly on a logarithmic scale; fewer where there is no room."""
    parts = MORE_SIZES + 1
    found = [low * (high / low) ** (part / parts) for part in range(1, parts)]
    rounded = [float(round(size)) if whole else float(f"{size:.3g}") for size in found]
    return [size for size in dict.fromkeys(rounded) if low < size < high]
