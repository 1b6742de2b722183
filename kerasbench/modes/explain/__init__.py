"""The mode ``explain``: where the time of an epoch goes, and what would make it shorter."""

from kerasbench.modes.mode import Mode

MODE = Mode("explain", dict[str, object])
