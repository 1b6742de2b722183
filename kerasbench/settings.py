"""The options of a run: declared for ``cli/options.py``, ``docs/tools/keywords.py`` and ``plan/configure.py``."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args

from kerasbench import names, variants
from kerasbench.errors import UsageError
from kerasbench.variants.variant import OptionSpec

WHAT, MODEL, LONG, SHOW, COLUMNS, ENVIRONMENTS, MACHINES, FILES, EXPERTS = names.GROUPS
PURPOSES = ("train", "predict", "predict-one")
BUILD, BUILD_CLEARED = "build", "build-cleared"
SOAKED = ("train", "predict", BUILD, BUILD_CLEARED)
_tried = {variant.flag: variant.tried for variant in variants.ALL if variant.tried is not None}
DEFAULT_TRIES = ("backend", "device", *(name for name, by_default in _tried.items() if by_default))
TRIES = (*DEFAULT_TRIES, *(name for name, by_default in _tried.items() if not by_default))


def _many(usage: str, group: str, text: str, *more: Any, **named: Any) -> Any:
    return field(default_factory=list, metadata={"option": OptionSpec(usage, group, text, *more, many=True, **named)})


def _value(default: object, usage: str, group: str, text: str, *more: Any, **named: Any) -> Any:
    option = OptionSpec(usage, group, text, *more, default=default, **named)
    return field(default=default, metadata={"option": option})


@dataclass(frozen=True)
class Settings:
    """Options of a run before validation. A time and a size may be a number or a word."""

    # A table: the first line of an option has what it is, the others what --help says, and who takes it.
    # fmt: off
    scenarios: list[str] = _many("--scenario PATTERN|FILE", WHAT,
        f"{names.CHOICE} Default: the whole suite.", (names.RUN, names.VERSUS, names.BISECT))
    suite: str = _value("", "--suite NAME", WHAT,
        "All scenarios of a suite: published (default), tiny or modern.", (names.RUN,), names.SUITES)
    batch_sizes: list[str] = _many("--batch-size A..B|LIST", WHAT,
        "1..4096 (doubled each time; default) or 1,8,64.", (names.SWEEP,))
    widths: list[str] = _many("--width LIST", WHAT,
        "Factors for the width of hidden layers: 0.5,1,2,4. Default: 1.", (names.SWEEP,))
    backends: list[str] = _many("--backend NAME", WHAT,
        "tensorflow, torch or jax. Default: all that are installed (doctor, env create: all three).",
        (*names.MEASURING, names.DOCTOR, names.CREATE), names.BACKENDS)
    devices: list[str] = _many("--device NAME", WHAT,
        "cpu, gpu or gpu:1. Default: the CPU and one GPU of each model that a backend finds.", offers=("cpu", "gpu"))
    data: str = _value("synthetic", "--data KIND", WHAT,
        "synthetic (no download; default) or real (from keras.datasets).", offers=("synthetic", "real"))
    protocol: str = _value("steady", "--protocol KIND", WHAT,
        "steady (default): seconds per trial. published: every published epoch, one round. calls: no training, but "
        "model(x) eager and compiled, predict_on_batch, predict, and tokens that language models generate.",
        (names.RUN,), ("steady", "published", "calls"))
    purpose: str = _value("train", "--for PURPOSE", WHAT,
        "train (default) or predict (a batch). `fastest` also takes predict-one (one sample). `soak` also takes build "
        "(build it again and again) and build-cleared (the same, with clear_session() each time).",
        (names.FASTEST, names.SOAK), tuple(dict.fromkeys((*PURPOSES, *SOAKED))))
    tries: list[str] = _many("--try SETTING", WHAT,
        f"Settings to try: {', '.join(DEFAULT_TRIES)} (default: these), {', '.join(TRIES[len(DEFAULT_TRIES):])}.",
        (names.FASTEST,), TRIES)
    margin: str | float = _value("5%", "--within PERCENT", WHAT,
        "A setting that takes at most this much longer counts as equally fast. Default: 5%.", (names.FASTEST,))
    inputs: list[str] = _many("--input [NAME=]SIZE", MODEL,
        "Size of an input whose dimensions are open: tokens=128, tokens=128:int32, 96x96x3.")
    batch_size: int | None = _value(None, "--batch-size N", MODEL,
        "Samples in a batch. Default: 32.",
        (names.RUN, names.EXPLAIN, names.VERSUS, names.BISECT, names.FASTEST, names.SOAK))
    custom: str = _value("", "--custom FILE.py", MODEL,
        "Python file with the model's own layers and functions.")
    trust: bool = _value(False, "--trust", MODEL,
        "Trust the file: it may then run its own code and use all memory.")
    quick: bool = _value(False, "--quick", LONG,
        "One short round: a first look, with rough intervals, without start-up and first step.", names.TABLES)
    rounds: int | None = _value(None, "--rounds N", LONG,
        "Exactly N rounds. Default: 3 to 12, until the session's own noise is below ±2 %. `fastest`: at most N, by "
        "default 4.", (*names.TABLES, names.FASTEST))
    rigorous: bool = _value(False, "--rigorous", LONG,
        "Twelve rounds and an A/A control.", names.TABLES)
    budget: str | float | None = _value(None, "--budget TIME", LONG,
        "Time limit: 90s, 10m or 1h. No round starts that would exceed it; the first always completes.",
        (*names.TABLES, names.FASTEST))
    minutes: float = _value(5.0, "--minutes N", LONG,
        "Minutes that each configuration runs. Default: 5.", (names.SOAK,))
    threshold: str | float = _value("3%", "--threshold PERCENT", SHOW,
        "The smallest difference that counts as faster or slower. At least 3%, the default.",
        (names.VERSUS, names.BISECT))
    python: list[str] = _many("--python NAME=PATH", ENVIRONMENTS,
        "Python interpreter of a backend. torch@LABEL=PATH adds a configuration with that interpreter. Default: from "
        "kerasbench.toml, or this one.", (*names.MEASURING, names.DOCTOR))
    hosts: list[str] = _many("--hosts NAME", MACHINES,
        "Measure on these machines at the same time, by ssh. `here` is this one. Interpreters there: --python "
        "[HOST:]NAME=PATH. The NAME kerasbench is the Python that runs kerasbench there (default: python3).",
        (*names.ON_OTHERS, names.DOCTOR))
    cluster: str = _value("", "--cluster ADDRESS", MACHINES,
        "Measure on the workers of a Dask cluster, one on each machine: tls://scheduler:8786.",
        (*names.ON_OTHERS, names.DOCTOR))
    insecure: bool = _value(False, "--insecure", MACHINES,
        "Allow a cluster without encryption: anyone on the network can then read its data and run code on it.",
        (*names.ON_OTHERS, names.DOCTOR))
    results: str = _value("results", "--results DIR", FILES,
        "Folder for the result file and the tables. Default: results.")
    resume: bool = _value(False, "--resume", FILES,
        "Continue the interrupted run in --results. With --budget TIME, run for that much longer.", (names.RUN,))
    control: bool = _value(False, "--control", EXPERTS,
        "A/A control: measure one configuration of each workload twice. A difference between the two is noise.",
        (names.RUN, names.SWEEP, names.EXPLAIN))
    timeout: str | float | None = _value(None, "--timeout TIME", EXPERTS,
        "Stop a trial after this time: 90s, 10m. Default: 300 s (published: 7200 s) for the first trial of a case, "
        "then ten times what that took, at least 60 s. A soak gets ten times its minutes on top.")
    memory_limit: str | float | None = _value(None, "--memory-limit SIZE", EXPERTS,
        "Stop a trial that uses more memory: 500m, 4g. Default: none; for saved models 3/4 of what is free.")
    seed: int = _value(0, "--seed N", EXPERTS,
        "Seed for the data, the weights and the order of trials. Default: 0.")
    keep_env: list[str] = _many("--keep-env NAME", EXPERTS,
        "Pass this environment variable to the trials. Its value is saved with the results.")
    wait: bool = _value(False, "--wait", EXPERTS,
        "Wait if another run uses this machine. Default: stop with an error.")
    # fmt: on
    choices: dict[str, list[str]] = field(default_factory=dict)  # what was said of variants, by their names
    # No options: the rows of a live model, and both sides of ``versus``.
    rows: str = ""
    samples: int = 0
    base: str = ""
    head: str = ""


OF_VARIANTS = {variant.name: variant.option for variant in variants.ALL if variant.option}
SPECS: dict[str, OptionSpec] = {
    field.name: field.metadata["option"] for field in dataclasses.fields(Settings) if "option" in field.metadata
} | OF_VARIANTS
MANY = {name for name, option in SPECS.items() if option.many}


def options_of(command: str) -> list[str]:
    """Return the names of a command's options, in the order of their groups in ``--help``."""
    taken = [name for name, option in SPECS.items() if command in option.commands]
    return sorted(taken, key=lambda name: names.GROUPS.index(SPECS[name].group))


