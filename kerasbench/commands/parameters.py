"""The options that several commands have in common: their types, what they are for, and what their help says."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kerasbench.errors import UsageError

WHAT, MODEL, LONG, SHOW, COLUMNS, ENVIRONMENTS, FILES, EXPERTS = (
    "What to measure",
    "A saved model, or one of keras.applications",
    "How long",
    "What to show",
    "Columns (every combination is measured)",
    "Environments",
    "Files",
    "For experts",
)

CHOICE = "Name, pattern, scenario file (.py), saved model (.keras), or keras.applications.NAME."


def backend_names() -> list[str]:
    """Return what a shell offers for --backend."""
    from kerasbench import backends

    return backends.names()


def suite_names() -> list[str]:
    """Return what a shell offers for --suite."""
    from kerasbench.plan import catalog

    return list(catalog.suites())


Names = list[str] | None
Scenarios = Annotated[
    Names,
    typer.Option(
        metavar="PATTERN|FILE",
        help=f"{CHOICE} Default: all of --suite.",
        rich_help_panel=WHAT,
    ),
]
Compared = Annotated[
    Names,
    typer.Option(
        "--scenario",
        metavar="PATTERN|FILE",
        help=f"{CHOICE} Default: all published scenarios.",
        rich_help_panel=WHAT,
    ),
]
Suite = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="All scenarios of a suite: published (default), tiny or modern.",
        autocompletion=suite_names,
        show_default=False,
        rich_help_panel=WHAT,
    ),
]
ModelBatch = Annotated[
    int | None,
    typer.Option("--batch-size", metavar="N", help="Samples in a batch. Default: 32.", rich_help_panel=MODEL),
]
Inputs = Annotated[
    Names,
    typer.Option(
        "--input",
        metavar="[NAME=]SIZE",
        help="Size of an input whose dimensions are open: tokens=128, tokens=128:int32, 96x96x3.",
        rich_help_panel=MODEL,
    ),
]
Custom = Annotated[
    str | None,
    typer.Option(metavar="FILE.py", help="Defines the model's own layers and functions.", rich_help_panel=MODEL),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Load the file even if it may run code of its own.", rich_help_panel=MODEL),
]
Backends = Annotated[
    Names,
    typer.Option(
        metavar="NAME",
        help="tensorflow, torch or jax. Default: all that are installed.",
        autocompletion=backend_names,
        rich_help_panel=WHAT,
    ),
]
Targets = Annotated[
    Names,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="tensorflow, torch or jax. Default: all three.",
        autocompletion=backend_names,
        rich_help_panel=WHAT,
    ),
]
Devices = Annotated[
    Names,
    typer.Option(
        metavar="NAME",
        help="cpu, gpu or gpu:1. Default: all that a backend finds.",
        autocompletion=lambda: ("cpu", "gpu"),
        rich_help_panel=WHAT,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="synthetic (no download) or real (from keras.datasets).",
        autocompletion=lambda: ("synthetic", "real"),
        rich_help_panel=WHAT,
    ),
]
ProtocolName = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="steady (seconds per trial) or published (every published epoch, one round).",
        autocompletion=lambda: ("steady", "published"),
        rich_help_panel=WHAT,
    ),
]
Native = Annotated[
    bool,
    typer.Option(
        "--native",
        help="Also measure the model in plain TensorFlow, torch or JAX: what does Keras cost?",
        rich_help_panel=WHAT,
    ),
]
BatchSizes = Annotated[
    Names,
    typer.Option(metavar="A..B|LIST", help="1..4096 (doubled each time; default) or 1,8,64.", rich_help_panel=WHAT),
]
Widths = Annotated[
    Names,
    typer.Option(
        metavar="LIST", help="Factors for the width of hidden layers: 0.5,1,2,4. Default: 1.", rich_help_panel=WHAT
    ),
]

Quick = Annotated[
    bool, typer.Option("--quick", help="One short round: a first look, with rough intervals.", rich_help_panel=LONG)
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Exactly N rounds. Default: 3 to 12, until the ratios are within ±2 %.",
        rich_help_panel=LONG,
    ),
]
Rigorous = Annotated[bool, typer.Option("--rigorous", help="Twelve rounds, and a control.", rich_help_panel=LONG)]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time limit: 90s, 10m or 1h. No round starts that would exceed it; the first always completes.",
        rich_help_panel=LONG,
    ),
]

Threshold = Annotated[
    str,
    typer.Option(
        metavar="PERCENT",
        help="The smallest difference that counts as faster or slower. At least 3%.",
        rich_help_panel=SHOW,
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="regression",
        help="Exit with 3 if something became significantly worse or fails now, and with 1 if nothing could be judged.",
        autocompletion=lambda: ("regression",),
        rich_help_panel=SHOW,
    ),
]

Jit = Annotated[
    Names,
    typer.Option(metavar="on|off", help="Compile the step. Default: what each backend does.", rich_help_panel=COLUMNS),
]
Dtype = Annotated[
    Names,
    typer.Option(
        metavar="POLICY",
        help="float32 (default), mixed_float16, mixed_bfloat16, ...",
        autocompletion=lambda: ("float32", "mixed_float16", "mixed_bfloat16"),
        rich_help_panel=COLUMNS,
    ),
]
Fp32 = Annotated[
    Names,
    typer.Option(
        metavar="MODE",
        help="Precision of float32 products on a GPU: ieee (default), tf32 or framework-default.",
        autocompletion=lambda: ("ieee", "tf32", "framework-default"),
        rich_help_panel=COLUMNS,
    ),
]
Threads = Annotated[
    Names, typer.Option(metavar="N", help="Processors that a trial may use. Default: all.", rich_help_panel=COLUMNS)
]
BusyCores = Annotated[
    Names,
    typer.Option(
        metavar="N",
        help="Measure each column again while N processors are kept busy: what does it lose by that?",
        rich_help_panel=WHAT,
    ),
]

Python = Annotated[
    Names,
    typer.Option(
        metavar="NAME=PATH",
        help="Python interpreter of a backend; with a label, torch@LABEL=PATH, of a further column. "
        "Default: from kerasbench.toml, or this one.",
        rich_help_panel=ENVIRONMENTS,
    ),
]
Results = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder for the result file and the tables.", rich_help_panel=FILES)
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the interrupted run in --results. With --budget TIME: so much longer.",
        rich_help_panel=FILES,
    ),
]

Control = Annotated[
    bool,
    typer.Option(
        "--control",
        help="Measure one column of each row twice. A difference between the two is noise.",
        rich_help_panel=EXPERTS,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="Stop a trial after this time. Default: 300 (published: 7200) for the first trial of a cell, "
        "then ten times what that took, at least 60.",
        rich_help_panel=EXPERTS,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Stop a trial that uses more memory: 500m, 4g. Default: none.", rich_help_panel=EXPERTS
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0, metavar="N", help="Seed for the data, the weights and the order of trials.", rich_help_panel=EXPERTS
    ),
]
KeepEnv = Annotated[
    Names,
    typer.Option(
        metavar="NAME",
        help="Pass this environment variable to the trials. Its value is saved with the results.",
        rich_help_panel=EXPERTS,
    ),
]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait",
        help="Wait if another run uses this machine. Default: stop with an error.",
        rich_help_panel=EXPERTS,
    ),
]


def require_regression(fail_on: str | None) -> None:
    """Raise UsageError for anything else that a command cannot fail on."""
    if fail_on not in (None, "regression"):
        raise UsageError(f"--fail-on takes regression, not {fail_on!r}")


def split(given: list[str] | None) -> list[str]:
    """Return the names in repeated and comma-separated options; a file with a comma in its path is one.

    So is that of an interpreter or a folder behind ``torch=``.
    """
    parts = [[text] if os.path.exists(text.partition("=")[2] or text) else text.split(",") for text in given or []]
    return [name.strip() for several in parts for name in several if name.strip()]
