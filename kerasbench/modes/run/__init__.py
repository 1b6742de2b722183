"""The mode ``run``: which backend is fastest on each workload."""

from dataclasses import dataclass

from kerasbench.modes.command import Command
from kerasbench.modes.mode import Mode
from kerasbench.protocol.requests import TrialKind
from kerasbench.settings import (
    ADDED,
    CHOICE,
    CROSSED,
    ELSEWHERE,
    EVERY,
    EXPORTED,
    ROUNDS,
    WHAT,
    Argument,
    Settings,
    option,
)

PROTOCOLS: tuple[TrialKind, ...] = ("steady", "published", "calls", "predictions")


@dataclass(frozen=True)
class RunSettings(Settings):
    takes = (
        *EVERY, *ROUNDS, *ELSEWHERE, CROSSED, ADDED, EXPORTED, "scenarios", "suite", "batch_size", "resume", "control",
    )  # fmt: skip

    # fmt: off
    protocol: str = option("steady", "--protocol KIND", WHAT,
        "steady (default): seconds per trial. published: all epochs of a workload, one round. calls: no training, but "
        "model(x) eager and compiled, predict_on_batch, predict, and tokens that language models generate. "
        "predictions: predict_on_batch and predict alone.",
        PROTOCOLS)
    # fmt: on


COMMAND = Command(
    "run",
    RunSettings,
    [Argument("scenario", "[SCENARIO]...", f"{CHOICE} Default: the whole suite.")],
    more="An option that takes a NAME or a list can be repeated, and takes commas: --backend jax,torch.",
    examples=[
        "kerasbench my_model.keras --backend torch --device cpu,gpu  # is the GPU faster?",
        "kerasbench train.py --quick -- --epochs 3  # a training script with an argument of its own",
    ],
    takes_model=True,
)
MODE = Mode("run", dict[str, object], (COMMAND,), general=True)
