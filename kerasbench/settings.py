"""The options of a run, each declared here once: for the command line, for Python, and for their documentation.

``cli/options.py`` makes options of a shell of them, ``docs/tools/keywords.py`` the types of Python's keywords, and
``plan/configure.py`` what is to be measured.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args

from kerasbench.errors import UsageError
from kerasbench.names import (
    BACKENDS,
    BISECT,
    CHOICE,
    COLUMNS,
    CREATE,
    DOCTOR,
    ENVIRONMENTS,
    EXPERTS,
    EXPLAIN,
    FASTEST,
    FILES,
    LONG,
    MACHINES,
    MEASURING,
    MODEL,
    ON_OTHERS,
    RUN,
    SHOW,
    SOAK,
    SUITES,
    SWEEP,
    TABLES,
    VERSUS,
    WHAT,
)

PURPOSES = ("train", "predict", "predict-one")
BUILD, BUILD_CLEARED = "build", "build-cleared"
SOAKED = ("train", "predict", BUILD, BUILD_CLEARED)
STEPS_PER_EXECUTION = "steps-per-execution"
DEFAULT_TRIES = ("backend", "device", "jit", "threads", "malloc", STEPS_PER_EXECUTION)  # they change no result
BATCH_SIZE = "batch-size"
TRIES = (*DEFAULT_TRIES, "dtype", BATCH_SIZE)


@dataclass(frozen=True)
class OptionSpec:
    """How an option is written and described. Its name in Python, its type and its default are those of its field."""

    flag: str
    group: str
    help: str
    metavar: str = ""
    commands: tuple[str, ...] = MEASURING  # that take it
    offers: str | tuple[str, ...] = ()  # values that a shell completes, or where to look them up


def _words(flag: str, group: str, text: str, metavar: str, **more: Any) -> Any:
    return field(default_factory=list, metadata={"option": OptionSpec(flag, group, text, metavar, **more)})


def _value(default: object, flag: str, group: str, text: str, metavar: str = "", **more: Any) -> Any:
    return field(default=default, metadata={"option": OptionSpec(flag, group, text, metavar, **more)})


@dataclass(frozen=True)
class Settings:
    """Options of a run before validation. A time and a size may be a number or a word."""

    scenarios: list[str] = _words(
        "--scenario", WHAT, f"{CHOICE} Default: the whole suite.", "PATTERN|FILE", commands=(RUN, VERSUS, BISECT)
    )
    suite: str = _value(
        "",
        "--suite",
        WHAT,
        "All scenarios of a suite: published (default), tiny or modern.",
        "NAME",
        commands=(RUN,),
        offers=SUITES,
    )
    batch_sizes: list[str] = _words(
        "--batch-size", WHAT, "1..4096 (doubled each time; default) or 1,8,64.", "A..B|LIST", commands=(SWEEP,)
    )
    widths: list[str] = _words(
        "--width", WHAT, "Factors for the width of hidden layers: 0.5,1,2,4. Default: 1.", "LIST", commands=(SWEEP,)
    )
    backends: list[str] = _words(
        "--backend",
        WHAT,
        "tensorflow, torch or jax. Default: all that are installed (doctor, env create: all three).",
        "NAME",
        commands=(*MEASURING, DOCTOR, CREATE),
        offers=BACKENDS,
    )
    devices: list[str] = _words(
        "--device",
        WHAT,
        "cpu, gpu or gpu:1. Default: the CPU and one GPU of each model that a backend finds.",
        "NAME",
        offers=("cpu", "gpu"),
    )
    data: str = _value(
        "synthetic",
        "--data",
        WHAT,
        "synthetic (no download; default) or real (from keras.datasets).",
        "KIND",
        offers=("synthetic", "real"),
    )
    protocol: str = _value(
        "steady",
        "--protocol",
        WHAT,
        "steady (default): seconds per trial. published: every published epoch, one round. calls: no training, but "
        "model(x) eager and compiled, predict_on_batch, predict, and tokens that language models generate.",
        "KIND",
        commands=(RUN,),
        offers=("steady", "published", "calls"),
    )
    native: bool = _value(
        False,
        "--native",
        WHAT,
        "Also measure the native baseline, in plain TensorFlow, PyTorch or JAX: what does Keras cost?",
        commands=(RUN,),
    )
    warm_cache: bool = _value(
        False,
        "--warm-cache",
        WHAT,
        "Also measure with a warm compilation cache: how much earlier does the first step end?",
        commands=(RUN,),
    )
    purpose: str = _value(
        "train",
        "--for",
        WHAT,
        "train (default) or predict (a batch). `fastest` also takes predict-one (one sample). `soak` also takes build "
        "(build it again and again) and build-cleared (the same, with clear_session() each time).",
        "PURPOSE",
        commands=(FASTEST, SOAK),
        offers=tuple(dict.fromkeys((*PURPOSES, *SOAKED))),
    )
    tries: list[str] = _words(
        "--try",
        WHAT,
        "Settings to try: backend, device, jit, threads, malloc, steps-per-execution (default: these), dtype, "
        "batch-size.",
        "SETTING",
        commands=(FASTEST,),
        offers=TRIES,
    )
    margin: str | float = _value(
        "5%",
        "--within",
        WHAT,
        "A setting that takes at most this much longer counts as equally fast. Default: 5%.",
        "PERCENT",
        commands=(FASTEST,),
    )
    inputs: list[str] = _words(
        "--input",
        MODEL,
        "Size of an input whose dimensions are open: tokens=128, tokens=128:int32, 96x96x3.",
        "[NAME=]SIZE",
    )
    batch_size: int | None = _value(
        None,
        "--batch-size",
        MODEL,
        "Samples in a batch. Default: 32.",
        "N",
        commands=(RUN, EXPLAIN, VERSUS, BISECT, FASTEST, SOAK),
    )
    custom: str = _value("", "--custom", MODEL, "Python file with the model's own layers and functions.", "FILE.py")
    trust: bool = _value(False, "--trust", MODEL, "Trust the file: it may then run its own code and use all memory.")
    quick: bool = _value(
        False,
        "--quick",
        LONG,
        "One short round: a first look, with rough intervals, without start-up and first step.",
        commands=TABLES,
    )
    rounds: int | None = _value(
        None,
        "--rounds",
        LONG,
        "Exactly N rounds. Default: 3 to 12, until the session's own noise is below ±2 %. `fastest`: at most N, by "
        "default 4.",
        "N",
        commands=(*TABLES, FASTEST),
    )
    rigorous: bool = _value(False, "--rigorous", LONG, "Twelve rounds and an A/A control.", commands=TABLES)
    budget: str | float | None = _value(
        None,
        "--budget",
        LONG,
        "Time limit: 90s, 10m or 1h. No round starts that would exceed it; the first always completes.",
        "TIME",
        commands=(*TABLES, FASTEST),
    )
    minutes: float = _value(
        5.0, "--minutes", LONG, "Minutes that each configuration runs. Default: 5.", "N", commands=(SOAK,)
    )
    threshold: str | float = _value(
        "3%",
        "--threshold",
        SHOW,
        "The smallest difference that counts as faster or slower. At least 3%, the default.",
        "PERCENT",
        commands=(VERSUS, BISECT),
    )
    jit: list[str] = _words(
        "--jit",
        COLUMNS,
        "Compile the step: on, off, or default (what each backend does).",
        "default|on|off",
        commands=(RUN, SWEEP, VERSUS, BISECT),
        offers=("default", "on", "off"),
    )
    dtype: list[str] = _words(
        "--dtype",
        COLUMNS,
        "float32 (default), mixed_float16, mixed_bfloat16, ...",
        "POLICY",
        commands=TABLES,
        offers=("float32", "mixed_float16", "mixed_bfloat16"),
    )
    fp32: list[str] = _words(
        "--fp32",
        COLUMNS,
        "Precision of float32 matrix multiplications on a GPU: ieee (default), tf32 or framework-default.",
        "MODE",
        commands=TABLES,
        offers=("ieee", "tf32", "framework-default"),
    )
    threads: list[str] = _words(
        "--threads", COLUMNS, "CPU cores that a trial may use. Default: all.", "N", commands=TABLES
    )
    malloc: list[str] = _words(
        "--malloc",
        COLUMNS,
        "Freed memory on a CPU: default (returned to the system) or keep (kept by the process; Linux with glibc).",
        "default|keep",
        commands=TABLES,
        offers=("default", "keep"),
    )
    steps_per_execution: list[str] = _words(
        "--steps-per-execution",
        COLUMNS,
        "Training steps in one execution, as in compile(). Default: the model's own.",
        "N",
        commands=TABLES,
    )
    python: list[str] = _words(
        "--python",
        ENVIRONMENTS,
        "Python interpreter of a backend. torch@LABEL=PATH adds a configuration with that interpreter. "
        "Default: from kerasbench.toml, or this one.",
        "NAME=PATH",
        commands=(*MEASURING, DOCTOR),
    )
    hosts: list[str] = _words(
        "--hosts",
        MACHINES,
        "Measure on these machines at the same time, by ssh. `here` is this one. Interpreters there: --python "
        "[HOST:]NAME=PATH. The NAME kerasbench is the Python that runs kerasbench there (default: python3).",
        "NAME",
        commands=(*ON_OTHERS, DOCTOR),
    )
    cluster: str = _value(
        "",
        "--cluster",
        MACHINES,
        "Measure on the workers of a Dask cluster, one on each machine: tls://scheduler:8786.",
        "ADDRESS",
        commands=(*ON_OTHERS, DOCTOR),
    )
    insecure: bool = _value(
        False,
        "--insecure",
        MACHINES,
        "Allow a cluster without encryption: anyone on the network can then read its data and run code on it.",
        commands=(*ON_OTHERS, DOCTOR),
    )
    results: str = _value(
        "results", "--results", FILES, "Folder for the result file and the tables. Default: results.", "DIR"
    )
    resume: bool = _value(
        False,
        "--resume",
        FILES,
        "Continue the interrupted run in --results. With --budget TIME, run for that much longer.",
        commands=(RUN,),
    )
    control: bool = _value(
        False,
        "--control",
        EXPERTS,
        "A/A control: measure one configuration of each workload twice. A difference between the two is noise.",
        commands=(RUN, SWEEP, EXPLAIN),
    )
    timeout: str | float | None = _value(
        None,
        "--timeout",
        EXPERTS,
        "Stop a trial after this time: 90s, 10m. Default: 300 s (published: 7200 s) for the first trial of a case, "
        "then ten times what that took, at least 60 s. A soak gets ten times its minutes on top.",
        "TIME",
    )
    memory_limit: str | float | None = _value(
        None,
        "--memory-limit",
        EXPERTS,
        "Stop a trial that uses more memory: 500m, 4g. Default: none; for saved models 3/4 of what is free.",
        "SIZE",
    )
    seed: int = _value(0, "--seed", EXPERTS, "Seed for the data, the weights and the order of trials. Default: 0.", "N")
    keep_env: list[str] = _words(
        "--keep-env",
        EXPERTS,
        "Pass this environment variable to the trials. Its value is saved with the results.",
        "NAME",
    )
    wait: bool = _value(False, "--wait", EXPERTS, "Wait if another run uses this machine. Default: stop with an error.")
    # No options: the rows of a live model, and both sides of ``versus``.
    rows: str = ""
    samples: int = 0
    base: str = ""
    head: str = ""


def options_of(command: str) -> "dict[str, dataclasses.Field[object]]":
    """Return the fields of those options that a command takes, by their names in Python."""
    fields = Settings.__dataclass_fields__
    return {
        name: fields[name] for name in fields if "option" in fields[name].metadata and command in option(name).commands
    }


def option(name: str) -> OptionSpec:
    spec: OptionSpec = Settings.__dataclass_fields__[name].metadata["option"]
    return spec


def is_list(name: str) -> bool:
    """Tell whether an option can be given several times."""
    return Settings.__dataclass_fields__[name].default_factory is list


def settings(command: str, given: Mapping[str, object], **arguments: object) -> Settings:
    """Return what a shell or Python said; lists are taken apart at their commas.

    ``arguments`` are what is no option of this command: the scenarios of a sweep, both sides of ``versus``.

    Raises:
        TypeError: the command has no such option.
        UsageError: a value is empty, or of another type.
    """
    known = options_of(command)
    for name in given:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{command}() got an unexpected keyword argument {name!r}{guess}")
    said = {**given, **arguments}
    values: dict[str, Any] = {
        name: words(name, value) if is_list(name) else _plain(name, value) for name, value in said.items()
    }
    return Settings(**values)


def words(name: str, given: object) -> list[str]:
    """Return the words of an option that can be given several times; raise UsageError for an empty one alone.

    They are one value, several, or values with commas; of a mapping ``key=value``. A file with a comma in its path is
    one word, and so is that of an interpreter or a folder behind ``torch=``.
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
    if texts and not stripped:  # as of a shell's variable that is not set
        raise _empty(name)
    return stripped


def _apart(text: str) -> list[str]:
    return [text] if os.path.exists(text.partition("=")[2] or text) else text.split(",")


# What an option with one value takes, by the type of its field: the types of Python, in words.
KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}


def _plain(name: str, value: object) -> object:
    """Return the value of an option that has one, as its field has it; raise UsageError for one of another type."""
    declared = Settings.__dataclass_fields__[name]
    if isinstance(value, str) and not value and declared.default != "":
        raise _empty(name)
    kinds = get_args(declared.type) or (declared.type,)
    if isinstance(value, Path):
        value = str(value)
    elif isinstance(value, Real) and not isinstance(value, bool):  # NumPy's too
        value = int(value) if isinstance(value, Integral) else float(value)
    if type(value) not in kinds and not (float in kinds and type(value) is int):
        takes = " or ".join(KINDS[kind] for kind in kinds if kind in KINDS)
        shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
        raise UsageError(f"{option(name).flag} takes {takes}, not {shown}")
    return value


def _empty(name: str) -> UsageError:
    return UsageError(f"{option(name).flag} is empty: give it a value, or leave it out")
