"""What of a run is public: numbers, versions, makers' names of parts; nothing that names people, folders or machines.

A text stays if its field is in ``STAYS``: one that is new goes, until somebody puts it there.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from kerasbench import backends, sources, variants
from kerasbench.analysis.parity import SENSITIVE
from kerasbench.errors import ResultsError
from kerasbench.files import read_plain
from kerasbench.host import Machine
from kerasbench.modes import registry
from kerasbench.plan import catalog
from kerasbench.protocol.columns import LABEL, Environment, Options
from kerasbench.protocol.measurement import (
    Batch,
    Compiler,
    Exported,
    Measurement,
    Movement,
    Parity,
    Published,
    Resolved,
    Samples,
)
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import NOTHING
from kerasbench.report.kinds import KINDS
from kerasbench.results.checks import require_possible_times
from kerasbench.results.run import OperationCount, RemoteOrigin, Run, RunConfig, ScenarioFacts, Trial
from kerasbench.results.store import as_line, read

MOST_BYTES = 20_000_000  # of a file; a run of twelve rounds of all scenarios has five million
# Texts that stay: words of kerasbench and of backends, versions, names of parts, and what is renamed below.
STAYS = """
    Batch.x Batch.y Compiler.breaks Compiler.eager Counted.scenario Counted.workload Description.name Description.title
    Description.text Description.source Description.kind Device.platform Device.name Exported.exporter
    Exported.image_data_format Exported.versions Failure.cause Failure.phase Input.name Input.dtype Machine.chip
    Machine.system Machine.architecture Machine.cores_by_kind Machine.gpus Machine.driver Machine.identifier
    MachineState.governors Measurement.facts Measurement.fallbacks Measurement.lost Movement.weights Parity.silenced
    Parity.sensitive Phase.name Phase.stage Proof.weights Proof.optimizer Proof.output Proof.runtime Published.history
    RemoteOrigin.host Resolved.dtype_policy Resolved.compute_dtypes Resolved.weight_dtypes Resolved.fp32
    Resolved.image_data_format Resolved.versions Resolved.processors Resolved.feed Resolved.recurrent
    Resolved.subnormals Resolved.malloc Run.started Run.finished Run.stopped_because Run.resumed Run.kerasbench
    RunConfig.scenarios RunConfig.backends RunConfig.devices RunConfig.environments RunConfig.data RunConfig.suite
    RunConfig.mode RunConfig.own Sample.reasons ScenarioFacts.file_hash ScenarioFacts.baselines ScenarioFacts.suite
    Signal.name Signal.reason Sizes.left_out Training.unit TrialPlan.kind TrialPlan.stages Trial.scenario
    Trial.workload Trial.backend Trial.protocol Trial.code Trial.ended WorkloadDescription.name
    WorkloadDescription.data WorkloadDescription.keras_only
"""
SALT, LEFT_OUT = "kerasbench contribution", "left out of public results"
HASHED, PSEUDONYM = re.compile("[0-9a-f]{12}"), re.compile("anon-[0-9a-f]{12}")  # of a machine: here, and in public
SYSTEM = re.compile(r"\w+ [\d.]*\d(-microsoft)?")  # a kernel's name may go on with that of its builder
LOCAL = re.compile(r"\+(?!cpu\b|cu\d|rocm)[\w.]+")  # of a version: who built it
LOGS = re.compile("(val_)?(loss|accuracy)$")
# Labels and settings that stay: versions of packages, and variables of frameworks without a folder in their values.
VERSION = re.compile(r"(env-\d+)|(keras|tensorflow|torch|jax|jaxlib|numpy)-\d+(\.\d+)*((a|b|rc|\.dev)\d+)?")
SETTING = re.compile(r"(VARIABLE|((XLA|TF|JAX|TORCH|KERAS|OMP|KMP|MKL|CUDA|MALLOC)_\w+))=[\w.,:=+-]*")
FREE = [variant.name for variant in variants.ALL if variant.takes is str and not variant.words]  # a user's own words


def of_system(machine: Machine) -> Machine:
    system = SYSTEM.match(machine.system)
    return replace(machine, identifier=pseudonym(machine), system=system[0] if system else "")


def pseudonym(machine: Machine) -> str:
    """Return what tells a machine's runs from those of others, by long random numbers alone: a name can be guessed."""
    if PSEUDONYM.fullmatch(machine.identifier) and not machine.cards:
        return machine.identifier
    numbers = [*filter(HASHED.fullmatch, [machine.identifier]), *machine.cards]
    return f"anon-{_digest(*numbers)[:12]}" if numbers else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join([SALT, *parts]).encode()).hexdigest()


def _without_builders(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: LOCAL.sub("", text) for name, text in versions.items()}


def _summed(counts: dict[str, int]) -> dict[str, int]:
    return {LEFT_OUT: sum(counts.values())} if counts else {}


