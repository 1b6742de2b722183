"""The mode ``sweep``: one workload at many sizes, and where one series overtakes another."""

from dataclasses import dataclass

from kerasbench.modes.mode import Mode
from kerasbench.names import WHAT
from kerasbench.settings import ELSEWHERE, EVERY, ROUNDS, Settings, options


@dataclass(frozen=True)
class SweepSettings(Settings):
    takes = (*EVERY, *ROUNDS, *ELSEWHERE, "control")

    batch_sizes: list[str] = options("--batch-size A..B|LIST", WHAT, "1..4096 (doubled each time; default) or 1,8,64.")
    widths: list[str] = options("--width LIST", WHAT, "Factors for the width of hidden layers: 0.5,1,2,4. Default: 1.")


@dataclass(frozen=True)
class SweepConfig:
    refine: bool = False  # measure more sizes where one series overtakes another


MODE = Mode("sweep", SweepConfig, general=True)
