"""Questions about a scenario that measure nothing: what it holds, whether its rows are there, what a step counts."""

import dataclasses
import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kerasbench import backends, sources, variants
from kerasbench.private import LostNameError
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import NOTHING, CountRequest, DescribeRequest, FetchRequest, LookRequest
from kerasbench.runners.failure import failure_of, one_line, refuse_other_frameworks
from kerasbench.scenario import Scenario, Workload
from kerasbench.sources.scenario_file import ScenarioFile
from kerasbench.sources.source import ResolvedScenario

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed

PHASE = "describe"
COUNTED_SAMPLES = 8  # in the batch that is counted: products grow in proportion to it, and eight are quick


class DeferredModule(ModuleType):
    """Imports a package once something of it is used, unlike importlib's LazyLoader before Python 3.12."""

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and attribute != "__path__":  # what the import system asks of any module
            raise AttributeError(attribute)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), attribute)


class WithheldModule(ModuleType):
    """Stands for a package that is not imported, and notes whether anything of it was used."""

    was_used = False

    def __getattr__(self, attribute: str) -> Any:
        if not attribute.startswith("__") or attribute == "__path__":
            self.was_used = True
        raise AttributeError(attribute)


def describe_each(request: DescribeRequest) -> list[Description]:
    keras = WithheldModule("keras") if request.bare else DeferredModule("keras")
    sys.modules.setdefault("keras", keras)  # a script has imported it
    if request.bare:
        refuse_other_frameworks()
    descriptions = []
    for file in request.files:
        try:
            source = sources.of_config(request.model_config)(Path(file))
            resolved = source.resolve(request.model_config)
            scenario = resolved.scenario
            description = Description(
                name=source.name,
                title=resolved.text.partition("\n")[0],
                text=resolved.text,
                source=scenario.source,
                parameters=scenario.parameters,
                learnable=scenario.learnable,
                scalable=scenario.scalable,
                kind=scenario.kind,
                script=resolved.feed is not None,
                workloads=[_workload(resolved, workload) for workload in scenario.workloads],
            )
        except Exception as error:
            failure = failure_of(error, PHASE, file)
            if request.bare and (isinstance(error, ImportError) or getattr(keras, "was_used", False)):
                failure = replace(failure, code=Code.UNAVAILABLE)
            raise TrialFailure(failure) from error
        descriptions.append(description)
    return descriptions


def _workload(resolved: ResolvedScenario, workload: Workload) -> WorkloadDescription:
    scenario = resolved.scenario
    dataset = scenario.dataset(workload)
    loops = resolved.feed is not None and resolved.feed.loop is not None
    beyond_baselines = {
        "predictions alone": not scenario.trains and not loops,
        "weights of its classes": scenario.class_weight is not None,
        "a pipeline of its own": workload.feed is not None,
        "callbacks of Keras": scenario.callbacks is not None,
        "a script's own data": resolved.feed is not None,
    }
    return WorkloadDescription(
        name=workload.name,
        train=workload.train,
        batch=workload.batch_size,
        predict_batch=workload.predict_batch_size,
        steps=workload.steps,
        epochs=workload.epochs,
        validation=workload.validation,
        test=workload.test,
        data=dataset.title,
        has_real_data=dataset.load is not None,
        keras_only=next((what for what, has in beyond_baselines.items() if has), ""),
        predicts_only=not scenario.trains and not loops,
        parameters=scenario.parameters_of(workload),
        operations=scenario.operations_of(workload),
        large=workload.large,
        new_tokens=scenario.new_tokens,
        own_generate=scenario.generate is not None,
        streams=resolved.feed is not None and resolved.feed.stream is not None,
        on_disk=dataset.store is not None,
        loops=loops,
    )


def fetch(request: FetchRequest) -> str:
    """Have the workload's real rows on disk, and in the right shape; return their data set's title."""
    from kerasbench.runners.feed import draw

    scenario = ScenarioFile(Path(request.file)).resolve(NOTHING).scenario
    workload = scenario.workload(request.workload)
    dataset = scenario.dataset(workload)
    draw(dataset, workload.train + workload.validation + workload.test, 0, "real")
    return dataset.title


def count(request: CountRequest) -> float:
    """Return the operations that a training step takes for each sample, by the backend that can count."""
    backend = backends.counting()
    refuse_other_frameworks(backend)
    count_operations = backends.get(backend).count_operations
    assert count_operations is not None  # by this it was chosen
    scenario, feed = _fed(request, COUNTED_SAMPLES)
    model = scenario.build(feed.workload)
    # As it is counted, whatever compile() has asked for: torch cannot run several steps in one execution.
    model.jit_compile, model.steps_per_execution = False, 1
    batch = feed.step(feed.train)
    model.train_on_batch(*batch)  # the first step builds the model, symbolically too, and would be counted three times
    return count_operations(lambda: model.train_on_batch(*batch)) / COUNTED_SAMPLES


def look(request: LookRequest) -> dict[str, str]:
    """Return the causes that the model may have as it is measured, and why each cannot be tried; empty where it can.

    Raise ScenarioError, or TrialFailure where the options are the cause.
    """
    refuse_other_frameworks(request.backend)
    from kerasbench.runners.weights import remember_origins
    from kerasbench.worker.build import explained, prepare_model

    remember_origins()
    with explained(request):
        model = prepare_model(*_fed(request, 1), request).model
    suspected = {}
    for cause in [cause for cause in variants.CAUSES if cause.name in request.causes]:
        try:
            if cause.concerns(model):
                suspected[cause.name] = cause.obstacle()
        except LostNameError as error:
            suspected[cause.name] = str(error)
        except Exception as error:  # Keras calls something otherwise, or does: no reason to lose the other causes
            suspected[cause.name] = f"kerasbench does not know this Keras: {type(error).__name__}: {one_line(error)}"
    return suspected


def _fed(request: CountRequest | LookRequest, samples: int) -> tuple[Scenario, "Feed"]:
    """Return a scenario, and what feeds its model so many rows of the workload."""
    from kerasbench.runners.feed import Feed, draw

    resolved = sources.resolve(request)
    scenario = resolved.scenario
    workload = scenario.workload(request.workload)
    if resolved.feed is not None:
        return scenario, dataclasses.replace(resolved.feed, train=resolved.feed.train[:samples])
    rows = draw(scenario.dataset(workload), samples, 0, "synthetic")
    return scenario, Feed(workload, rows, rows[:0], rows[:0], scenario.class_weight)
