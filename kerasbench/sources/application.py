"""A model of keras.applications, by its name, with random weights."""

import difflib
import hashlib
import importlib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerasbench.protocol.requests import ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.sources.source import OF_MODEL, ResolvedScenario, Source

USUAL = (224, 224, 3)  # what most of keras.applications take, to say how many steps an epoch has
OPTIMIZER, LOSS = "adam", "sparse_categorical_crossentropy"


@dataclass(frozen=True)
class Application(Source):
    kind, noun, prefix = "application", "one of keras.applications", "keras.applications."
    takes = OF_MODEL

    @classmethod
    def pattern(cls) -> str:
        return rf"{re.escape(cls.prefix)}\w+"

    @property
    def name(self) -> str:
        return str(self.file).removeprefix(self.prefix)

    @property
    def place(self) -> str:
        return str(self.file)

    @property
    def files(self) -> list[Path]:
        return []

    def own_hash(self) -> str:
        return hashlib.sha256(str(self.file).encode()).hexdigest()

    def resolve(self, config: ModelConfig) -> ResolvedScenario:
        from kerasbench.runners.failure import one_line  # late, as the others: only a child needs them
        from kerasbench.runners.inputs import InputSpec, specs_of
        from kerasbench.sources.rows import ModelWithoutRows

        applications = importlib.import_module("keras.applications")  # here: keras alone knows which there are
        makers = {key: value for key, value in vars(applications).items() if inspect.isfunction(value)}
        if self.name not in makers:
            near = difflib.get_close_matches(self.name, makers, 3, 0.4)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(sorted(makers))}"
            raise ModelError(f"there is no model {self.file}{hint}")
        make, specs = makers[self.name], specs_of(config)
        if len(specs) > 1 or (specs and len(specs[0].shape) != 3):
            raise ModelError("--input of a model of keras.applications is the size of one image, such as 96x96x3")

        def build() -> Any:
            try:
                model = make(weights=None, **({"input_shape": specs[0].shape} if specs else {}))
            except ValueError as error:
                raise ModelError(f"{self.file} cannot be built for this input: {one_line(error)}") from error
            model.compile(optimizer=OPTIMIZER, loss=LOSS)
            return model

        text = f"{self.name} of keras.applications, with random weights.\n\nTrained by {OPTIMIZER} on {LOSS}."
        return ModelWithoutRows(build, config, trains=True, specs=specs or [InputSpec("x", USUAL)]).resolved(
            text, "cnn"
        )
