"""What will be measured: the cases of a run, and why others cannot be."""

import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerasbench import backends, variants
from kerasbench.analysis.names import name_of
from kerasbench.errors import MissingBackend, UsageError
from kerasbench.host import Machine
from kerasbench.plan.catalog import Entry, Selected
from kerasbench.processes.variables import own_names
from kerasbench.protocol import columns
from kerasbench.protocol.columns import (
    APPLE,
    CPU,
    CUDA,
    CUDA_FAMILY,
    GPU,
    CaseKey,
    Column,
    Device,
    Environment,
    Options,
    Size,
    parse_label,
)
from kerasbench.protocol.messages import FIND, Code, Failure, ProbeReport
from kerasbench.protocol.requests import TURNS_FOR_ONE, Protocol
from kerasbench.results.run import MAX_COLUMNS, Counted, Effort, RunConfig
from kerasbench.variants.variant import CaseFacts

GPUS = (*CUDA_FAMILY, *APPLE)  # what backends call GPUs
DOCTOR = "python -m kerasbench doctor shows what each backend finds, and what is wrong"
Probes = Mapping[Environment, ProbeReport | Failure]  # what each interpreter said of its backend
Seen = Mapping[Environment, Sequence[Device]]  # the devices that each sees; none where its backend failed
Shared = tuple[str, str, Size | None, Column | None]  # scenario, workload, size; of versions what a pair has in common


@dataclass(frozen=True)
class Case:
    selected: Selected
    backend: str
    device: Device
    options: Options = columns.DEFAULT
    protocol: Protocol = field(default_factory=Protocol)  # what its trials measure
    paired: bool = False  # measured beside those cases alone that differ from it by their interpreter

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.selected.entry.name, self.selected.workload.name, self.column, self.options.size)

    @property
    def column(self) -> Column:
        return Column(self.backend, self.device.label, self.options.unsized)

    @property
    def row(self) -> Shared:
        """What it has in common with the cases that it is compared with."""
        key = self.key
        return (key.scenario, key.workload, key.size, key.column.paired if self.paired else None)

    def resized(self) -> "Case":
        """Return it with the workload of its own size, where it predicts at that."""
        size = self.options.size
        if size is None or size.batch is None or not self.protocol.agenda.only_predicts:
            return self
        return replace(self, selected=self.selected.of_batch(size.batch))

    @property
    def slices_ns(self) -> int:
        """How long its slices last in a block, at most: the control of a long block rests most of the time."""
        rests = self.protocol.lasts and self.options.control
        return self.protocol.slices_max_ns // (TURNS_FOR_ONE if rests else 1)

    @property
    def row_label(self) -> str:
        size = self.options.size.label if self.options.size else ""
        column = self.column.paired.label if self.paired else ""
        return " ".join(part for part in (self.selected.label, size, column) if part)

    @property
    def label(self) -> str:
        return f"{self.selected.label} {self.backend} {self.device.label} {self.options.label}".strip()


class Choices:
    """What a mode may choose otherwise when cases are made; as it stands, what a configuration says."""

    def require(self, config: RunConfig, scenarios: Sequence[Selected]) -> None:
        """Raise UsageError where nothing of it can be measured in this mode."""

    def options(
        self, config: RunConfig, backend: str, device: Device, selected: Selected, processors: int
    ) -> list[Options]:
        return list(config.options)

    def devices(self, config: RunConfig, devices: list[Device]) -> list[Device]:
        """Return those of a backend's devices that are measured, of those that were asked for or are of each model."""
        return devices

    def protocol(self, config: RunConfig, options: Options) -> Protocol:
        return config.effort.protocol

    def refusal(self, config: RunConfig, selected: Selected) -> tuple[str, str] | None:
        """Return why this mode cannot measure a workload, and what to do."""
        return None

    def leaves_out(self, config: RunConfig, case: Case) -> bool:
        """Tell whether what a backend cannot do is one case less, and no failure."""
        return variants.has(case.options, "prepares")


PLAIN = Choices()


@dataclass(frozen=True)
class Plan:
    config: RunConfig
    machine: Machine
    cases: list[Case]
    absent: list[tuple[Case, Failure]]  # what cannot be measured, and why
    warnings: list[str] = field(default_factory=list)
    flops: list[Counted] = field(default_factory=list)  # of each workload's step, where somebody has counted them

    @property
    def effort(self) -> Effort:
        return self.config.effort


