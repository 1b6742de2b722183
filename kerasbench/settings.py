"""How an option is declared, and the settings of a run that several modes have.

What one mode alone has is in its folder, ``modes/<name>/__init__.py``.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple

RUN, EXPLAIN, FASTEST, DOCTOR = "run", "explain", "fastest", "doctor"  # commands that others name
BACKENDS, SUITES = "backends", "suites"  # names that a shell is offered, looked up when it asks
CHOICE = (
    "Training script or notebook (.py, .ipynb), saved model (.keras), scenario file (.py), name of a built-in scenario "
    "or pattern of names, keras.applications.NAME, or package.module:function."
)

# What options are for, in the order of --help. What only an expert needs comes last.
LONG, WHAT, SCRIPT, MODEL, SHOW, COLUMNS, ENVIRONMENTS, MACHINES, FILES, EXPERTS = GROUPS = (
    "How long",
    "What to measure",
    "A training script or notebook (its own arguments stand behind --)",
    "A model without data",
    "What to show",
    "Configurations (every combination is measured)",
    "Environments",
    "Other machines (kerasbench docs set-up-machines)",
    "Files",
    "For experts",
)

# Options that go together, for ``takes``.
EVERY = (
    "backends", "devices", "data", "fit", "callbacks", "inputs", "custom", "trust", "python", "results", "timeout",
    "memory_limit", "seed", "keep_env", "wait",
)  # fmt: skip
ROUNDS = ("interval", "quick", "rounds", "rigorous", "budget")
ELSEWHERE = ("hosts", "cluster", "insecure")  # other machines can measure it
# Variants: whose configurations are crossed with all others, stand beside them, or are exported models.
CROSSED, ADDED, EXPORTED = "crossed variants", "added variants", "exported variants"


@dataclass(frozen=True)
class OptionSpec:
    """Its name in Python is that of its field, or of its variant; ``kind`` the type of that field."""

    usage: str  # the flag, and what its value is called
    group: str
    help: str
    offers: str | tuple[str, ...] = ()  # values that a shell completes, or where to look them up
    _: KW_ONLY
    many: bool = False  # it takes several values
    default: object = None  # of one that takes one
    kind: Any = bool

    @property
    def flag(self) -> str:
        return self.usage.partition(" ")[0]

    @property
    def metavar(self) -> str:
        return self.usage.partition(" ")[2]


class Argument(NamedTuple):
    """What is typed without the name of an option: one word, several (``...``), or perhaps none (``[...]``)."""

    name: str  # of its field; what runs are of may also be ``scenario``, beside an option
    metavar: str
    help: str


SCENARIOS = Argument("scenarios", "SCENARIO...", f"One or more. {CHOICE}")


def options(usage: str, group: str, text: str, offers: str | tuple[str, ...] = ()) -> Any:
    """Declare an option with several values."""
    return field(default_factory=list, metadata={"option": OptionSpec(usage, group, text, offers, many=True)})


def option(default: object, usage: str, group: str, text: str, offers: str | tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"option": OptionSpec(usage, group, text, offers, default=default)})


@dataclass(frozen=True)
class Settings:
    """Options of a run before validation. A time and a size may be a number or a word."""

    takes: ClassVar[tuple[str, ...]] = ()  # which of the options below, and which variants

    # A table: the first line of an option has what it is, the others what --help says.
    # fmt: off
    scenarios: list[str] = options("--scenario PATTERN|FILE", WHAT, f"{CHOICE} Default: the whole suite.")
    suite: str = option("", "--suite NAME", WHAT,
        "All scenarios of a suite: published (default), tiny, modern, layers or feeds.", SUITES)
    backends: list[str] = options("--backend NAME", WHAT,
        "tensorflow, torch or jax. Default: all that are installed.", BACKENDS)
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
        "Stop a trial after this time: 90s, 10m. Default: 300 s (--protocol published: 7200 s) for the first trial of "
        "a case, then ten times what that took, at least 60 s.")
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
