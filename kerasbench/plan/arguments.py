"""Words of a command line or of Python, as values: backends, devices, options, durations, sizes of memory, effort."""

import dataclasses
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from kerasbench.errors import UsageError, unknown
from kerasbench.exchange.devices import parse_label
from kerasbench.exchange.given import Input
from kerasbench.exchange.options import DTYPES, Fp32, Options
from kerasbench.exchange.requests import DataKind, ProtocolKind
from kerasbench.results.asked import DEFAULT, PUBLISHED, QUICK, RIGOROUS_ROUNDS, SWEEP, Effort, exactly
from kerasbench.text import GIB, MIB

INPUT = re.compile(
    r"((?P<name>[^=\s]+)=)?(?P<shape>[0-9]{1,9}(x[0-9]{1,9})*)(:(?P<dtype>float(16|32|64)|bfloat16|bool|u?int(8|16|32|64)))?"
)
SIZE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>[mg])(i?b)?", re.IGNORECASE)


def require_time(limit_s: float | None, option: str = "--timeout") -> None:
    """Raise UsageError for a limit that is no time, as infinity is."""
    if limit_s is not None and not 0 < limit_s < math.inf:
        raise UsageError(f"{option} takes a number of seconds above 0, not {limit_s:g}")


def whole_bytes(limit: float | None) -> int | None:
    """Return a limit of memory as a whole number, also 4e9; raise UsageError for what is none of at least 1."""
    if limit is not None and (not 1 <= limit < math.inf or limit % 1):
        raise UsageError(f"--memory-limit takes a whole number of bytes from 1 on, such as 4e9, not {limit:g}")
    return None if limit is None else int(limit)


def parse_size_bytes(text: str) -> int:
    """Return ``500m``, ``4g`` or ``1.5GiB`` in bytes; raise UsageError for anything else."""
    found = SIZE.fullmatch(text.strip())
    if found is None or float(found["number"]) <= 0:
        raise UsageError(f"not a size of memory: {text!r}; say 500m or 4g")
    return int(float(found["number"]) * (MIB if found["unit"].lower() == "m" else GIB))


JIT = {"default": None, "on": True, "off": False}
DURATION = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>[smh]?)")
SHARE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) ?%?")
RUN_PROTOCOLS = ("steady", "published")  # sweep is a command


def parse_inputs(given: Sequence[str]) -> list[Input]:
    """Return ``tokens=1x128:int32`` and ``96x96x3`` as inputs; raise UsageError for anything else."""
    found = [INPUT.fullmatch(text.strip()) for text in given]
    for text, one in zip(given, found, strict=True):
        if one is None or "0" in one["shape"].split("x"):
            raise UsageError(f"--input takes NAME=SIZE such as tokens=128:int32, or 96x96x3, not {text!r}")
    parsed = [
        Input(one["name"] or "", [int(size) for size in one["shape"].split("x")], one["dtype"] or "")
        for one in found
        if one is not None
    ]
    if len({one.name for one in parsed}) < len(parsed):
        raise UsageError("--input: give each input once; if you give several, each needs its name")
    return parsed


def parse_custom(given: str) -> str:
    """Return the path of a file with a model's own layers, empty for none; raise UsageError where there is none."""
    file = Path(given)
    if given and (file.suffix != ".py" or not file.is_file()):
        raise UsageError(f"--custom takes a Python file with the model's own layers, not {given!r}")
    return given


def parse_backends(given: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the backends that were named, without repeats; raise UsageError for an unknown one."""
    for name in given:
        if name not in known:
            raise unknown("backend", name, known)
    return list(dict.fromkeys(given))


def parse_devices(given: Sequence[str]) -> list[str]:
    """Return the device labels that were named, without repeats; raise UsageError for an unknown one."""
    for name in given:
        try:
            parse_label(name)
        except ValueError:
            raise unknown("device", name, ["cpu", "gpu", "gpu:1"]) from None
    return list(dict.fromkeys("gpu" if name == "gpu:0" else "cpu" if name == "cpu:0" else name for name in given))


def parse_data(name: str) -> DataKind:
    """Return the kind of data; raise UsageError for an unknown one."""
    if name not in get_args(DataKind):
        raise unknown("kind of data", name, get_args(DataKind))
    return cast("DataKind", name)


def require_seed(seed: int) -> None:
    """Raise UsageError for a seed that a child's random generator would refuse."""
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"--seed takes a whole number from 0 on, not {seed}")


