"""The mode ``explain``: where the time of an epoch goes, and what would make it shorter."""

from dataclasses import dataclass

from kerasbench.modes.command import Command
from kerasbench.modes.mode import Mode
from kerasbench.settings import CROSSED, ELSEWHERE, EVERY, LONG, ROUNDS, SCENARIOS, Settings, option


@dataclass(frozen=True)
class ExplainSettings(Settings):
    takes = (*EVERY, *ROUNDS, *ELSEWHERE, CROSSED, "batch_size", "control")

    # fmt: off
    without_causes: bool = option(False, "--without-causes", LONG,
        "Do not look for causes in Keras, which takes up to two minutes of a --quick run.")
    # fmt: on


@dataclass(frozen=True)
class ExplainConfig:
    causes: bool | None = None  # are tried; None: by an older kerasbench, which knew of none


COMMAND = Command(
    "explain",
    ExplainSettings,
    [SCENARIOS],
    examples=[
        "kerasbench explain mnist_dense  # every backend and device",
        "kerasbench explain cifar10_cnn --backend jax --device cpu --quick  # one configuration, a first look",
    ],
)
MODE = Mode("explain", ExplainConfig, (COMMAND,))
