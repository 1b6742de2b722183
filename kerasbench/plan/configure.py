"""The configuration of a run, made of the settings of a command line or of Python: the one place that checks them."""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from kerasbench import backends, names
from kerasbench.errors import UsageError
from kerasbench.plan import catalog, parse
from kerasbench.plan.catalog import Selected
from kerasbench.processes import variables
from kerasbench.protocol.columns import DEFAULT as DEFAULT_OPTIONS
from kerasbench.protocol.columns import DTYPES, Environment, Fp32, Malloc, Options, Size
from kerasbench.protocol.requests import DataKind, ModelConfig, ProtocolKind
from kerasbench.protocol.stages import AGENDAS
from kerasbench.results import run as saved
from kerasbench.results.run import Effort, Purpose, RaceConfig, RacePurpose, ResumeConfig, RunConfig, SoakConfig
from kerasbench.settings import BATCH_SIZE, BUILD_CLEARED, DEFAULT_TRIES, SOAKED, STEPS_PER_EXECUTION, TRIES, Settings
from kerasbench.text import percent

JIT = {"default": None, "on": True, "off": False}
MALLOC: dict[str, Malloc | None] = {"default": None, "keep": "keep"}
RUN_PROTOCOLS: tuple[ProtocolKind, ...] = ("steady", "published", "calls")  # sweep is a command
SOAK_PROTOCOLS: dict[str, ProtocolKind] = {"train": "steady", "predict": "calls"}  # else builds
RACES: tuple[RacePurpose, ...] = get_args(RacePurpose)
DATA: tuple[DataKind, ...] = get_args(DataKind)
UNSAID = (None,)  # in place of the values of an option: its default alone
DEFAULT_BATCHES = ["1..4096"]
LEAST_MINUTES, MOST_MINUTES = 0.1, 24 * 60
MORE_SIZES = 2  # inside the bracket of a crossover (benchmarks/METHOD.md): thirds of an octave
RESUMED = ("budget", "custom", "trust", "results", "python", "wait", "resume")  # what --resume takes besides files


def config_of(command: str, asked: Settings) -> RunConfig:
    """Return the configuration of a command that measures; raise UsageError for what cannot be measured."""
    makers = {
        names.RUN: run,
        names.SWEEP: sweep,
        names.EXPLAIN: explanation,
        names.VERSUS: versus,
        names.FASTEST: fastest,
        names.SOAK: soak,
    }
    return makers[command](asked)


def run(asked: Settings) -> RunConfig:
    kind = parse.known("protocol", asked.protocol, RUN_PROTOCOLS)
    if asked.warm_cache and (asked.quick or AGENDAS[kind].in_full):
        other = "--quick" if asked.quick else "--protocol published"
        raise UsageError(f"--warm-cache is about the first step, which {other} does not measure: leave one of them out")
    return _configured(asked, kind, options_of(asked))


def sweep(asked: Settings) -> RunConfig:
    """Return the configuration of a sweep: all options at each size, and at more of them where series cross."""
    batches = parse.batches(asked.batch_sizes or ([] if asked.widths else DEFAULT_BATCHES))
    options = crossed(options_of(asked), batches, parse.widths(asked.widths))
    return replace(_configured(asked, "sweep", options), refine=True)


def explanation(asked: Settings) -> RunConfig:
    return replace(_configured(asked, "steady", options_of(asked)), explain=True)


def versus(asked: Settings) -> RunConfig:
    """Return the configuration of a comparison of versions, but for the interpreters, which may have to be made."""
    from kerasbench.analysis.estimates import MINIMAL_EFFECT  # late: most commands judge nothing

    config, threshold = _configured(asked, "steady", options_of(asked)), parse.share(asked.threshold, "--threshold")
    if threshold < MINIMAL_EFFECT:
        raise UsageError(f"--threshold takes {percent(MINIMAL_EFFECT)} or more, not {100 * threshold:.2f} %")
    return replace(config, control=True, threshold=threshold)


