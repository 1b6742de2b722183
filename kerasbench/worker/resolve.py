"""The scenario of a file or a name: of a scenario file, a saved model, or a model of keras.applications."""

import difflib
import importlib
import inspect
from pathlib import Path
from typing import Any

from kerasbench.protocol.requests import ModelConfig
from kerasbench.runners.inputs import Spec, specs_of
from kerasbench.scenario import APPLICATIONS, ModelError, is_named, is_saved, load
from kerasbench.worker import saved
from kerasbench.worker.failure import one_line
from kerasbench.worker.source import ResolvedScenario, Source

USUAL = (224, 224, 3)  # what most of keras.applications take, to say how many steps an epoch has
OPTIMIZER, LOSS = "adam", "sparse_categorical_crossentropy"


def resolve(file: Path, config: ModelConfig) -> ResolvedScenario:
    if config.script is not None:
        from kerasbench.worker import script  # late: it needs NumPy, which describing a scenario file does not

        return script.resolve(file, config)
    if is_saved(file):
        return saved.resolve(file, config)
    if is_named(file):
        return application(str(file).removeprefix(APPLICATIONS), config)
    scenario, module = load(file)
    return ResolvedScenario(scenario, file.stem, inspect.cleandoc(module.__doc__ or ""))


def application(name: str, config: ModelConfig) -> ResolvedScenario:
    applications = importlib.import_module("keras.applications")  # here: keras alone knows which there are
    makers = {key: value for key, value in vars(applications).items() if inspect.isfunction(value)}
    if name not in makers:
        near = difflib.get_close_matches(name, makers, 3, 0.4)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(sorted(makers))}"
        raise ModelError(f"there is no model {APPLICATIONS}{name}{hint}")
    make, specs = makers[name], specs_of(config)
    if len(specs) > 1 or (specs and len(specs[0].shape) != 3):
        raise ModelError("--input of a model of keras.applications is the size of one image, such as 96x96x3")

    def build() -> Any:
        try:
            model = make(weights=None, **({"input_shape": specs[0].shape} if specs else {}))
        except ValueError as error:
            raise ModelError(f"{APPLICATIONS}{name} cannot be built for this input: {one_line(error)}") from error
        model.compile(optimizer=OPTIMIZER, loss=LOSS)
        return model

    text = f"{name} of keras.applications, with random weights.\n\nTrained by {OPTIMIZER} on {LOSS}."
    return Source(build, config, trains=True, specs=specs or [Spec("x", USUAL)]).resolved(name, text, kind="cnn")
