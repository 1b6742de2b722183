"""The mode ``explain``: where the time of an epoch goes, and what would make it shorter."""

from kerasbench.modes.mode import Mode
from kerasbench.settings import ELSEWHERE, EVERY, ROUNDS, Settings


class Asked(Settings):
    takes = (*EVERY, *ROUNDS, *ELSEWHERE, "batch_size", "control")


MODE = Mode("explain", dict[str, object])