OTHER_WORDS: Mapping[type, Callable[[Any], Any]] = {
    Machine: of_system,
    RemoteOrigin: lambda part: replace(part, host="another machine"),
    Failure: lambda part: replace(part, cause=f"its message was {LEFT_OUT}"),
    Compiler: lambda part: replace(part, breaks=_summed(part.breaks), eager=LEFT_OUT if part.eager else ""),
    Resolved: lambda part: replace(part, versions=_without_builders(part.versions)),
    Exported: lambda part: replace(
        part, exporter=LOCAL.sub("", part.exporter), versions=_without_builders(part.versions)
    ),
    Published: lambda part: replace(
        part, history={name: log for name, log in part.history.items() if LOGS.match(name)}
    ),
}
# Of scenarios that are renamed: names of inputs and layers, and operations, are somebody's own too.
OF_OWN: Mapping[type, Callable[[Any], Any]] = {
    Batch: lambda part: Batch("", ""),
    Parity: lambda part: replace(part, silenced=[], sensitive=[kind for kind in part.sensitive if kind in SENSITIVE]),
    Movement: lambda part: replace(part, weights=[f"weight {number}" for number, _ in enumerate(part.weights, 1)]),
    Measurement: lambda part: replace(part, fallbacks=_summed(part.fallbacks)),
}


def load(file: Path) -> Run:
    """Read a file that is to be sent; raise ResultsError for one that would not be taken."""
    if file.is_symlink():
        raise ResultsError(f"{file}: is a link: name the file itself")
    try:
        return _complete(read_plain(file, MOST_BYTES), file)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from None


def _complete(content: bytes, file: Path) -> Run:
    record = read(content, file)
    if record.unfinished:
        raise ResultsError(f"{file}: its run was interrupted: kerasbench --resume measures the rest")
    if not any(trial.measurement for trial in record.trials):
        raise ResultsError(f"{file}: nothing was measured in it")
    require_possible_times(record, str(file))
    return record


def require_public(content: bytes, name: str) -> None:
    """Raise ResultsError for a file that ``contribute`` would not have written so, and say what it has."""
    record = _complete(content, Path(name))
    cleaned = public(record, with_scenarios=True)
    if as_line(cleaned.record) != content:
        what = ", ".join(cleaned.taken) or "it holds more than a result, or another version wrote it"
        raise ResultsError(f"{name}: not as kerasbench contribute writes it: {what}")


@dataclass(frozen=True)
class Public:
    record: Run
    renamed: dict[str, str]  # scenarios of the user's own
    taken: list[str]  # fields of which something was left out or changed


def public(record: Run, with_scenarios: bool = False) -> Public:
    """Return the same numbers without what is private; of a public run, the same run."""
    cleaner = _Cleaner(record, {} if with_scenarios else _aliases(record))
    return Public(cleaner.part(record, "", False), cleaner.aliases, list(cleaner.taken))


def is_public(facts: ScenarioFacts, config: RunConfig) -> bool:
    """Tell whether a scenario is a built-in one, or one that everybody has by its name, which its hash proves."""
    if facts.suite in catalog.suites():
        return facts.description.name in {file.stem for file in catalog.suite_files(facts.suite)}
    places = [named[0] for named in map(sources.split, config.scenarios) if named]
    named = [kind(Path(place)) for place in places for kind in sources.kinds_of(place) if kind.prefix]
    return facts.file_hash in {source.hash() for source in named}


def _aliases(record: Run) -> dict[str, str]:
    """Return what the user's own scenarios are called: by a hash, so that those of several runs are told apart."""
    private = (facts for facts in record.scenarios if not is_public(facts, record.config))
    names = {facts.description.name: facts.file_hash for facts in private}
    return {name: f"own-{_digest(file_hash, name)[:6]}" for name, file_hash in names.items() if name != file_hash}


def _renamed(texts: Iterable[str], stays: re.Pattern[str], other: str) -> dict[str, str]:
    """Return what each text is called: itself, or the next of ``other`` that nothing is called."""
    distinct = sorted(set(texts) - {""})
    free = (name for name in map(other.format, count(1)) if name not in distinct)
    return {text: text if all(map(stays.fullmatch, text.split(" "))) else next(free) for text in distinct}


