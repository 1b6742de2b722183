"""Where a model comes from: one file for each kind of place, and the one list of them."""

import re
from pathlib import Path

from kerasbench.protocol.requests import CountRequest, DescribeRequest, LookRequest, ModelConfig, TrialRequest
from kerasbench.sources.application import Application
from kerasbench.sources.package import PackageFunction
from kerasbench.sources.saved_model import LiveModel, SavedModel
from kerasbench.sources.scenario_file import ScenarioFile
from kerasbench.sources.script import Script
from kerasbench.sources.source import ModelRequest, ResolvedScenario, Source

# The first that recognises a word is it.
SOURCES: tuple[type[Source], ...] = (LiveModel, SavedModel, Application, PackageFunction, Script, ScenarioFile)
KINDS = {source.kind: source for source in SOURCES}
WORD = re.compile(rf"(?P<place>{'|'.join(source.pattern() for source in SOURCES)})(/(?P<workload>[^/]+))?", re.DOTALL)


def split(word: str) -> tuple[str, str] | None:
    """Return the place and the workload that a word names; None where it can only mean a built-in scenario."""
    match = WORD.fullmatch(word)
    return (match["place"], match["workload"] or "") if match else None


def kinds_of(place: str) -> list[type[Source]]:
    """Return those which it can be by its form; no file is looked at."""
    return [source for source in SOURCES if re.fullmatch(source.pattern(), place, re.DOTALL)]


def of(file: Path) -> Source:
    kind = next((source for source in kinds_of(str(file)) if source.recognises(file)), ScenarioFile)
    return kind(file)


def of_config(config: ModelConfig) -> type[Source]:
    return KINDS[config.source]


def of_request(request: ModelRequest) -> Source:
    file = request.files[0] if isinstance(request, DescribeRequest) else request.file
    return of_config(request.model_config)(Path(file))


def resolve(request: TrialRequest | LookRequest | CountRequest) -> ResolvedScenario:
    """In a child; raise ScenarioError for what has changed since it was planned."""
    source = of_request(request)
    source.require_unchanged(request.file_hash, request.model_config)
    return source.resolve(request.model_config)


def nouns(option: str) -> str:
    """Return the kinds that a field of ModelConfig is for."""
    *most, last = dict.fromkeys(source.noun for source in SOURCES if option in source.takes)
    return " or ".join(filter(None, (", ".join(most), last)))
