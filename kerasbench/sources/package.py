"""A function of a Python package that returns a Keras model: ``package.module:function``, called without arguments."""

import importlib
import inspect
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerasbench.protocol.requests import ModelConfig, fitting
from kerasbench.scenario import ModelError, ScenarioError, file_hash
from kerasbench.sources.source import ResolvedScenario, Source

SEED = 0  # of what the function draws; random weights are drawn anew from the run's


@dataclass(frozen=True)
class PackageFunction(Source):
    kind, noun, runs = "function", "a function of a package", "calling {}"
    takes = ("inputs", "batch")

    @classmethod
    def pattern(cls) -> str:
        return r"([^\W\d]\w*\.)*[^\W\d]\w*:[^\W\d]\w*"

    @property
    def name(self) -> str:
        return fitting(self.file.name.replace(":", "."))

    @property
    def place(self) -> str:
        return str(Path(self._find()[0], self.file.name))

    @property
    def files(self) -> list[Path]:
        return []

    def own_hash(self) -> str:
        return file_hash(self._find()[1], ModelError, None)

    def _find(self) -> tuple[str, Path]:
        """Return the package's folder, empty where it is installed, and the module's file; import nothing."""
        module = self.file.name.partition(":")[0]
        folders = [os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        folders = [str(self.file.parent)] if self.file.is_absolute() else [folder for folder in folders if folder]
        for folder in (*folders, ""):
            if file := module_file(module, [folder] if folder else None):
                return folder, file
        remedy = "type the command in the folder that has it, or install it there"
        raise ModelError(f"there is no module {module} in {' or '.join([*folders, sys.prefix])}", remedy)

    def resolve(self, config: ModelConfig) -> ResolvedScenario:
        from kerasbench.runners.inputs import leaves, specs_of  # late, as the others: only a child needs them
        from kerasbench.sources.rows import SIZE_MISSING, ModelWithoutRows, inputs_of

        model = self._call()
        if not (getattr(model, "inputs", None) or config.inputs):
            raise ModelError(*SIZE_MISSING)
        models = [model]
        specs = [spec for _, spec in leaves(inputs_of(model, config, specs_of(config)))]
        made = ModelWithoutRows(lambda: models.pop() if models else self._call(), config, bool(model.compiled), specs)
        reason = "" if model.compiled else "; not compiled, so it is not trained"
        return made.resolved(f"A model ({type(model).__name__}) that {self.file.name} returns{reason}.")

    def _call(self) -> Any:
        from kerasbench.protocol.messages import TrialFailure
        from kerasbench.runners.failure import failure_of

        folder, file = self._find()
        sys.path[:0] = [folder] if folder not in ("", *sys.path) else []
        try:
            return self._model()
        except SystemExit as error:
            raise ModelError(f"{self.file.name} ends its process, with {error.code!r}, in place of a model") from error
        except ScenarioError:
            raise
        except Exception as error:
            raise TrialFailure(failure_of(error, "", str(file))) from error

    def _model(self) -> Any:
        import keras

        from kerasbench.runners.weights import keep_loaded_weights

        module, _, name = self.file.name.partition(":")
        keras.utils.set_random_seed(SEED)
        with keep_loaded_weights():
            functions = vars(importlib.import_module(module))
            if not callable(function := functions.get(name)):
                import difflib

                near = difflib.get_close_matches(name, [key for key, value in functions.items() if callable(value)], 3)
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise ModelError(f"{module} has no function {name}{hint}")
            try:
                inspect.signature(function).bind()
            except TypeError as error:
                remedy = "name a function that needs none"
                raise ModelError(f"{self.file.name} is called without arguments: {error}", remedy) from error
            model = function()
        if not isinstance(model, keras.Model):
            raise ModelError(f"{self.file.name} returns no Keras model: {type(model).__name__}")
        return model


def module_file(module: str, path: list[str] | None) -> Path | None:
    """Return the file that importing a module would run last; None where there is none. Its packages do not run."""
    name, file = "", None
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        specs = (finder.find_spec(name, path) for finder in sys.meta_path)
        if (spec := next(filter(None, specs), None)) is None:
            return None
        path = spec.submodule_search_locations or []
        file = Path(spec.origin) if spec.has_location and spec.origin else None
    return file