@dataclass
class _Cleaner:
    run: Run
    aliases: dict[str, str]
    taken: dict[str, None] = field(default_factory=dict)  # in order, each once

    def __post_init__(self) -> None:
        self.stays = frozenset(STAYS.split())
        config = self.run.config
        options = [*config.options, *(trial.options for trial in self.run.trials)]
        named = [Environment.parse(text).label for text in config.environments]
        self.labels = _renamed([*named, *(chosen.environment for chosen in options)], VERSION, "env-{}")
        settings = (str(chosen[name]) for chosen in options for name in FREE if name in chosen)
        self.settings = _renamed(settings, SETTING, "VARIABLE={}")
        self.workloads: dict[tuple[str, str], str] = {}
        for described in (facts.description for facts in self.run.scenarios if facts.description.name in self.aliases):
            for number, name in enumerate((workload.name for workload in described.workloads), start=1):
                self.workloads[described.name, name] = name if name == "default" else f"workload-{number}"

    def part(self, part: Any, place: str, of_own: bool) -> Any:
        """Return a dataclass with the texts that stay. ``of_own``: it says something of a scenario that is renamed."""
        of_own = of_own or (isinstance(part, Trial) and part.scenario in self.aliases)
        other, values = self.in_other_words(part, of_own), {}
        for name in (declared.name for declared in fields(part)):
            at, stays = f"{place}.{name}".strip("."), f"{type(part).__name__}.{name}" in self.stays
            values[name] = self.value(getattr(other, name), stays, at, of_own)
            if values[name] != getattr(part, name) and not any(taken.startswith(f"{at}.") for taken in self.taken):
                self.taken[at] = None
        return replace(part, **values)

    def value(self, value: Any, stays: bool, place: str, of_own: bool) -> Any:
        if value is None or isinstance(value, (Samples, int, float, StrEnum)):
            return value
        if is_dataclass(value):
            return self.part(value, place, of_own)
        if isinstance(value, Options):
            settings = {name: self.settings.get(str(value.get(name))) for name in FREE}
            return value.but(environment=self.labels.get(value.environment), **settings)
        if isinstance(value, dict) and any(map(is_dataclass, value.values())):
            return {name: self.value(part, stays, place, of_own) for name, part in value.items()}  # by stage
        if isinstance(value, list) and not all(isinstance(member, str) for member in value):
            is_numbers = isinstance(value[0], (int, float))
            return value if is_numbers else [self.value(member, stays, place, of_own) for member in value]
        return value if stays else type(value)()

    def in_other_words(self, part: Any, of_own: bool) -> Any:
        part = OTHER_WORDS.get(type(part), lambda part: part)(part)
        if of_own:
            part = OF_OWN.get(type(part), lambda part: part)(part)
        if isinstance(part, RunConfig):
            return self.config(part)
        if isinstance(part, ScenarioFacts) and part.description.name in self.aliases:
            return self.scenario(part)
        if isinstance(part, Trial | OperationCount):
            workload = self.workloads.get((part.scenario, part.workload), part.workload)
            return replace(part, scenario=self.aliases.get(part.scenario, part.scenario), workload=workload)
        return part

    def config(self, config: RunConfig) -> RunConfig:
        labels = list(self.public_labels(config))
        typed = [word for word in config.scenarios if any(_names(word, label) for label in labels)]
        names = (facts.description.name for facts in self.run.scenarios)
        typed += (self.aliases.get(name, name) for name in names if name not in labels)
        environments = map(Environment.parse, config.environments)
        return replace(
            config,
            scenarios=typed if config.scenarios else [],
            backends=[name for name in config.backends if name in backends.names()],
            devices=[device for device in config.devices if LABEL.fullmatch(device)],
            environments=[str(Environment(named.backend, self.labels.get(named.label, ""))) for named in environments],
            model_config=NOTHING if self.aliases else config.model_config,
            suite=config.suite if config.suite in catalog.suites() else catalog.DEFAULT_SUITE,
            own=self.mode_settings(config),
        )

    def public_labels(self, config: RunConfig) -> Iterator[str]:
        for described in (facts.description for facts in self.run.scenarios if is_public(facts, config)):
            yield described.name
            yield from (f"{described.name}/{workload.name}" for workload in described.workloads)

    def mode_settings(self, config: RunConfig) -> dict[str, Any]:
        """Return the settings of the run's mode alone, by its type: a text is a label, or a word of options."""
        mode = next(mode for mode in registry.MODES if mode.name == config.mode)
        if not is_dataclass(mode.own):
            return {}
        words = {*backends.names(), "backend", "device", *(variant.flag for variant in variants.ALL)}
        for kind in get_type_hints(mode.own).values():
            words.update(get_args(kind))  # of a Literal
        renamed = {word: word for word in words} | self.labels
        own: dict[str, Any] = msgspec.to_builtins(mode.settings_of(config))
        for name, value in own.items():
            if isinstance(value, list):
                own[name] = [renamed[text] for text in value if text in renamed]
            elif isinstance(value, str):
                own[name] = renamed.get(value, "")
        return own

    def scenario(self, facts: ScenarioFacts) -> ScenarioFacts:
        described = facts.description
        name, kind = self.aliases[described.name], described.kind if described.kind in KINDS else "other"
        workloads = [
            replace(workload, name=self.workloads[described.name, workload.name], data="data of its own", keras_only="")
            for workload in described.workloads
        ]
        description = replace(described, name=name, title="", text="", source="", kind=kind, workloads=workloads)
        return replace(facts, file_hash=name, baselines={}, description=description)


def _names(word: str, label: str) -> bool:
    return any(fnmatchcase(label, word.removeprefix(source.prefix)) for source in sources.SOURCES)
