"""The settings of a run: what several modes have. What one alone has is in its folder, ``modes/<name>/__init__.py``."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from kerasbench import names
from kerasbench.errors import UsageError
from kerasbench.names import ENVIRONMENTS, EXPERTS, FILES, LONG, MACHINES, MODEL, SCRIPT, WHAT
from kerasbench.variants.variant import OptionSpec

# Options that go together, for ``takes``.
EVERY = (
    "backends", "devices", "data", "fit", "callbacks", "inputs", "custom", "trust", "python", "results", "timeout",
    "memory_limit", "seed", "keep_env", "wait",
)  # fmt: skip
ROUNDS = ("interval", "quick", "rounds", "rigorous", "budget")
ELSEWHERE = ("hosts", "cluster", "insecure")  # other machines can measure it


def options(usage: str, group: str, text: str, offers: str | tuple[str, ...] = ()) -> Any:
    """Declare an option with several values."""
    return field(default_factory=list, metadata={"option": OptionSpec(usage, group, text, offers, many=True)})


def option(default: object, usage: str, group: str, text: str, offers: str | tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"option": OptionSpec(usage, group, text, offers, default=default)})


@dataclass(frozen=True)
class Settings:
    """Options of a run before validation. A time and a size may be a number or a word."""

    takes: ClassVar[tuple[str, ...]] = ()  # which of the options below a command takes

    # A table: the first line of an option has what it is, the others what --help says.
    # fmt: off
    scenarios: list[str] = options("--scenario PATTERN|FILE", WHAT, f"{names.CHOICE} Default: the whole suite.")
    suite: str = option("", "--suite NAME", WHAT,
        "All scenarios of a suite: published (default), tiny, modern or layers.", names.SUITES)
    backends: list[str] = options("--backend NAME", WHAT,
        "tensorflow, torch or jax. Default: all that are installed.", names.BACKENDS)
    devices: list[str] = options("--device NAME", WHAT,
        "cpu, gpu or gpu:1. Default: the CPU and one GPU of each model that a backend finds.", ("cpu", "gpu"))
    data: str = option("synthetic", "--data KIND", WHAT,
        "synthetic (no download; default) or real (from keras.datasets).", ("synthetic", "real"))
    fit: int = option(1, "--fit N", SCRIPT, "Measure the script's Nth call of fit(). Default: its first.")
    callbacks: bool = option(False, "--callbacks", SCRIPT,
        "Keep the callbacks that the script gives to fit(). Default: leave them out, for they may write files.")
    inputs: list[str] = options("--input [NAME=]SIZE", MODEL,
        "Size of an input whose dimensions are open: tokens=128, tokens=128:int32, 96x96x3.")
    batch_size: int | None = option(None, "--batch-size N", MODEL, "Samples in a batch. Default: 32.")
    custom: str = option("", "--custom FILE.py", MODEL, "Python file with the model's own layers and functions.")
    trust: bool = option(False, "--trust", MODEL, "Trust the file: it may then run its own code and use all memory.")
    quick: bool = option(False, "--quick", LONG,
        "One short round: a first look, with rough intervals, without start-up, first step and predictions of a batch. "
        "What takes ten times as long as the fastest is left out after its second step.")
    interval: str | float | None = option(None, "--interval PERCENT", LONG,
        "3 to 12 rounds, until the fastest is decided and every printed interval is within this (beyond 2×: "
        "twice this), or until 12 would not do. Default: 5%.")
    rounds: int | None = option(None, "--rounds N", LONG, "Exactly N rounds.")
    rigorous: bool = option(False, "--rigorous", LONG, "Twelve rounds and an A/A control.")
    budget: str | float | None = option(None, "--budget TIME", LONG,
        "Time limit: 90s, 10m or 1h. No round starts that would exceed it; the first always completes.")
    python: list[str] = options("--python NAME=PATH", ENVIRONMENTS,
        "Python interpreter of a backend. torch@LABEL=PATH adds a configuration with that interpreter. Default: from "
        "kerasbench.toml, or this one.")
    hosts: list[str] = options("--hosts NAME", MACHINES,
        "Measure on these machines at the same time, by ssh. `here` is this one. Interpreters there: --python "
        "[HOST:]NAME=PATH. The NAME kerasbench is the Python that runs kerasbench there (default: python3).")
    cluster: str = option("", "--cluster ADDRESS", MACHINES,
        "Measure on the workers of a Dask cluster, one on each machine: tls://scheduler:8786.")
    insecure: bool = option(False, "--insecure", MACHINES,
        "Allow a cluster without encryption: anyone on the network can then read its data and run code on it.")
    results: str = option("results", "--results DIR", FILES,
        "Folder for the result file and the tables. Default: results.")
    resume: bool = option(False, "--resume", FILES,
        "Continue the interrupted run in --results. With --budget TIME, run for that much longer.")
    control: bool = option(False, "--control", EXPERTS,
        "A/A control: measure one configuration of each workload twice. A difference between the two is noise.")
    timeout: str | float | None = option(None, "--timeout TIME", EXPERTS,
        "Stop a trial after this time: 90s, 10m. Default: 300 s (published: 7200 s) for the first trial of a case, "
        "then ten times what that took, at least 60 s.")
    memory_limit: str | float | None = option(None, "--memory-limit SIZE", EXPERTS,
        "Stop a trial that uses more memory: 500m, 4g. Default: none; for saved models 3/4 of what is free.")
    seed: int = option(0, "--seed N", EXPERTS, "Seed for the data, the weights and the order of trials. Default: 0.")
    keep_env: list[str] = options("--keep-env NAME", EXPERTS,
        "Pass this environment variable to the trials. Its value is saved with the results.")
    wait: bool = option(False, "--wait", EXPERTS, "Wait if another run uses this machine. Default: stop with an error.")
    # fmt: on
    choices: dict[str, list[str]] = field(default_factory=dict)  # what was said of variants, by their names
    script_arguments: list[str] = field(default_factory=list)  # a script's own
    rows: str = ""  # of a live model
    samples: int = 0

    @property
    def arguments(self) -> list[str]:
        """What is said without the name of an option, besides scenarios."""
        return []


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


def require_said(flag: str, said: object) -> None:
    """Raise UsageError for nothing, as a shell's variable is that is not set."""
    if not said:
        raise UsageError(f"{flag} is empty: give it a value, or leave it out")
