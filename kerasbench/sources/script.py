"""A training script or a notebook: it is run as it is, up to its ``fit``, and measured in there."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from kerasbench.protocol.requests import ModelConfig, ScriptConfig
from kerasbench.scenario import MAX_FILE_BYTES, file_hash
from kerasbench.sources.notebook import MAX_NOTEBOOK_BYTES, NOTEBOOK, require_notebook
from kerasbench.sources.source import Answer, ModelRequest, Phase, ResolvedScenario, Source


@dataclass(frozen=True)
class Script(Source):
    kind, noun, suffixes = "script", "a training script or a notebook", (NOTEBOOK, ".py")
    takes, runs, imports_frameworks = ("script",), "running {} up to fit() or its own loop", True

    @classmethod
    def recognises(cls, file: Path) -> bool:
        from kerasbench.sources import python  # late: most of what a child reads is no Python of the user's

        return file.suffix == NOTEBOOK or python.is_script(file)

    @property
    def files(self) -> list[Path]:
        from kerasbench.sources import python

        return [self.file, *python.modules_beside(self.file)]

    def config(self, config: ModelConfig) -> ModelConfig:
        return replace(super().config(config), script=config.script or ScriptConfig())

    def own_hash(self) -> str:
        return file_hash(self.file, most_bytes=MAX_NOTEBOOK_BYTES if self.file.suffix == NOTEBOOK else MAX_FILE_BYTES)

    def require_usable(self) -> None:
        if self.file.suffix == NOTEBOOK:
            require_notebook(self.file)

    def resolve(self, config: ModelConfig) -> ResolvedScenario:
        from kerasbench.sources import enclosure  # late: it needs NumPy

        return enclosure.resolve(self.file, config)

    def enter(
        self,
        request: ModelRequest,
        phase: Phase,
        answer: Callable[[], Answer],
        end: Callable[[Callable[[], Any]], NoReturn],
    ) -> Answer:
        from kerasbench.sources import enclosure

        if planned := getattr(request, "file_hash", ""):
            self.require_unchanged(planned, request.model_config)
        config = request.model_config.script
        assert config is not None
        enclosure.enter(self.file, config, getattr(request, "seed", 0), phase, lambda: end(answer))
