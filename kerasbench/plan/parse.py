"""Words of a command line as values. What means nothing raises UsageError, which says what would."""

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kerasbench import backends
from kerasbench.errors import UsageError, unknown
from kerasbench.protocol.columns import Device, parse_label
from kerasbench.protocol.requests import Input
from kerasbench.text import GIB, MIB

Name = TypeVar("Name", bound=str)

RANGE = re.compile(r"(?P<first>[0-9]+)\.\.(?P<last>[0-9]+)")
INPUT = re.compile(
    r"((?P<name>[^=\s]+)=)?(?P<shape>[0-9]{1,9}(x[0-9]{1,9})*)(:(?P<dtype>float(16|32|64)|bfloat16|bool|u?int(8|16|32|64)))?"
)
QUANTITY = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) ?(?P<unit>[a-z%]*)")
MOST_DIGITS, MOST = 18, 1e15  # of what is read as a number
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
BYTES = {f"{unit}{suffix}": size for unit, size in (("m", MIB), ("g", GIB)) for suffix in ("", "b", "ib")}
MAX_BATCH = 1 << 20  # a million samples a step; a larger number is a slip of the finger
MAX_WIDTH = 1024.0


def words(flag: str, given: object) -> list[str]:
    """Return values, taken apart at their commas, as words; of a mapping ``key=value``.

    A path with a comma is one word, also behind ``torch=``. An empty word alone raises UsageError.
    """
    if given is None:
        return []
    several: Iterable[object] = [given]
    if isinstance(given, Mapping):
        several = [f"{key}={value}" for key, value in given.items()]
    elif isinstance(given, Iterable) and not isinstance(given, str | Path):
        several = list(given)
    texts = [text for value in several for text in _apart(str(value))]
    stripped = [text.strip() for text in texts if text.strip()]
    if texts:
        require_said(flag, stripped)
    return stripped


def _apart(text: str) -> list[str]:
    return [text] if os.path.exists(text.partition("=")[2] or text) else text.split(",")


def require_said(flag: str, words: object) -> None:
    """Raise UsageError for nothing, as a shell's variable is that is not set."""
    if not words:
        raise UsageError(f"{flag} is empty: give it a value, or leave it out")


def require_name(what: str, given: str, names: Collection[Name]) -> Name:
    for name in names:
        if name == given:
            return name
    raise unknown(what, given, names)


def backend_names(given: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(require_name("backend", name, backends.names()) for name in given))


def device_labels(given: Sequence[str]) -> list[str]:
    labels = []
    for name in given:
        try:
            labels.append(Device(*parse_label(name)).label)
        except ValueError:
            raise unknown("device", name, ["cpu", "gpu", "gpu:1"]) from None
    return list(dict.fromkeys(labels))


def counts(given: Sequence[str], option: str) -> list[int]:
    for text in given:
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"{option} takes whole numbers from 1 on, not {text!r}")
    return [int(text) for text in given]


def batches(given: Sequence[str]) -> list[int]:
    """Return the batch sizes in ``1..4096`` (doubled from the first on) and ``8``, ascending, without repeats."""
    sizes: set[int] = set()
    for text in map(str.strip, given):
        match = RANGE.fullmatch(text)
        if text.isascii() and text.isdecimal():
            sizes.add(int(text[:MOST_DIGITS]))  # more are as far out of range
        elif match is None or len(text) > 2 * MOST_DIGITS:
            raise UsageError(f"--batch-size takes 1..4096 (doubled from 1 on) or a list such as 1,8,64, not {text!r}")
        else:
            first, last = int(match["first"]), int(match["last"])
            if not 1 <= first <= last <= MAX_BATCH:
                limits = f"from 1 to {MAX_BATCH:,}"
                raise UsageError(f"--batch-size {text} is not a range: put the smaller number first, {limits}")
            sizes.update(first << doubled for doubled in range((last // first).bit_length()))
    if sizes and not 1 <= min(sizes) <= max(sizes) <= MAX_BATCH:
        raise UsageError(f"--batch-size takes whole numbers from 1 to {MAX_BATCH:,}, not {','.join(given)!r}")
    return sorted(sizes)


def widths(given: Sequence[str]) -> list[float]:
    factors: set[float] = set()
    for text in given:
        try:
            factor = float(text)
        except ValueError:
            factor = math.nan
        if not 1 / MAX_WIDTH <= factor <= MAX_WIDTH:
            raise UsageError(f"--width takes factors on hidden layers such as 0.5,1,2,4, not {text!r}")
        factors.add(factor)
    return sorted(factors)


def inputs(given: Sequence[str]) -> list[Input]:
    """Of ``tokens=1x128:int32`` and ``96x96x3``."""
    described: dict[str, Input] = {}
    for text in given:
        match = INPUT.fullmatch(text.strip())
        sizes = [int(size) for size in match["shape"].split("x")] if match else []
        if match is None or 0 in sizes:
            raise UsageError(f"--input takes NAME=SIZE such as tokens=128:int32, or 96x96x3, not {text!r}")
        described[match["name"] or ""] = Input(match["name"] or "", sizes, match["dtype"] or "")
    if len(described) < len(given):
        raise UsageError("--input: give each input once; if you give several, each needs its name")
    return [*described.values()]


def size_bytes(given: str | float | None) -> int | None:
    """Return ``500m``, ``4g``, ``1.5GiB`` or 4e9 in bytes."""
    if isinstance(given, str):
        return int(_quantity(given, BYTES, f"--memory-limit takes a size of memory such as 500m or 4g, not {given!r}"))
    if given is not None and (not 1 <= given < math.inf or given % 1):
        raise UsageError(f"--memory-limit takes a whole number of bytes from 1 on, such as 4e9, not {given:g}")
    return None if given is None else int(given)


def duration_s(given: str | float | None, option: str) -> float | None:
    """Return ``90``, ``90s``, ``10m`` or ``1.5h`` in seconds, and a number as it is."""
    if isinstance(given, str):
        return _quantity(given, SECONDS, f"{option} takes a time such as 90s, 10m or 1.5h, not {given!r}")
    if given is not None and not 0 < given < math.inf:
        raise UsageError(f"{option} takes a number of seconds above 0, not {given:g}")
    return given


def _quantity(text: str, units: Mapping[str, int], complaint: str) -> float:
    match = QUANTITY.fullmatch(text.strip().lower())
    if match is None or match["unit"] not in units or not 0 < float(match["number"]) < MOST:
        raise UsageError(complaint)
    return float(match["number"]) * units[match["unit"]]


def share(given: str | float, option: str) -> float:
    """Return ``5%`` or ``5`` as 0.05, and a number as it is; it is from 0 to below 1."""
    match = QUANTITY.fullmatch(given.strip()) if isinstance(given, str) else None
    value = float(match["number"]) / 100 if match and match["unit"] in ("", "%") else given
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise UsageError(f"{option} takes a share below 100%, such as 5%, not {given!r}")
    return float(value)
