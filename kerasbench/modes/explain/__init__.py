"""The mode ``explain``: where the time of an epoch goes, and what would make it shorter."""

from dataclasses import dataclass

from kerasbench.modes.mode import Mode
from kerasbench.names import LONG
from kerasbench.settings import ELSEWHERE, EVERY, ROUNDS, Settings, option


@dataclass(frozen=True)
class ExplainSettings(Settings):
    takes = (*EVERY, *ROUNDS, *ELSEWHERE, "batch_size", "control")

    # fmt: off
    without_causes: bool = option(False, "--without-causes", LONG,
        "Do not try what may make Keras slow, which takes up to two minutes of a --quick run.")
    # fmt: on


@dataclass(frozen=True)
class ExplainConfig:
    causes: bool | None = None  # are tried; None: by an older kerasbench, which knew of none


MODE = Mode("explain", ExplainConfig)
