"""A model of keras.applications by its name: built with random weights, and compiled as most people do.

The scenario of a file or a name, whichever of the three it is.
"""

import difflib
import importlib
import inspect
from pathlib import Path
from typing import Any

from kerasbench.protocol.requests import ModelConfig
from kerasbench.scenario import APPLICATIONS, ModelError, Scenario, is_named, is_saved, load
from kerasbench.worker import saved
from kerasbench.worker.inputs import Spec
from kerasbench.worker.wrapped import Source, Sourced, workload_of

USUAL = (224, 224, 3)  # what most of them take, to say how many steps an epoch has
OPTIMIZER, LOSS = "adam", "sparse_categorical_crossentropy"


def application(file: Path, given: ModelConfig) -> Sourced:
    """Return the scenario of a name such as ``keras.applications.ResNet50``; raise ModelError for one that is none."""
    name = str(file).removeprefix(APPLICATIONS)
    make = _maker(name)
    shape = _input_shape(given)
    source = Source(lambda: _built(name, make, shape), given, trains=True)
    workload = workload_of([Spec("x", shape or USUAL)], given)
    text = f"{name} of keras.applications, with random weights.\n\nTrained by {OPTIMIZER} on {LOSS}."
    scenario = Scenario(build=source.build, data=source.data, workloads=(workload,), learnable=False)
    return Sourced(scenario, name, text, source.look)


def _maker(name: str) -> Any:
    """Return the function that builds the model; keras is imported here, because it alone knows which there are."""
    applications = importlib.import_module("keras.applications")
    known = {each: one for each, one in vars(applications).items() if inspect.isfunction(one)}
    if name not in known:
        near = difflib.get_close_matches(name, known, 3, 0.4)
        raise ModelError(
            f"there is no model {APPLICATIONS}{name}"
            + (f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(sorted(known))}")
        )
    return known[name]


def _input_shape(given: ModelConfig) -> tuple[int, ...] | None:
    """Return the size of a picture that is given, None for the model's own."""
    if not given.inputs:
        return None
    shape = given.inputs[0].shape
    shape = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
    if len(given.inputs) > 1 or len(shape) != 3:
        raise ModelError("--input of a model of keras.applications is the size of one picture, such as 96x96x3")
    return tuple(shape)


def _built(name: str, make: Any, shape: tuple[int, ...] | None) -> Any:
    try:
        model = make(weights=None) if shape is None else make(weights=None, input_shape=shape)
    except ValueError as error:
        said = " ".join(str(error).split())[:200]
        raise ModelError(f"{APPLICATIONS}{name} cannot be built for this input: {said}") from error
    model.compile(optimizer=OPTIMIZER, loss=LOSS)
    return model


def resolve(file: Path, given: ModelConfig) -> Sourced:
    """Return the scenario and what is said of it. Only ever called in a child process.

    Raises:
        ScenarioError: there is none, or it cannot be measured. Whatever a scenario file itself raises passes through.
    """
    if is_saved(file):
        return saved.resolve(file, given)
    if is_named(file):
        return application(file, given)
    scenario, module = load(file)
    return Sourced(scenario, file.stem, inspect.cleandoc(module.__doc__ or ""))