def fastest(asked: Settings) -> RunConfig:
    purpose = parse.known("purpose", asked.purpose, RACES)
    tries = [parse.known("setting to --try", name, TRIES) for name in asked.tries] or [*DEFAULT_TRIES]
    margin = parse.share(asked.margin, "--within")
    if margin == 0:
        raise UsageError(f"--within must be above 0%, for example 5%; you gave {asked.margin}.")
    config = _configured(asked, "steady", [DEFAULT_OPTIONS])
    if asked.rounds is not None and asked.rounds > saved.MAX_ROUNDS:
        raise UsageError(f"--rounds of a race takes at most {saved.MAX_ROUNDS} rounds, not {asked.rounds}")
    trains, varies_batch = purpose == "train", BATCH_SIZE in tries
    if varies_batch and not trains:
        raise UsageError(f"--try {BATCH_SIZE} is for training; leave out --for {purpose}, or give --batch-size")
    if tries == [STEPS_PER_EXECUTION] and not trains:
        raise UsageError(f"--try {STEPS_PER_EXECUTION} is for training; leave out --for {purpose}")
    protocol = replace(saved.RACE.protocol, epochs=trains and not varies_batch, predicts=not trains)
    most_rounds = asked.rounds or saved.RACE.max_rounds
    effort = replace(saved.RACE, max_rounds=most_rounds, budget_s=config.effort.budget_s, protocol=protocol)
    baseline = default_backend()
    others = config.backends or ([] if "backend" in tries else [baseline])
    return replace(config, effort=effort, race=RaceConfig(purpose, margin, tries, baseline), backends=others)


def soak(asked: Settings) -> RunConfig:
    """Return the configuration of a soak: one long block for each case, with a control that mostly rests."""
    purpose, minutes = parse.known("purpose", asked.purpose, SOAKED), asked.minutes
    if not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise UsageError(f"--minutes takes a number from {LEAST_MINUTES:g} to {MOST_MINUTES:,}, not {minutes}")
    config = _configured(asked, SOAK_PROTOCOLS.get(purpose, "builds"), [DEFAULT_OPTIONS])
    if config.timeout_s is not None and config.timeout_s <= 60 * minutes:
        raise UsageError(f"--timeout would stop a soak of {minutes:g} minutes before its end: leave it out")
    length_ns, usual = int(60e9 * minutes), config.effort.protocol
    protocol = replace(
        usual,
        slices_max_ns=length_ns,
        column_max_ns=max(length_ns, usual.column_max_ns),
        soaks=True,
        clears=purpose == BUILD_CLEARED,
        repeats=False,
        epochs=False,
        predicts=False,
    )
    effort = Effort(1, 1, cold=False, protocol=protocol)
    return replace(config, effort=effort, control=True, soak=SoakConfig(cast("Purpose", purpose), float(minutes)))


def resumed(asked: Settings) -> ResumeConfig:
    """Return the configuration of --resume: the rest of a run, whose options cannot be changed."""
    config = run(asked)
    files = [file for file in asked.scenarios if catalog.own_files([file])]
    if asked != replace(Settings(scenarios=files), **{name: getattr(asked, name) for name in RESUMED}):
        raise UsageError(
            "--resume reuses the interrupted run's options; only --budget, --results, --python and --wait may be "
            "added. Files of your own must be named again: --scenario FILE, --custom FILE, --trust"
        )
    return ResumeConfig(config.effort.budget_s, files, config.model_config)


def _configured(asked: Settings, kind: ProtocolKind, options: list[Options]) -> RunConfig:
    if asked.suite and asked.scenarios:
        raise UsageError(
            "--suite and --scenario exclude each other: --scenario finds a scenario of any suite by its name"
        )
    config = RunConfig(
        scenarios=asked.scenarios,
        suite=asked.suite or RunConfig().suite,
        backends=asked.backends,
        devices=asked.devices,
        options=options,
        effort=effort_of(asked, kind),
        seed=asked.seed,
        data=parse.known("kind of data", asked.data, DATA),
        timeout_s=parse.duration_s(asked.timeout, "--timeout"),
        memory_limit_bytes=parse.size_bytes(asked.memory_limit),
        keep_env=variables.kept(asked.keep_env),
        control=asked.control or asked.rigorous,
        model_config=_model_config(asked),
    )
    return validated(config)


def validated(config: RunConfig) -> RunConfig:
    """Return it with valid and unique backends and devices; that of an interrupted run may be anybody's file."""
    parse.duration_s(config.timeout_s, "--timeout")
    parse.duration_s(config.effort.budget_s, "--budget")
    parse.size_bytes(config.memory_limit_bytes)
    if config.seed < 0:
        raise UsageError(f"--seed takes a whole number from 0 on, not {config.seed}")
    parse.backend_names([Environment.parse(name).backend for name in config.environments])
    return replace(config, backends=parse.backend_names(config.backends), devices=parse.device_labels(config.devices))


