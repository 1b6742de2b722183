"""The mode ``sweep``: one workload at many sizes, and where one series overtakes another."""

from dataclasses import dataclass

from kerasbench.modes.mode import Mode


@dataclass(frozen=True)
class SweepConfig:
    refine: bool = False  # measure more sizes where one series overtakes another


MODE = Mode("sweep", SweepConfig, general=True)
