"""The configuration of a run, made of the settings of a command line or of Python: the one place that checks them."""

import dataclasses
import itertools
import json
import math
import os
import re
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from kerasbench import backends, files
from kerasbench.errors import UsageError, unknown
from kerasbench.plan import catalog
from kerasbench.plan.catalog import Selected
from kerasbench.processes import variables
from kerasbench.protocol.columns import DEFAULT as DEFAULT_OPTIONS
from kerasbench.protocol.columns import DTYPES, Device, Environment, Fp32, Malloc, Options, Size, parse_label
from kerasbench.protocol.requests import STRUCTURE, DataKind, Input, ModelConfig, ProtocolKind, fitting
from kerasbench.protocol.stages import AGENDAS
from kerasbench.results.run import (
    DEFAULT,
    MAX_ROUNDS,
    PUBLISHED,
    QUICK,
    RACE,
    RIGOROUS_ROUNDS,
    SWEEP,
    Effort,
    Purpose,
    RaceConfig,
    RacePurpose,
    ResumeConfig,
    RunConfig,
    SoakConfig,
    exactly,
)
from kerasbench.settings import (
    BATCH_SIZE,
    BUILD_CLEARED,
    DEFAULT_TRIES,
    EXPLAIN,
    FASTEST,
    PURPOSES,
    RUN,
    SOAK,
    SOAKED,
    STEPS_PER_EXECUTION,
    TRIES,
    VERSUS,
    Settings,
    words,
)
from kerasbench.settings import SWEEP as SWEEP_COMMAND
from kerasbench.text import GIB, MIB, percent

if TYPE_CHECKING:
    import numpy as np

RANGE = re.compile(r"(?P<first>[0-9]+)\.\.(?P<last>[0-9]+)")
INPUT = re.compile(
    r"((?P<name>[^=\s]+)=)?(?P<shape>[0-9]{1,9}(x[0-9]{1,9})*)(:(?P<dtype>float(16|32|64)|bfloat16|bool|u?int(8|16|32|64)))?"
)
MOST_DIGITS, MOST = 18, 1e15  # of what is read as a number
QUANTITY = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) ?(?P<unit>[a-z%]*)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
BYTES = {f"{unit}{suffix}": size for unit, size in (("m", MIB), ("g", GIB)) for suffix in ("", "b", "ib")}
JIT = {"default": None, "on": True, "off": False}
MALLOC: dict[str, Malloc | None] = {"default": None, "keep": "keep"}
RUN_PROTOCOLS = ("steady", "published", "calls")  # sweep is a command
DEFAULT_BATCHES = ["1..4096"]
MAX_BATCH = 1 << 20  # a million samples a step; a larger number is a slip of the finger
MAX_WIDTH = 1024.0
LEAST_MINUTES, MOST_MINUTES = 0.1, 24 * 60
MORE_SIZES = 2  # inside the bracket of a crossover (benchmarks/METHOD.md): thirds of an octave


def parse_batches(given: Sequence[str]) -> list[int]:
    """Return the batch sizes in ``1..4096`` (doubled from the first on) and ``8``, ascending, without repeats."""
    sizes = sorted({size for text in given for size in _batches(text.strip())})
    if sizes and not 1 <= sizes[0] <= sizes[-1] <= MAX_BATCH:
        raise UsageError(f"--batch-size takes whole numbers from 1 to {MAX_BATCH:,}, not {','.join(given)!r}")
    return sizes


