"""kerasbench: how fast a Keras 3 model is on every backend and every device, each trial in a process of its own.

This module is imported by scenario files and by the worker, in environments where only keras, numpy and one
backend are sure to exist, and before every command. It imports nothing by itself: each name brings what it needs when
it is used, of the standard library alone but for what measures (``run``, ``fastest``, ...), ``load`` and ``compare``.
"""

TYPE_CHECKING = False  # typing's: `python -m` would look for a typing.py in the current folder
if TYPE_CHECKING:
    from kerasbench import datasets, storage
    from kerasbench.api import bisect, compare, explain, fastest, history, load, on_machines, run, soak, sweep, versus
    from kerasbench.scenario import Scenario, ScenarioError, Workload


__all__ = ["Scenario", "ScenarioError", "Workload", "datasets", "storage"]
__all__ += [
    "bisect",
    "compare",
    "explain",
    "fastest",
    "history",
    "load",
    "on_machines",
    "run",
    "soak",
    "sweep",
    "versus",
]
__version__ = "0.2.0"


if not TYPE_CHECKING:  # which knows all that there is

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'kerasbench' has no attribute {name!r}")
        from importlib import import_module

        if name in ("datasets", "storage"):
            return import_module(f"kerasbench.{name}")
        if name in ("Workload", "Scenario", "ScenarioError"):
            return getattr(import_module("kerasbench.scenario"), name)
        from kerasbench.errors import require_supported

        require_supported()
        return getattr(import_module("kerasbench.api"), name)
