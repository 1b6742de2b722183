"""kerasbench: Keras 3 models on every backend and every device, each trial in a process of its own.

This module is imported by scenario files and by the worker, in environments where only keras, numpy and one
backend are sure to exist. It therefore imports the standard library alone.
"""

from kerasbench import datasets
from kerasbench.scenario import Regime, Scenario, ScenarioError

__all__ = ["Regime", "Scenario", "ScenarioError", "datasets"]
__version__ = "0.1.0"
