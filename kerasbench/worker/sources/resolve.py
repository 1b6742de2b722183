"""The scenario of a file or a name, whichever of the three it is."""

import inspect
from pathlib import Path

from kerasbench.exchange.given import Given
from kerasbench.scenario import is_named, is_saved, load
from kerasbench.worker.sources import named, saved
from kerasbench.worker.sources.model import Sourced


def resolve(file: Path, given: Given) -> Sourced:
    """Return the scenario and what is said of it. Only ever called in a child process.

    Raises:
        ScenarioError: there is none, or it cannot be measured. Whatever a scenario file itself raises passes through.
    """
    if is_saved(file):
        return saved.resolve(file, given)
    if is_named(file):
        return named.resolve(file, given)
    scenario, module = load(file)
    return Sourced(scenario, file.stem, inspect.cleandoc(module.__doc__ or ""))