def value(asked: Settings, name: str) -> Any:
    if name not in OF_VARIANTS:
        return getattr(asked, name)
    return asked.choices.get(name, []) if name in MANY else name in asked.choices


def settings(command: str, given: Mapping[str, object], **arguments: object) -> Settings:
    """Return what a shell or Python said; ``arguments`` are no options of this command, as both sides of ``versus``.

    Raise TypeError if the command has no such option, and UsageError if a value is empty, or of another type.
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
        name: words(name, value) if name in MANY else _plain(name, value) for name, value in said.items()
    }
    choices = {name: values.pop(name) for name in said if name in OF_VARIANTS}
    asked = {name: value if name in MANY else [""] for name, value in choices.items() if value}
    return Settings(**values, choices=asked)


def words(name: str, given: object) -> list[str]:
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
    if texts and not stripped:  # as of a shell's variable that is not set
        raise _empty(name)
    return stripped


def _apart(text: str) -> list[str]:
    return [text] if os.path.exists(text.partition("=")[2] or text) else text.split(",")


# What an option with one value takes, by the type of its field: the types of Python, in words.
KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}


def _plain(name: str, value: object) -> object:
    if isinstance(value, str) and not value and name in SPECS and SPECS[name].default != "":
        raise _empty(name)
    kind = bool if name in OF_VARIANTS else Settings.__dataclass_fields__[name].type
    kinds = get_args(kind) or (kind,)
    if isinstance(value, Path):
        value = str(value)
    elif isinstance(value, Real) and not isinstance(value, bool):  # NumPy's too
        value = int(value) if isinstance(value, Integral) else float(value)
    if type(value) not in kinds and not (float in kinds and type(value) is int):
        takes = " or ".join(KINDS[kind] for kind in kinds if kind in KINDS)
        shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
        raise UsageError(f"{SPECS[name].flag} takes {takes}, not {shown}")
    return value


def _empty(name: str) -> UsageError:
    return UsageError(f"{SPECS[name].flag} is empty: give it a value, or leave it out")
