"""Say what a scenario file holds, without paying for keras where the file only uses it inside functions."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from kerasbench.exchange.descriptions import Description, RegimeDescription
from kerasbench.exchange.given import NOTHING, Given
from kerasbench.exchange.requests import DescribeRequest
from kerasbench.scenario import Regime, Scenario, ScenarioError
from kerasbench.worker.failure import TrialFailure, failure_of
from kerasbench.worker.sources.resolve import resolve

PHASE = "describe"


def describe_each(request: DescribeRequest) -> list[Description]:
    """Load the files and return their descriptions, in their order.

    Raises:
        ScenarioError: a file holds no usable scenario. TrialFailure: it raised an exception; the failure says where.
    """
    sys.modules["keras"] = Deferred("keras")
    return [_describe(file, request.given) for file in request.files]


def _describe(file: str, given: Given) -> Description:
    try:
        return describe(Path(file), given)
    except (ScenarioError, TrialFailure):
        raise
    except Exception as error:
        raise TrialFailure(failure_of(error, PHASE, file)) from error


def describe(file: Path, given: Given = NOTHING) -> Description:
    """Return the description of a scenario's file, a saved model or a name.

    Whatever a scenario file itself raises passes through.
    """
    found = resolve(file, given)
    scenario = found.scenario
    return Description(
        name=found.name,
        title=found.text.partition("\n")[0],
        text=found.text,
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
        predict_batch=regime.predict_batch_size,
        full_batch=regime.batch is None,
        steps=regime.steps,
        epochs=regime.epochs,
        validation=regime.validation,
        test=regime.test,
        data=dataset.title,
        has_real_data=dataset.load is not None,
        keras_only=_keras_only(scenario, regime),
        predicts_only=not scenario.trains,
        parameters=scenario.parameters_of(regime),
        operations=scenario.operations_of(regime),
        large=regime.large,
    )


def _keras_only(scenario: Scenario, regime: Regime) -> str:
    if not scenario.trains:
        return "predictions alone"
    if scenario.class_weight is not None:
        return "weights of its classes"
    return "a pipeline of its own" if regime.feed else "callbacks of Keras" if scenario.callbacks else ""


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
