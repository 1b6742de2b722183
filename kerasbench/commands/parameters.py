"""The options that several commands have in common: their types, and what their help says."""

from pathlib import Path
from typing import Annotated

import typer

Names = list[str] | None
Scenarios = Annotated[
    Names, typer.Option(metavar="PATTERN|FILE.py", help="Scenarios: name, pattern or file. Default: all.")
]
Backends = Annotated[
    Names, typer.Option(metavar="NAME", help="tensorflow, torch, jax. Default: all that are installed.")
]
Targets = Annotated[
    Names, typer.Option("--backend", metavar="NAME", help="tensorflow, torch, jax. Default: all three.")
]
Devices = Annotated[Names, typer.Option(metavar="NAME", help="cpu, gpu, gpu:1. Default: all that a backend sees.")]
Quick = Annotated[bool, typer.Option("--quick", help="One short bout of each row: its slices alone bound the ratios.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Exactly so many rounds. Default: 3 to 12.")]
Rigorous = Annotated[bool, typer.Option("--rigorous", help="Twelve rounds, with --control.")]
Control = Annotated[bool, typer.Option("--control", help="One column of each row twice: what differs is noise.")]
Budget = Annotated[
    str | None, typer.Option(metavar="TIME", help="Begin no round that would not end within it: 90s, 10m, 1h.")
]
Jit = Annotated[Names, typer.Option(metavar="on|off", help="Compile the step. Default: as each backend does.")]
Dtype = Annotated[Names, typer.Option(metavar="POLICY", help="float32 (default), mixed_float16, mixed_bfloat16, ...")]
Fp32 = Annotated[
    Names,
    typer.Option(metavar="MODE", help="ieee (default), tf32 or framework-default: float32 products on a GPU."),
]
Threads = Annotated[Names, typer.Option(metavar="N", help="Processors a trial may use. Default: all.")]
Native = Annotated[
    bool, typer.Option("--native", help="Also each model in plain TensorFlow, torch and JAX: what Keras costs.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=1,
        help="Seconds after which a trial is stopped. Default: 300 (published: 7200); "
        "a cell's later trials: ten times its first, at least 60.",
    ),
]
MemoryLimit = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Stop a trial that holds more memory: 500m, 4g. Default: none.")
]
Seed = Annotated[int, typer.Option(min=0, help="Draws the data, the weights and the order.")]
Data = Annotated[
    str, typer.Option(metavar="KIND", help="synthetic (drawn here, no download) or real (by keras.datasets).")
]
ProtocolName = Annotated[
    str, typer.Option(metavar="KIND", help="steady (seconds a trial) or published (all published epochs, one round).")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --results that was interrupted.")]
KeepEnv = Annotated[
    Names,
    typer.Option(metavar="NAME", help="A variable of the shell to let in to trials. Its value goes into the results."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run on this machine, in place of an error.")]
Python = Annotated[
    Names,
    typer.Option(metavar="NAME=PATH", help="The interpreter of a backend. Default: kerasbench.toml, or this one."),
]
Results = Annotated[Path, typer.Option(metavar="DIR", help="Where the result file and the tables go.")]
BatchSizes = Annotated[Names, typer.Option(metavar="A..B|LIST", help="1..4096 (doubled; default) or 1,8,64.")]
Widths = Annotated[Names, typer.Option(metavar="LIST", help="Factors on hidden layers: 0.5,1,2,4. Default: 1.")]


def split(given: list[str] | None) -> list[str]:
    """Return the names in repeated and comma-separated options."""
    return [name.strip() for text in given or [] for name in text.split(",") if name.strip()]
