"""kerasbench: Keras 3 models on every backend and every device, each trial in a process of its own.

This module is imported by scenario files and by the worker, in environments where only keras, numpy and one
backend are sure to exist. It therefore imports the standard library alone; ``run``, ``sweep``, ``explain``,
``load`` and ``compare`` bring the rest along when they are used.
"""

from typing import TYPE_CHECKING, Any

from kerasbench import datasets
from kerasbench.scenario import Regime, Scenario, ScenarioError

if TYPE_CHECKING:
    from kerasbench.api import compare, explain, load, run, sweep

__all__ = ["Regime", "Scenario", "ScenarioError", "compare", "datasets", "explain", "load", "run", "sweep"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("compare", "explain", "load", "run", "sweep"):
        from kerasbench.system import require_supported

        require_supported()
        from kerasbench import api

        return getattr(api, name)
    raise AttributeError(f"module 'kerasbench' has no attribute {name!r}")
