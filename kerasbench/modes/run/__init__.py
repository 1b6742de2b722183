"""The mode ``run``: which backend is fastest on each workload."""

from kerasbench.modes.mode import Mode

MODE = Mode("run", dict[str, object], general=True)
