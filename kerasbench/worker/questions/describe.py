"""Say what a scenario file holds, without paying for keras where the file only uses it inside functions."""

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from kerasbench.exchange.descriptions import Description, RegimeDescription
from kerasbench.exchange.requests import DescribeRequest
from kerasbench.scenario import Regime, Scenario, ScenarioError, load
from kerasbench.worker.failure import TrialFailure, failure_of

PHASE = "describe"


def describe_each(request: DescribeRequest) -> list[Description]:
    """Load the files and return their descriptions, in their order.

    Raises:
        ScenarioError: a file holds no usable scenario. TrialFailure: it raised an exception; the failure says where.
    """
    sys.modules["keras"] = Deferred("keras")
    return [_describe(file) for file in request.files]


def _describe(file: str) -> Description:
    try:
        return describe(Path(file))
    except ScenarioError:
        raise
    except Exception as error:
        raise TrialFailure(failure_of(error, PHASE, file)) from error


def describe(file: Path) -> Description:
    """Load a file and return its description. Whatever the file itself raises passes through."""
    scenario, module = load(file)
    text = inspect.cleandoc(module.__doc__ or "")
    return Description(
        name=file.stem,
        title=text.partition("\n")[0],
        text=text,
        source=scenario.source,
        parameters=scenario.parameters,
        learnable=scenario.learnable,
        scalable=scenario.scalable,
        regimes=[describe_regime(scenario, regime) for regime in scenario.regimes],
    )


def describe_regime(scenario: Scenario, regime: Regime) -> RegimeDescription:
    dataset = scenario.dataset(regime)
    return RegimeDescription(
        name=regime.name,
        train=regime.train,
        batch=regime.batch_size,
        full_batch=regime.batch is None,
        steps=regime.steps,
        epochs=regime.epochs,
        validation=regime.validation,
        test=regime.test,
        data=dataset.title,
        has_real_data=dataset.load is not None,
        keras_only="a pipeline of its own" if regime.feed else "callbacks of Keras" if scenario.callbacks else "",
        parameters=scenario.parameters_of(regime),
        operations=scenario.operations_of(regime),
        large=regime.large,
    )


class Deferred(ModuleType):
    """Stands for a package until something of it is used, then imports it.

    Keras costs one to three seconds to import and a description needs none of it; where it is not installed, a
    scenario that uses it only inside functions can be described all the same. (importlib.util.LazyLoader would load
    the package at once before Python 3.12: ``import`` itself looks at ``__spec__``.)
    """

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute != "__path__":  # what the import system asks of any module
            raise AttributeError(attribute)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), attribute)
