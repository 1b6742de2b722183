"""Say what a scenario file holds, without paying for keras where the file only uses it inside functions.

Have a scenario's real rows on disk, and in the right shape, before anything is measured.

How many floating-point operations a training step takes, by the backend that can count, whichever is measured.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from kerasbench import backends
from kerasbench.protocol.messages import Description, RegimeDescription
from kerasbench.protocol.requests import NOTHING, CountRequest, DescribeRequest, FetchRequest, Given
from kerasbench.scenario import Regime, Scenario, ScenarioError, require_unchanged
from kerasbench.worker.failure import TrialFailure, failure_of, refuse_other_frameworks
from kerasbench.worker.resolve import resolve

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


def fetch(request: FetchRequest) -> str:
    """Load the regime's real rows and return their data set's title.

    Raises:
        DataError: they cannot be downloaded or read. ScenarioError: the file is no usable scenario.
    """
    scenario = resolve(Path(request.file), NOTHING).scenario
    regime = scenario.regime(request.regime)
    dataset = scenario.dataset(regime)
    from kerasbench.worker.feed import draw

    draw(dataset, regime.train + regime.validation + regime.test, 0, "real")
    return dataset.title


SAMPLES = 8  # in the batch that is counted: products grow in proportion to it, and eight are quick


def count(request: CountRequest) -> float:
    """Return the operations that a training step takes for each sample (a multiplication and an addition are two).

    Raises:
        ScenarioError: the scenario cannot be used.
    """
    refuse_other_frameworks(backends.counting())
    count_operations = backends.get(backends.counting()).count_operations
    assert count_operations is not None  # by this it was chosen
    file = Path(request.file)
    require_unchanged(file, request.file_hash, request.given)
    scenario = resolve(file, request.given).scenario
    regime = scenario.regime(request.regime)
    model = scenario.build(regime)
    from kerasbench.worker.feed import Feed, draw

    rows = draw(scenario.dataset(regime), SAMPLES, 0, "synthetic")
    batch = Feed(regime, rows, rows[:0], rows[:0], scenario.class_weight).step(rows)
    model.train_on_batch(*batch)  # the first step builds the model, symbolically too, and would be counted three times
    return count_operations(lambda: model.train_on_batch(*batch)) / SAMPLES