def make(
    config: RunConfig,
    scenarios: Sequence[Selected],
    probes: Probes,
    here: Machine,
    named: Collection[Environment] = (),
    choices: Choices = PLAIN,
) -> Plan:
    """Cross scenarios, backends, devices and options, and tell the cases that can be measured from the others.

    A backend that is not installed is left out, unless it or its interpreter was ``named``, or its pair is there.
    """
    choices.require(config, scenarios)
    if config.effort.protocol.agenda.only_predicts:
        scenarios = untrained(scenarios)
    absent_at_all = {env for env, report in probes.items() if isinstance(report, Failure) and report.phase == FIND}
    backends_there = {env.backend for env in probes.keys() - absent_at_all}
    expected = {*named}
    if config.paired and any(env.label for env in probes):
        expected = {env for env in probes if env.backend in backends_there}
    wanted = [env for env in probes if env in expected or env not in absent_at_all or env.backend in config.backends]
    reports = {env: probes[env] for env in wanted}
    seen = {env: [] if isinstance(report, Failure) else report.devices for env, report in reports.items()}
    judged = [
        (case, _failure(config, case, report, here.cores, choices))
        for env, report in reports.items()
        for case in _crossed(config, scenarios, env, _devices(config, env, seen, choices), here.cores, choices)
    ]
    cases = [case for case, failure in judged if failure is None]
    cases = with_controls(cases) if config.control else cases
    failures = [(case, failure) for case, failure in judged if failure is not None]
    if (number := len({case.column for case in (*cases, *(case for case, _ in failures))})) > MAX_COLUMNS:
        most = f"a run has {MAX_COLUMNS} at most"
        raise UsageError(f"these are {number} configurations, and {most}: name fewer backends, devices or options")
    absent = [
        (case, failure)
        for case, failure in failures
        if failure.code is not Code.UNSUPPORTED or not choices.leaves_out(config, case)
    ]
    if not cases and not any(failure.code is Code.UNSUPPORTED for _, failure in absent):
        raise MissingBackend(_nothing_there(probes, config.devices))
    if any(case.device.platform == CUDA for case in cases):
        require_clear_numbers(here.gpus)
    return Plan(config, here, cases, absent, [*differing_keras(probes), *_notices(config, seen, failures)])


def require_possible(
    config: RunConfig,
    scenarios: Sequence[Selected],
    environments: Sequence[Environment],
    processors: int,
    choices: Choices = PLAIN,
) -> None:
    """Raise UsageError where a configuration that was asked for cannot be measured, whatever devices there are."""
    choices.require(config, scenarios)
    if config.effort.protocol.agenda.only_predicts:
        scenarios = untrained(scenarios)
    labels = [parse_label(label) for label in config.devices or (CPU, GPU)]
    devices = [Device(name, index) for kind, index in labels for name in (GPUS if kind == GPU else (CPU,))]
    refusals: dict[Options, list[Failure | None]] = {}
    for environment in environments:
        for case in _crossed(config, scenarios, environment, choices.devices(config, devices), processors, choices):
            chosen = case.options.but(environment=None)
            if chosen in config.options and not choices.leaves_out(config, case):
                refusals.setdefault(chosen, []).append(unsupported(case, config, processors, choices))
    for options, failures in refusals.items():
        causes = dict.fromkeys(f"{failure.cause}: {failure.remedy}" for failure in failures if failure)
        if None not in failures:
            raise UsageError(f"{options.label or 'nothing of it'} cannot be measured: {'; '.join(causes)}")


def _notices(config: RunConfig, seen: Seen, failures: Sequence[tuple[Case, Failure]]) -> list[str]:
    notices = [
        f"{name_of(case.column)} is not measured: {failure.cause}; {failure.remedy}"
        for case, failure in failures
        if PLAIN.leaves_out(config, case) and failure.code is Code.UNSUPPORTED
    ]
    chosen = {device.label for devices in seen.values() for device in of_each_model(devices)}
    labels = {device.label: device.described for devices in seen.values() for device in devices}
    left = ", ".join(described for label, described in labels.items() if label not in chosen)
    if left and not config.devices:
        how = f"all: --device {','.join(labels)}"
        notices.append(f"one GPU of each model is measured, so these are left out: {left}; {how}")
    return list(dict.fromkeys(notices))


def require_clear_numbers(cards: Sequence[str]) -> None:
    """Raise UsageError where the shell counts cards of several models in another order than ours, that of the bus."""
    variable, models = columns.VISIBILITY[0], dict.fromkeys(cards)
    shown = os.environ.get(variable, "")
    is_counted = any(entry.strip().isdecimal() for entry in shown.split(","))
    if is_counted and os.environ.get(columns.ORDER) != columns.BY_BUS and len(models) > 1:
        raise UsageError(
            f"{variable}={shown} is ambiguous, because the GPUs differ ({', '.join(models)}): "
            f"without {columns.ORDER}, CUDA numbers the fastest first, kerasbench by the bus; give their UUIDs, which "
            f"nvidia-smi -L prints ({variable}=GPU-...)"
        )


def of_each_model(devices: Sequence[Device]) -> list[Device]:
    """Return the first device of each model: further ones say little of a model, and take as long each."""
    first: dict[tuple[str, str], Device] = {}
    for device in devices:
        first.setdefault((device.platform, device.name), device)
    return list(first.values())


