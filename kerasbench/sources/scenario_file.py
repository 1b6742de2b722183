"""A scenario file: Python that makes one ``Scenario``."""

import inspect
from dataclasses import dataclass
from pathlib import Path

from kerasbench import backends
from kerasbench.protocol.requests import ModelConfig
from kerasbench.scenario import baseline_file, file_hash, load, require_scenario_name
from kerasbench.sources.source import ResolvedScenario, Source


@dataclass(frozen=True)
class ScenarioFile(Source):
    kind, noun, suffixes = "", "a scenario file", (".py",)

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def files(self) -> list[Path]:
        beside = [baseline_file(self.file, backend) for backend in backends.names()]
        return [self.file, *(file for file in beside if file.is_file())]

    def own_hash(self) -> str:
        require_scenario_name(self.file)
        return file_hash(self.file)

    def require_usable(self) -> None:
        from kerasbench.sources import python  # late: what is remembered needs no look

        python.require_scenario(self.file)

    def resolve(self, config: ModelConfig) -> ResolvedScenario:
        scenario, module = load(self.file)
        return ResolvedScenario(scenario, inspect.cleandoc(module.__doc__ or ""))