def _batches(text: str) -> list[int]:
    if text.isascii() and text.isdecimal():
        return [int(text[:MOST_DIGITS])]  # more are as far out of range
    match = RANGE.fullmatch(text)
    if match is None or len(text) > 2 * MOST_DIGITS:
        raise UsageError(f"--batch-size takes 1..4096 (doubled from 1 on) or a list such as 1,8,64, not {text!r}")
    first, last = int(match["first"]), int(match["last"])
    if not 1 <= first <= last <= MAX_BATCH:
        raise UsageError(f"--batch-size {text} is not a range: put the smaller number first, from 1 to {MAX_BATCH:,}")
    return [first << doubled for doubled in range((last // first).bit_length())]


def parse_widths(given: Sequence[str]) -> list[float]:
    """Return the factors on hidden layers, ascending, without repeats; raise UsageError for anything else."""
    widths: set[float] = set()
    for text in given:
        try:
            width = float(text)
        except ValueError:
            width = math.nan
        if not 1 / MAX_WIDTH <= width <= MAX_WIDTH:
            raise UsageError(f"--width takes factors on hidden layers such as 0.5,1,2,4, not {text!r}")
        widths.add(width)
    return sorted(widths)


def crossed(options: Sequence[Options], batches: Sequence[int], widths: Sequence[float]) -> list[Options]:
    """Return all options at each size; raise UsageError where there is only one size, which is no sweep."""
    every_batch: list[int | None] = [*batches] or [None]
    every_width: list[float | None] = [*widths] or [None]
    sizes = [Size(batch, width) for batch in every_batch for width in every_width]
    if len(sizes) < 2:
        raise UsageError("a sweep needs two sizes or more, such as --batch-size 1..4096 or --width 0.5,1,2")
    return [one.at(size) for size in sizes for one in options]


def require_sweepable(selected: Sequence[Selected], options: Sequence[Options]) -> None:
    """Raise UsageError for a sweep of more than one workload, or of the width of one that does not scale."""
    if len(selected) > 1:
        names = ", ".join(one.word for one in selected)
        raise UsageError(f"a sweep measures one workload, and this names {len(selected)}: {names}; name one of them")
    for one in selected:
        if not one.entry.description.scalable and any(each.width is not None for each in options):
            raise UsageError(
                f"{one.label} has no --width: its hidden layers cannot be scaled; docs/your-model.md shows how to make "
                "a scenario scalable"
            )


def sizes_between(low: float, high: float, whole: bool) -> list[float]:
    """Return MORE_SIZES sizes that divide a bracket evenly on a logarithmic scale; fewer where there is no room."""
    parts = MORE_SIZES + 1
    even = [low * (high / low) ** (part / parts) for part in range(1, parts)]
    rounded = [float(round(size)) if whole else float(f"{size:.3g}") for size in even]
    return [size for size in dict.fromkeys(rounded) if low < size < high]


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
    return int(_quantity(text, BYTES, f"--memory-limit takes a size of memory such as 500m or 4g, not {text!r}"))


def parse_duration_s(text: str, option: str = "--budget") -> float:
    """Return ``90``, ``90s``, ``10m`` or ``1.5h`` in seconds; raise UsageError for anything else."""
    return _quantity(text, SECONDS, f"{option} takes a time such as 90s, 10m or 1.5h, not {text!r}")


def _quantity(text: str, units: Mapping[str, int], complaint: str) -> float:
    match = QUANTITY.fullmatch(text.strip().lower())
    if match is None or match["unit"] not in units or not 0 < float(match["number"]) < MOST:
        raise UsageError(complaint)
    return float(match["number"]) * units[match["unit"]]


def parse_share(given: str | float, option: str = "--threshold") -> float:
    """Return ``5%`` or ``5`` as 0.05, and a number as it is; raise UsageError unless it is from 0 to below 1."""
    match = QUANTITY.fullmatch(given.strip()) if isinstance(given, str) else None
    share = float(match["number"]) / 100 if match and match["unit"] in ("", "%") else given
    if not isinstance(share, int | float) or not 0 <= share < 1:
        raise UsageError(f"{option} takes a share below 100%, such as 5%, not {given!r}")
    return float(share)


def parse_inputs(given: Sequence[str]) -> list[Input]:
    """Return ``tokens=1x128:int32`` and ``96x96x3`` as inputs; raise UsageError for anything else."""
    inputs = []
    for text in given:
        match = INPUT.fullmatch(text.strip())
        if match is None or "0" in match["shape"].split("x"):
            raise UsageError(f"--input takes NAME=SIZE such as tokens=128:int32, or 96x96x3, not {text!r}")
        inputs.append(
            Input(match["name"] or "", [int(size) for size in match["shape"].split("x")], match["dtype"] or "")
        )
    if len({one.name for one in inputs}) < len(inputs):
        raise UsageError("--input: give each input once; if you give several, each needs its name")
    return inputs


def parse_backends(given: Sequence[str]) -> list[str]:
    """Return the backends that were named, without repeats; raise UsageError for an unknown one."""
    _require_known("backend", given, backends.names())
    return list(dict.fromkeys(given))


def parse_devices(given: Sequence[str]) -> list[str]:
    """Return the device labels that were named, without repeats; raise UsageError for an unknown one."""
    labels = []
    for name in given:
        try:
            labels.append(Device(*parse_label(name)).label)
        except ValueError:
            raise unknown("device", name, ["cpu", "gpu", "gpu:1"]) from None
    return list(dict.fromkeys(labels))


def _require_known(what: str, given: Sequence[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise unknown(what, name, list(known))


def options_of(settings: Settings) -> list[Options]:
    """Cross what the settings name; an empty list means the default.

    ``native`` adds the baseline of each, ``warm_cache`` each with Keras once more.
    """
    _require_known("value of --jit", settings.jit, JIT)
    _require_known("value of --dtype", settings.dtype, DTYPES)
    _require_known("value of --fp32", settings.fp32, get_args(Fp32))
    _require_known("value of --malloc", settings.malloc, MALLOC)
    whole = {"--threads": settings.threads, "--steps-per-execution": settings.steps_per_execution}
    for option, numbers in whole.items():
        for value in numbers:
            if not value.isdecimal() or int(value) < 1:
                raise UsageError(f"{option} takes whole numbers from 1 on, not {value!r}")
    policies: list[str | None] = [*settings.dtype] or [None]
    counts: list[int | None] = [int(value) for value in settings.threads] or [None]
    combinations = itertools.product(
        settings.jit or ["default"], policies, settings.fp32 or ["ieee"], counts, settings.malloc or ["default"]
    )
    plain = [Options(JIT[a], b, cast("Fp32", c), d, malloc=MALLOC[e]) for a, b, c, d, e in combinations]
    executions: list[int | None] = [int(value) for value in settings.steps_per_execution] or [None]
    options = [dataclasses.replace(one, steps_per_execution=steps) for one in plain for steps in executions]
    warm = [dataclasses.replace(one, warm_cache=True) for one in options if settings.warm_cache]
    if settings.native:  # the loop of a baseline is its own
        options += [dataclasses.replace(one, native=True) for one in plain]
    return list(dict.fromkeys(options + warm))


def effort_of(
    quick: bool, count: int | None, rigorous: bool, kind: ProtocolKind = "steady", budget_s: float | None = None
) -> Effort:
    """Return the effort that the options ask for; raise UsageError where they mean nothing or exclude each other."""
    if quick + (count is not None) + rigorous > 1:
        raise UsageError("--quick, --rounds and --rigorous exclude each other: give one of them")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise UsageError(f"--rounds takes a whole number from 1 on, not {count}")
    agenda = AGENDAS[kind]
    if quick and agenda.in_full:
        raise UsageError("--protocol published runs every epoch: it cannot be --quick; choose fewer with --scenario")
    standard = PUBLISHED if agenda.in_full else QUICK if quick else DEFAULT
    if agenda.sized:
        standard = dataclasses.replace(standard, protocol=SWEEP)
    if not agenda.trains:
        standard = dataclasses.replace(standard, protocol=dataclasses.replace(standard.protocol, kind=kind))
    if rigorous or count is not None:
        standard = exactly(RIGOROUS_ROUNDS if count is None else count, standard.protocol)
    return dataclasses.replace(standard, budget_s=budget_s)


def request(command: str, settings: Settings) -> RunConfig:
    """Return the configuration of a command that measures."""
    makers = {RUN: run, SWEEP_COMMAND: sweep, EXPLAIN: explanation, VERSUS: versus, FASTEST: fastest, SOAK: soak}
    return makers[command](settings)


def run(settings: Settings) -> RunConfig:
    _require_known("protocol", [settings.protocol], RUN_PROTOCOLS)
    if settings.warm_cache and (settings.quick or AGENDAS[settings.protocol].in_full):
        other = "--quick" if settings.quick else "--protocol published"
        raise UsageError(f"--warm-cache is about the first step, which {other} does not measure: leave one of them out")
    return _configured(settings, cast("ProtocolKind", settings.protocol), options_of(settings))


def sweep(settings: Settings) -> RunConfig:
    """Return the configuration of a sweep: all options at each size, and at more of them where series cross."""
    batches = parse_batches(settings.batch_sizes or ([] if settings.widths else DEFAULT_BATCHES))
    options = crossed(options_of(settings), batches, parse_widths(settings.widths))
    return dataclasses.replace(_configured(settings, "sweep", options), refine=True)


def explanation(settings: Settings) -> RunConfig:
    return dataclasses.replace(_configured(settings, "steady", options_of(settings)), explain=True)


def versus(settings: Settings) -> RunConfig:
    """Return the configuration of a comparison of versions, but for the interpreters, which may have to be made."""
    from kerasbench.analysis.estimates import MINIMAL_EFFECT  # late: most commands judge nothing

    config, threshold = _configured(settings, "steady", options_of(settings)), parse_share(settings.threshold)
    if threshold < MINIMAL_EFFECT:
        raise UsageError(f"--threshold takes {percent(MINIMAL_EFFECT)} or more, not {100 * threshold:.2f} %")
    return dataclasses.replace(config, control=True, threshold=threshold)


def fastest(settings: Settings) -> RunConfig:
    """Return the configuration of a race."""
    _require_known("purpose", [settings.purpose], PURPOSES)
    _require_known("setting to --try", settings.tries, TRIES)
    margin, rounds = parse_share(settings.margin, "--within"), settings.rounds
    if margin == 0:
        raise UsageError(f"--within must be above 0%, for example 5%; you gave {settings.margin}.")
    config = _configured(settings, "steady", [DEFAULT_OPTIONS])
    if rounds is not None and rounds > MAX_ROUNDS:
        raise UsageError(f"--rounds of a race takes at most {MAX_ROUNDS} rounds, not {rounds}")
    purpose, trains = cast("RacePurpose", settings.purpose), settings.purpose == "train"
    varies_batch = BATCH_SIZE in settings.tries
    if varies_batch and not trains:
        raise UsageError(f"--try {BATCH_SIZE} is for training; leave out --for {purpose}, or give --batch-size")
    if settings.tries == [STEPS_PER_EXECUTION] and not trains:
        raise UsageError(f"--try {STEPS_PER_EXECUTION} is for training; leave out --for {purpose}")
    protocol = dataclasses.replace(RACE.protocol, epochs=trains and not varies_batch, predicts=not trains)
    most, budget_s = rounds or RACE.max_rounds, config.effort.budget_s
    effort = dataclasses.replace(RACE, max_rounds=most, budget_s=budget_s, protocol=protocol)
    race = RaceConfig(purpose, margin, settings.tries or list(DEFAULT_TRIES), default_backend())
    one_backend = "backend" not in race.tries and not config.backends
    return dataclasses.replace(
        config, effort=effort, race=race, backends=[race.baseline] if one_backend else config.backends
    )


def soak(settings: Settings) -> RunConfig:
    """Return the configuration of a soak: one long block for each case, with a control that mostly rests."""
    _require_known("purpose", [settings.purpose], SOAKED)
    minutes = settings.minutes
    if not isinstance(minutes, int | float) or not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise UsageError(f"--minutes takes a number from {LEAST_MINUTES:g} to {MOST_MINUTES:,}, not {minutes}")
    kinds: dict[str, ProtocolKind] = {"train": "steady", "predict": "calls"}
    config = _configured(settings, kinds.get(settings.purpose, "builds"), [DEFAULT_OPTIONS])
    if config.timeout_s is not None and config.timeout_s <= 60 * minutes:
        raise UsageError(f"--timeout would stop a soak of {minutes:g} minutes before its end: leave it out")
    length_ns = int(60e9 * minutes)
    protocol = dataclasses.replace(
        config.effort.protocol,
        slices_max_ns=length_ns,
        column_max_ns=max(length_ns, config.effort.protocol.column_max_ns),
        soaks=True,
        clears=settings.purpose == BUILD_CLEARED,
        repeats=False,
        epochs=False,
        predicts=False,
    )
    return dataclasses.replace(
        config,
        effort=Effort(1, 1, cold=False, protocol=protocol),
        control=True,
        soak=SoakConfig(cast("Purpose", settings.purpose), float(minutes)),
    )


def default_backend(variables: Mapping[str, str] = os.environ) -> str:
    """Return the backend that Keras takes without settings: by KERAS_BACKEND, else by keras.json, else TensorFlow."""
    folder = Path(variables.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        configured = json.loads((folder / "keras.json").read_text("utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        configured = None
    name = variables.get("KERAS_BACKEND") or configured
    return name if name in backends.names() else "tensorflow"


def resumed(settings: Settings) -> ResumeConfig:
    """Return the configuration of --resume: the rest of a run, whose options cannot be changed."""
    config = run(settings)
    own = [one for one in settings.scenarios if catalog.own_files([one])]
    kept = ("budget", "custom", "trust", "results", "python", "wait", "resume")
    allowed = Settings(scenarios=own, **{name: getattr(settings, name) for name in kept})
    if settings != allowed:
        raise UsageError(
            "--resume reuses the interrupted run's options; only --budget, --results, --python and --wait may be "
            "added. Files of your own must be named again: --scenario FILE, --custom FILE, --trust"
        )
    return ResumeConfig(config.effort.budget_s, own, config.model_config)


def _configured(settings: Settings, kind: ProtocolKind, options: list[Options]) -> RunConfig:
    if settings.suite and settings.scenarios:
        raise UsageError(
            "--suite and --scenario exclude each other: --scenario finds a scenario of any suite by its name"
        )
    _require_known("kind of data", [settings.data], get_args(DataKind))
    budget, timeout, limit = settings.budget, settings.timeout, settings.memory_limit
    budget_s = parse_duration_s(budget) if isinstance(budget, str) else budget
    config = RunConfig(
        scenarios=settings.scenarios,
        suite=settings.suite or RunConfig().suite,
        backends=settings.backends,
        devices=settings.devices,
        options=options,
        effort=effort_of(settings.quick, settings.rounds, settings.rigorous, kind, budget_s),
        seed=settings.seed,
        data=cast("DataKind", settings.data),
        timeout_s=parse_duration_s(timeout, "--timeout") if isinstance(timeout, str) else timeout,
        memory_limit_bytes=whole_bytes(parse_size_bytes(limit) if isinstance(limit, str) else limit),
        keep_env=variables.kept(settings.keep_env),
        control=settings.control or settings.rigorous,
        model_config=_model_config(settings),
    )
    return validated(config)


def _model_config(settings: Settings) -> ModelConfig:
    batch, custom = settings.batch_size, Path(settings.custom)
    if batch is not None and (not isinstance(batch, int) or not 1 <= batch <= MAX_BATCH):
        raise UsageError(f"--batch-size takes a whole number from 1 to {MAX_BATCH:,}, not {batch}")
    if settings.custom and (custom.suffix != ".py" or not custom.is_file()):
        raise UsageError(f"--custom takes a Python file with the model's own layers, not {settings.custom!r}")
    inputs = parse_inputs(settings.inputs)
    return ModelConfig(inputs, batch, settings.custom, settings.trust, settings.rows, settings.samples)


def validated(config: RunConfig) -> RunConfig:
    """Return it with valid and unique backends and devices; raise UsageError for what cannot be measured."""
    require_time(config.timeout_s)
    require_time(config.effort.budget_s, "--budget")
    whole_bytes(config.memory_limit_bytes)
    if not isinstance(config.seed, int) or config.seed < 0:
        raise UsageError(f"--seed takes a whole number from 0 on, not {config.seed}")
    parse_backends([Environment.parse(one).backend for one in config.environments])  # an interrupted run's
    return dataclasses.replace(config, backends=parse_backends(config.backends), devices=parse_devices(config.devices))


# A model that is alive in this process: saved with its rows, and measured as any saved model is.

MODEL_FOLDER = f"{files.SCRATCH_PREFIX}model-"
METADATA = "metadata.json"
STORED = {"f": "float32", "i": "int32", "u": "int32", "b": "uint8"}  # by NumPy's kind; uint8 stays


@dataclass(frozen=True)
class SavedModel:
    """Where a live model was saved; ``rows`` is empty where it came without any."""

    file: Path
    rows: str = ""
    samples: int = 0


@contextmanager
def with_live_model(settings: Settings, scenarios: Any, data: Any) -> Iterator[Settings]:
    """Fill in scenarios and data; a live model is saved for as long as this lasts."""
    kind = data if isinstance(data, str) else "synthetic"
    if not is_model(scenarios):
        if kind is not data:
            raise UsageError("data=(x, y) is for a model object; a scenario has its own data")
        yield dataclasses.replace(settings, scenarios=named(scenarios), data=kind)
        return
    with saved_model(scenarios, None if kind is data else data) as found:
        own = [str(found.file)]
        yield dataclasses.replace(settings, scenarios=own, data=kind, rows=found.rows, samples=found.samples)


def named(scenarios: Any) -> list[str]:
    """Return the names and files of scenarios; raise UsageError for models, and for a list that came out empty."""
    models = [one for one in scenarios if is_model(one)] if isinstance(scenarios, list | tuple) else []
    if models:
        raise UsageError("pass one model object at a time: run(model)")
    found = words("scenarios", scenarios)
    is_default = isinstance(scenarios, tuple) and not scenarios
    if not found and not is_default:
        raise UsageError("scenarios is empty: give a name or a file")
    return found


def is_model(given: object) -> bool:
    """Tell whether it is a model: of it ``save``, ``name`` and ``built`` alone are used: nothing here imports Keras."""
    return callable(getattr(given, "save", None)) and hasattr(given, "predict")


def is_gone(scenarios: Sequence[str]) -> bool:
    """Tell whether a live model was measured whose file is gone: it lasts as long as its run."""
    return any(Path(one).parent.name.startswith(MODEL_FOLDER) and not Path(one).exists() for one in scenarios)


@contextmanager
def saved_model(model: Any, data: object = None) -> Iterator[SavedModel]:
    """Save a model, and its rows (x, y), for as long as this lasts."""
    if not getattr(model, "built", True):
        raise UsageError("the model is not built: start it with keras.Input(shape), or call it on a batch first")
    with files.scratch_folder(MODEL_FOLDER) as folder:
        file = Path(folder, f"{fitting(str(getattr(model, 'name', '') or ''))}.keras")
        try:
            model.save(str(file))
            if zipfile.is_zipfile(file):  # else the child says what is wrong with it
                _without_dates(file)
        except Exception as error:
            message = " ".join(str(error).split())[:200]
            raise UsageError(f"the model cannot be saved: {type(error).__name__}: {message}") from error
        if data is None:
            yield SavedModel(file)
        else:
            rows = Path(folder, "rows.npz")
            samples = write_rows(rows, data)
            _without_dates(rows)
            yield SavedModel(file, str(rows), samples)


def _without_dates(file: Path) -> None:
    """Leave out when an archive was written, so that what is saved again without a change is the same file."""
    undated = file.with_suffix(".undated")
    with zipfile.ZipFile(file) as dated, zipfile.ZipFile(undated, "w") as kept:
        for name in dated.namelist():
            with dated.open(name) as content, kept.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                if name == METADATA:  # a few words of Keras, with its date
                    member.write(json.dumps(json.load(content) | {"date_saved": ""}).encode())
                else:
                    shutil.copyfileobj(content, member)
    undated.replace(file)


def write_rows(file: Path, data: object) -> int:
    """Write (x, y) or (x, y, sample_weight) to a file, and return how many rows there are.

    Each is an array or lists, tuples and dictionaries of arrays; kept as float32, int32 or uint8.
    """
    import numpy as np

    if not isinstance(data, tuple) or len(data) not in (2, 3):
        raise UsageError(
            "data takes samples, (x, y) or (x, y, sample_weight) of NumPy arrays, or 'synthetic' or 'real', not "
            f"{type(data).__module__}.{type(data).__qualname__}; an input pipeline goes into a scenario file, as feed="
        )
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    structure = [_stored(one, name, arrays) for name, one in zip(("x", "y", "sample_weight"), data, strict=False)]
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1 or not min(lengths):
        raise UsageError(f"the arrays in data must have the same number of samples; they have {sorted(lengths)}")
    # A name of its own beside the others; none of them is pickled.
    np.savez(file, allow_pickle=False, **{STRUCTURE: np.array(json.dumps(structure))}, **arrays)
    return lengths.pop()


def _stored(given: object, name: str, arrays: "dict[str, np.ndarray[Any, Any]]") -> object:
    """Keep the arrays, each by a name of its own, and return the structure with those names in their places."""
    import numpy as np

    if isinstance(given, Mapping):
        return {str(key): _stored(one, f"{name}.{key}", arrays) for key, one in given.items()}
    if isinstance(given, list | tuple):
        return [_stored(one, f"{name}.{number}", arrays) for number, one in enumerate(given)]
    array = np.asarray(given)
    if array.ndim == 0 or array.dtype.kind not in STORED:
        raise UsageError(
            f"data: {name} must be an array of numbers, not {type(given).__name__} of {array.dtype}; convert lists of "
            "numbers with np.asarray(x)"
        )
    if array.dtype.kind in "iu" and array.size and not -(2**31) <= int(array.min()) <= int(array.max()) < 2**31:
        raise UsageError(f"data: {name} has integers beyond 32 bits ({array.min()} to {array.max()})")
    key = f"array{len(arrays)}"
    arrays[key] = array if array.dtype == np.uint8 else array.astype(STORED[array.dtype.kind])
    return key