def untrained(scenarios: Sequence[Selected]) -> list[Selected]:
    """Return the scenarios as if none of their models were trained: calls are all that is measured of them."""
    entries: dict[int, Entry] = {}
    for selected in scenarios:
        description = selected.entry.description
        workloads = [replace(workload, predicts_only=True) for workload in description.workloads]
        predicting = replace(selected.entry, description=replace(description, workloads=workloads))
        entries.setdefault(id(selected.entry), predicting)  # one for all of its workloads
    return [
        replace(selected, entry=entries[id(selected.entry)], workload=replace(selected.workload, predicts_only=True))
        for selected in scenarios
    ]


def with_controls(cases: Sequence[Case]) -> list[Case]:
    """Return the cases with a second one beside the first of each row: what differs between the two is noise."""
    first: dict[Shared, Case] = {}
    for case in cases:
        first.setdefault(case.row, case)
    return [*cases, *(replace(case, options=case.options.but(control=True)) for case in first.values())]


def _crossed(
    config: RunConfig,
    scenarios: Sequence[Selected],
    environment: Environment,
    devices: Sequence[Device],
    processors: int,
    choices: Choices,
) -> Iterator[Case]:
    """Leave out a large workload on the CPU, and, unless scenarios were named, a variant of which there is nothing."""
    backend = environment.backend
    for device, selected in itertools.product(devices, scenarios):
        if selected.workload.large and device.kind == CPU and not selected.named:
            continue
        asked = choices.options(config, backend, device, selected, processors)
        for options in [options for options in asked if variants.belong(options, backend)]:
            labelled = options.but(environment=environment.label or None)
            protocol = choices.protocol(config, options)
            case = Case(selected, backend, device, labelled, protocol, config.paired).resized()
            known = facts(case, processors)
            if config.scenarios or all(variant.is_there(known) for variant, _ in variants.chosen(options)):
                yield case


def _devices(config: RunConfig, environment: Environment, seen: Seen, choices: Choices) -> list[Device]:
    """Those asked for, or one of each model; what it does not see is as the version beside it sees it, or a label."""
    beside = [env for env in seen if config.paired and env.backend == environment.backend]
    known = {device.label: device for env in (*beside, environment) for device in seen[env]}
    asked = config.devices or [device.label for device in of_each_model(list(known.values()))] or [CPU]
    return choices.devices(config, [known.get(label) or Device(*parse_label(label)) for label in asked])


def differing_keras(probes: Probes) -> list[str]:
    versions = {
        environment.backend: report.versions.get("keras", "")
        for environment, report in probes.items()
        if isinstance(report, ProbeReport) and not environment.label
    }
    if len(set(versions.values())) < 2:
        return []
    named = ", ".join(f"{name} has {version}" for name, version in versions.items())
    return [f"versions of Keras differ: {named}; ratios compare these too, not the backends alone"]


def _failure(
    config: RunConfig, case: Case, report: ProbeReport | Failure, processors: int, choices: Choices
) -> Failure | None:
    if isinstance(report, Failure):
        return Failure(Code.UNAVAILABLE, report.cause, report.remedy, "import", report.detail)
    if case.device not in report.devices:
        return Failure(Code.UNAVAILABLE, f"{describe_probe(report)}, not {case.device.label}", DOCTOR)
    return unsupported(case, config, processors, choices)


def unsupported(case: Case, config: RunConfig, processors: int, choices: Choices = PLAIN) -> Failure | None:
    """Return why a case means nothing, by its workload or by its options on its device, None where it does."""
    if case.protocol.needs_training and case.selected.workload.predicts_only:
        cause = "the model is not trained, so it has no training steps to measure"
        return Failure(Code.UNSUPPORTED, cause, "compile the model, and save it again; or soak: --for predict")
    known = facts(case, processors)
    of_variants = (variant.refusal(value, known) for variant, value in variants.chosen(case.options))
    refusal = choices.refusal(config, case.selected) or next(filter(None, of_variants), None)
    return Failure(Code.UNSUPPORTED, *refusal) if refusal else None


def facts(case: Case, processors: int) -> CaseFacts:
    selected = case.selected
    return CaseFacts(
        backends.get(case.backend),
        case.backend,
        case.device,
        case.options,
        selected.label,
        selected.workload,
        case.protocol,
        selected.entry.baselines,
        processors,
        own_names(),
        selected.entry.description.kind,
    )


def _nothing_there(probes: Probes, devices: Sequence[str]) -> str:
    missing = f"no device {' or '.join(devices)}" if devices else "no backend"
    lines = (
        f"{env}: {report.cause}\n    {report.remedy}" if isinstance(report, Failure) else describe_probe(report)
        for env, report in probes.items()
    )
    return "\n  ".join([f"there is {missing} to measure on:", *lines]) + f"\n{DOCTOR}"


def describe_probe(report: ProbeReport) -> str:
    """Return ``torch 2.13.0+cpu sees cpu``."""
    version = report.versions.get(report.backend, "")
    return f"{report.backend} {version} sees {', '.join(device.described for device in report.devices)}"
