"""The mode ``run``: which backend is fastest on each workload."""

from kerasbench.modes.mode import Mode, Nothing

MODE = Mode("run", Nothing, general=True)
