"""The sizes of a sweep, as a user names them, and those between two of them.

What a run is asked for, made of the settings of a command line or of Python: the one place that checks them.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from kerasbench import backends
from kerasbench.errors import UsageError, unknown
from kerasbench.plan import catalog
from kerasbench.plan.catalog import Selected
from kerasbench.processes import variables
from kerasbench.protocol.columns import DTYPES, Fp32, Options, Size, parse_label
from kerasbench.protocol.requests import DataKind, Input, ModelConfig, ProtocolKind
from kerasbench.results.record import (
    DEFAULT,
    PUBLISHED,
    QUICK,
    RIGOROUS_ROUNDS,
    SWEEP,
    Effort,
    ResumeConfig,
    RunConfig,
    exactly,
)
from kerasbench.settings import EXPLAIN, RUN, VERSUS, Settings
from kerasbench.settings import SWEEP as SWEEP_COMMAND
from kerasbench.text import GIB, MIB

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
    """Raise UsageError for a sweep of more than one workload, or of the width of one that does not scale."""
    if len(selected) > 1:
        names = ", ".join(one.label for one in selected)
        raise UsageError(f"a sweep is of one workload, and this names {len(selected)}: {names}; name one of them")
    for one in selected:
        if not one.entry.description.scalable and any(each.width is not None for each in options):
            raise UsageError(
                f"{one.label} has no --width: its hidden layers are as wide as they are; docs/scenarios.md says how a "
                "scenario is made scalable"
            )


def sizes_between(low: float, high: float, whole: bool) -> list[float]:
    """Return MORE_SIZES sizes that divide a bracket evenly on a logarithmic scale; fewer where there is no room."""
    parts = MORE_SIZES + 1
    found = [low * (high / low) ** (part / parts) for part in range(1, parts)]
    rounded = [float(round(size)) if whole else float(f"{size:.3g}") for size in found]
    return [size for size in dict.fromkeys(rounded) if low < size < high]


INPUT = re.compile(
    r"((?P<name>[^=\s]+)=)?(?P<shape>[0-9]{1,9}(x[0-9]{1,9})*)(:(?P<dtype>float(16|32|64)|bfloat16|bool|u?int(8|16|32|64)))?"
)
SIZE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>[mg])(i?b)?", re.IGNORECASE)


def require_time(limit_s: float | None, option: str = "--timeout") -> None:
    """Raise UsageError unless the limit is a finite time above 0, or there is none."""
    if limit_s is not None and not 0 < limit_s < math.inf:
        raise UsageError(f"{option} takes a number of seconds above 0, not {limit_s:g}")


def whole_bytes(limit: float | None) -> int | None:
    """Return a limit of memory as a whole number, also 4e9; raise UsageError if below 1 or not whole."""
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


def request(command: str, said: Settings) -> RunConfig:
    """Return what a command is asked to measure.

    Raises:
        UsageError: a setting means nothing, or two of them exclude each other.
    """
    return {RUN: run, SWEEP_COMMAND: sweep, EXPLAIN: explanation, VERSUS: versus}[command](said)


def run(said: Settings) -> RunConfig:
    protocol = parse_protocol(said.protocol)
    if said.busy_cores and protocol == "published":
        raise UsageError("--busy-cores keeps processors busy in turns, and --protocol published takes none")
    return _asked(said, protocol, _terms(said))


def sweep(said: Settings) -> RunConfig:
    """Return what a sweep is asked for: each of the terms at each size, and more of them where series cross."""
    batches = parse_batches(said.batch_sizes or ([] if said.widths else DEFAULT_BATCHES))
    options = crossed(_terms(said), batches, parse_widths(said.widths))
    return dataclasses.replace(_asked(said, "sweep", options), refine=True)


def explanation(said: Settings) -> RunConfig:
    """Return what is asked for where a step is to be taken apart."""
    return dataclasses.replace(_asked(said, "steady", _terms(said)), explain=True)


def versus(said: Settings) -> RunConfig:
    """Return what is asked for where versions are compared; which interpreters, is known when they are there."""
    from kerasbench.analysis.estimates import MINIMAL_EFFECT  # late: most commands judge nothing

    asked, threshold = _asked(said, "steady", _terms(said)), parse_share(said.threshold)
    if threshold < MINIMAL_EFFECT:
        raise UsageError(f"--threshold takes {MINIMAL_EFFECT:.0%} or more, not {threshold:.2%}")
    return dataclasses.replace(asked, control=True, threshold=threshold)


def resumed(said: Settings) -> ResumeConfig:
    """Return what --resume is asked for: the rest of a run, whose options cannot be changed."""
    asked = run(said)
    files = [one for one in said.scenarios if catalog.own_files([one])]
    kept = ("budget", "custom", "trust", "results", "python", "wait", "resume")
    allowed = Settings(scenarios=files, **{name: getattr(said, name) for name in kept})
    if said != allowed:
        raise UsageError(
            "--resume reuses the interrupted run's options; only --budget, --results, --python and --wait may be "
            "added. Files of your own must be named again: --scenario FILE, --custom FILE, --trust"
        )
    return ResumeConfig(asked.effort.budget_s, files, asked.model_config)


def _terms(said: Settings) -> list[Options]:
    return options_of(said.jit, said.dtype, said.fp32, said.threads, said.native, said.busy_cores)


def _asked(said: Settings, kind: ProtocolKind, options: list[Options]) -> RunConfig:
    if said.suite and said.scenarios:
        raise UsageError(
            "--suite and --scenario exclude each other: --scenario finds a scenario of any suite by its name"
        )
    budget_s = parse_duration_s(said.budget) if isinstance(said.budget, str) else said.budget
    limit = parse_size_bytes(said.memory_limit) if isinstance(said.memory_limit, str) else said.memory_limit
    return known(
        RunConfig(
            scenarios=said.scenarios,
            suite=said.suite or RunConfig().suite,
            backends=said.backends,
            devices=said.devices,
            options=options,
            effort=effort_of(said.quick, said.rounds, said.rigorous, kind, budget_s),
            seed=said.seed,
            data=parse_data(said.data),
            timeout_s=parse_duration_s(said.timeout) if isinstance(said.timeout, str) else said.timeout,
            memory_limit_bytes=whole_bytes(limit),
            keep_env=variables.kept(said.keep_env),
            control=said.control or said.rigorous,
            model_config=_given(said),
        )
    )


def _given(said: Settings) -> ModelConfig:
    """Return what is said of models; raise UsageError for what cannot be."""
    batch = said.batch_size
    if batch is not None and (not isinstance(batch, int) or not 1 <= batch <= MAX_BATCH):
        raise UsageError(f"--batch-size takes a whole number from 1 to {MAX_BATCH:,}, not {batch}")
    return ModelConfig(parse_inputs(said.inputs), batch, parse_custom(said.custom), said.trust, said.rows, said.samples)


def known(asked: RunConfig) -> RunConfig:
    """Return it with valid and unique backends and devices; raise UsageError for what cannot be measured.

    What a file says was asked for is no surer than a user's words.
    """
    require_time(asked.timeout_s)
    require_time(asked.effort.budget_s, "--budget")
    whole_bytes(asked.memory_limit_bytes)
    require_seed(asked.seed)
    return dataclasses.replace(
        asked,
        backends=parse_backends(asked.backends, backends.names()),
        devices=parse_devices(asked.devices),
    )