def parse_protocol(name: str) -> ProtocolKind:
    """Return the kind of protocol of a run; raise UsageError for an unknown one."""
    if name not in RUN_PROTOCOLS:
        raise unknown("protocol", name, RUN_PROTOCOLS)
    return cast("ProtocolKind", name)


def options_of(
    jit: Sequence[str],
    dtype: Sequence[str],
    fp32: Sequence[str],
    threads: Sequence[str],
    native: bool = False,
    busy_cores: Sequence[str] = (),
) -> list[Options]:
    """Cross what the options name; an empty list means the default; ``native`` adds the twin of each.

    ``busy_cores`` adds each of them beside so many busy processors.

    Raises:
        UsageError: a value is unknown.
    """
    for what, given, known in (("--jit", jit, JIT), ("--dtype", dtype, DTYPES), ("--fp32", fp32, get_args(Fp32))):
        for value in given:
            if value not in known:
                raise unknown(f"value of {what}", value, known)
    for option, counts_given in (("--threads", threads), ("--busy-cores", busy_cores)):
        for value in counts_given:
            if not value.isdecimal() or int(value) < 1:
                raise UsageError(f"{option} takes whole numbers from 1 on, not {value!r}")
    policies: list[str | None] = [*dtype] or [None]
    counts: list[int | None] = [int(value) for value in threads] or [None]
    crossed = itertools.product(jit or ["default"], policies, fp32 or ["ieee"], counts)
    made = [Options(JIT[a], b, cast("Fp32", c), d) for a, b, c, d in crossed]
    twins = [dataclasses.replace(one, native=True) for one in made] if native else []
    quiet = [*made, *twins]
    busy = [dataclasses.replace(one, busy_cores=int(value)) for value in busy_cores for one in quiet]
    return list(dict.fromkeys([*quiet, *busy]))


def parse_duration_s(text: str) -> float:
    """Return ``90``, ``90s``, ``10m`` or ``1.5h`` in seconds; raise UsageError for anything else."""
    found = DURATION.fullmatch(text.strip())
    if found is None or float(found["number"]) <= 0:
        raise UsageError(f"not a duration: {text!r}; say 90s, 10m or 1.5h")
    return float(found["number"]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found["unit"]]


def parse_share(given: str | float) -> float:
    """Return ``5%`` or ``5`` as 0.05, and a number as it is; raise UsageError for what is no share below one."""
    found = SHARE.fullmatch(given.strip()) if isinstance(given, str) else None
    share = float(found["number"]) / 100 if found else given
    if not isinstance(share, int | float) or not 0 <= share < 1:
        raise UsageError(f"--threshold takes a share of less than 100 %, such as 5%, not {given!r}")
    return float(share)


def effort_of(
    quick: bool, count: int | None, rigorous: bool, kind: ProtocolKind = "steady", budget_s: float | None = None
) -> Effort:
    """Return the effort that the options ask for; raise UsageError where they mean nothing or exclude each other."""
    if quick + (count is not None) + rigorous > 1:
        raise UsageError("--quick, --rounds and --rigorous exclude each other: give one of them")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise UsageError(f"--rounds takes a whole number from 1 on, not {count}")
    if quick and kind == "published":
        raise UsageError("--protocol published runs every epoch: it cannot be --quick; choose fewer with --scenario")
    standard = PUBLISHED if kind == "published" else QUICK if quick else DEFAULT
    if kind == "sweep":
        standard = dataclasses.replace(standard, protocol=SWEEP)
    if rigorous or count is not None:
        standard = exactly(RIGOROUS_ROUNDS if count is None else count, standard.protocol)
    return dataclasses.replace(standard, budget_s=budget_s)