def effort_of(asked: Settings, kind: ProtocolKind = "steady") -> Effort:
    count, agenda = asked.rounds, AGENDAS[kind]
    if asked.quick + (count is not None) + asked.rigorous > 1:
        raise UsageError("--quick, --rounds and --rigorous exclude each other: give one of them")
    if count is not None and count < 1:
        raise UsageError(f"--rounds takes a whole number from 1 on, not {count}")
    if asked.quick and agenda.in_full:
        raise UsageError("--protocol published runs every epoch: it cannot be --quick; choose fewer with --scenario")
    effort = saved.PUBLISHED if agenda.in_full else saved.QUICK if asked.quick else saved.DEFAULT
    if agenda.sized:
        effort = replace(effort, protocol=saved.SWEEP)
    if not agenda.trains:
        effort = replace(effort, protocol=replace(effort.protocol, kind=kind))
    if asked.rigorous or count is not None:
        effort = saved.exactly(saved.RIGOROUS_ROUNDS if count is None else count, effort.protocol)
    return replace(effort, budget_s=parse.duration_s(asked.budget, "--budget"))


def _model_config(asked: Settings) -> ModelConfig:
    batch, custom = asked.batch_size, Path(asked.custom)
    if batch is not None and not 1 <= batch <= parse.MAX_BATCH:
        raise UsageError(f"--batch-size takes a whole number from 1 to {parse.MAX_BATCH:,}, not {batch}")
    if asked.custom and (custom.suffix != ".py" or not custom.is_file()):
        raise UsageError(f"--custom takes a Python file with the model's own layers, not {asked.custom!r}")
    return ModelConfig(parse.inputs(asked.inputs), batch, asked.custom, asked.trust, asked.rows, asked.samples)


def options_of(asked: Settings) -> list[Options]:
    """Cross what the settings name; an empty list means the default.

    ``native`` adds the baseline of each, ``warm_cache`` each with Keras once more.
    """
    precisions: tuple[Fp32, ...] = get_args(Fp32)
    crossing = itertools.product(
        [JIT[parse.known("value of --jit", word, JIT)] for word in asked.jit] or UNSAID,
        [parse.known("value of --dtype", word, DTYPES) for word in asked.dtype] or UNSAID,
        [parse.known("value of --fp32", word, precisions) for word in asked.fp32] or [Options().fp32],
        parse.counts(asked.threads, "--threads") or UNSAID,
        [MALLOC[parse.known("value of --malloc", word, MALLOC)] for word in asked.malloc] or UNSAID,
    )
    plain = [Options(jit, dtype, fp32, threads, malloc=malloc) for jit, dtype, fp32, threads, malloc in crossing]
    executions = parse.counts(asked.steps_per_execution, "--steps-per-execution") or UNSAID
    keras = [replace(options, steps_per_execution=steps) for options in plain for steps in executions]
    native = [replace(options, native=True) for options in plain if asked.native]  # the loop of a baseline is its own
    warm = [replace(options, warm_cache=True) for options in keras if asked.warm_cache]
    return list(dict.fromkeys([*keras, *native, *warm]))


def crossed(options: Sequence[Options], batches: Sequence[int], widths: Sequence[float]) -> list[Options]:
    """Return all options at each size; raise UsageError where there is only one size, which is no sweep."""
    sizes = list(itertools.starmap(Size, itertools.product(batches or UNSAID, widths or UNSAID)))
    if len(sizes) < 2:
        raise UsageError("a sweep needs two sizes or more, such as --batch-size 1..4096 or --width 0.5,1,2")
    return [choices.at(size) for size in sizes for choices in options]


def require_sweepable(selected: Sequence[Selected], options: Sequence[Options]) -> None:
    """Raise UsageError for a sweep of more than one workload, or of the width of one that does not scale."""
    if len(selected) > 1:
        names = ", ".join(workload.word for workload in selected)
        raise UsageError(f"a sweep measures one workload, and this names {len(selected)}: {names}; name one of them")
    for workload in selected:
        if not workload.entry.description.scalable and any(choices.width is not None for choices in options):
            raise UsageError(
                f"{workload.label} has no --width: its hidden layers cannot be scaled; docs/your-model.md shows how "
                "to make a scenario scalable"
            )


def sizes_between(low: float, high: float, whole: bool) -> list[float]:
    """Return MORE_SIZES sizes that divide a bracket evenly on a logarithmic scale; fewer where there is no room."""
    parts = MORE_SIZES + 1
    even = [low * (high / low) ** (part / parts) for part in range(1, parts)]
    rounded = [float(round(size)) if whole else float(f"{size:.3g}") for size in even]
    return [size for size in dict.fromkeys(rounded) if low < size < high]


def default_backend(shell: Mapping[str, str] = os.environ) -> str:
    """Return the backend that Keras takes without settings: by KERAS_BACKEND, else by keras.json, else TensorFlow."""
    folder = Path(shell.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        configured = json.loads((folder / "keras.json").read_text("utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        configured = None
    name = shell.get("KERAS_BACKEND") or configured
    return name if name in backends.names() else "tensorflow"
