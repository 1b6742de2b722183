"""What will be measured: the cases of a run, and why others cannot be."""

import itertools
import os
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
from kerasbench.protocol.requests import TURNS_FOR_ONE, TrialPlan
from kerasbench.protocol.stages import TRAIN
from kerasbench.results.run import MAX_COLUMNS, Effort, OperationCount, RunConfig
from kerasbench.variants.variant import CaseFacts, Refusal

GPUS = (*CUDA_FAMILY, *APPLE)  # what backends call GPUs
DOCTOR = "python -m kerasbench doctor shows what each backend finds, and what is wrong"
Probes = Mapping[Environment, ProbeReport | Failure]  # what each interpreter said of its backend
DevicesByEnvironment = Mapping[Environment, Sequence[Device]]  # that each sees; none where its backend failed


class PairKey(NamedTuple):
    """What cases that are compared have in common."""

    scenario: str
    workload: str
    size: Size | None
    column: Column | None  # of versions, what a pair has in common


@dataclass(frozen=True)
class Case:
    selected: Selected
    backend: str
    device: Device
    options: Options = columns.DEFAULT
    plan: TrialPlan = field(default_factory=TrialPlan)  # what its trials measure
    paired: bool = False  # measured beside those cases alone that differ from it by their interpreter

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.selected.entry.name, self.selected.workload.name, self.column, self.options.size)

    @property
    def column(self) -> Column:
        return Column(self.backend, self.device.label, self.options.unsized)

    @property
    def row(self) -> PairKey:
        key = self.key
        return PairKey(key.scenario, key.workload, key.size, key.column.paired if self.paired else None)

    @property
    def parameters(self) -> int | None:
        return self.selected.workload.parameters or self.selected.entry.description.parameters

    def resized(self) -> "Case":
        """Return it with the workload of its own size, where it predicts at that."""
        size = self.options.size
        if size is None or size.batch is None or not self.plan.agenda.only_predicts:
            return self
        return replace(self, selected=self.selected.of_batch(size.batch))

    @property
    def slices_ns(self) -> int:
        """How long its slices last in a block, at most: the control of a long block rests most of the time."""
        rests = self.plan.fixed_time and self.options.control
        return self.plan.slices_max_ns // (TURNS_FOR_ONE if rests else 1)

    @property
    def row_label(self) -> str:
        size = self.options.size.label if self.options.size else ""
        column = self.column.paired.label if self.paired else ""
        return " ".join(part for part in (self.selected.label, size, column) if part)

    @property
    def label(self) -> str:
        return f"{self.selected.label} {self.backend} {self.device.label} {self.options.label}".strip()


class CasePlanner(typing.Protocol):
    """What a mode decides of cases: see ``runs.planner.Planner``, which has it of a plain run."""

    config: RunConfig

    def require(self, scenarios: Sequence[Selected]) -> None: ...
    def options(self, case: Case, devices: Sequence[Device], processors: int) -> list[Options]: ...
    def plan(self, options: Options) -> TrialPlan: ...
    def refusal(self, selected: Selected) -> Refusal: ...


@dataclass(frozen=True)
class Plan:
    config: RunConfig
    machine: Machine
    cases: list[Case]
    absent: list[tuple[Case, Failure]]  # what cannot be measured, and why
    warnings: list[str] = field(default_factory=list)
    flops: list[OperationCount] = field(default_factory=list)  # of each workload's step, where they were counted
    announcements: Sequence[str] | None = None  # said before it starts; None: which differences it will be able to see

    @property
    def effort(self) -> Effort:
        return self.config.effort


def make(
    planner: CasePlanner,
    scenarios: Sequence[Selected],
    probes: Probes,
    here: Machine,
    named: Collection[Environment] = (),
) -> Plan:
    """Cross scenarios, backends, devices and options, and tell the cases that can be measured from the others.

    A backend that is not installed is left out, unless it or its interpreter was ``named``, or its pair is there.
    """
    config = planner.config
    scenarios = _required(planner, scenarios)
    absent_at_all = {env for env, report in probes.items() if isinstance(report, Failure) and report.phase == FIND}
    backends_there = {env.backend for env in probes.keys() - absent_at_all}
    expected = {*named}
    if config.paired and any(env.label for env in probes):
        expected = {env for env in probes if env.backend in backends_there}
    wanted = [env for env in probes if env in expected or env not in absent_at_all or env.backend in config.backends]
    devices = {env: [] if isinstance(report := probes[env], Failure) else report.devices for env in wanted}
    cases, absent, warnings = list[Case](), list[tuple[Case, Failure]](), differing_keras(probes)
    for env in wanted:
        for case in _crossed(planner, scenarios, env, _devices(config, env, devices), here.cores):
            failure = _unavailable(case, probes[env]) or unsupported(case, planner, here.cores)
            if failure is None:
                cases.append(case)
            elif failure.code is Code.UNSUPPORTED and variants.has(case.options, "prepares"):
                warnings.append(f"{name_of(case.column)} is not measured: {failure.cause}; {failure.remedy}")
            else:
                absent.append((case, failure))
    cases = with_controls(cases) if config.control else cases
    if (number := len({case.column for case in (*cases, *(case for case, _ in absent))})) > MAX_COLUMNS:
        most = f"a run has {MAX_COLUMNS} at most"
        raise UsageError(f"these are {number} configurations, and {most}: name fewer backends, devices or options")
    if not cases and not any(failure.code is Code.UNSUPPORTED for _, failure in absent):
        raise MissingBackend(_nothing_there(probes, config.devices))
    if any(case.device.platform == CUDA for case in cases):
        require_clear_numbers(here.gpus)
    if not config.devices:
        warnings += _left_devices(devices)
    return Plan(config, here, cases, absent, list(dict.fromkeys(warnings)))


def require_possible(
    planner: CasePlanner, scenarios: Sequence[Selected], environments: Sequence[Environment], processors: int
) -> None:
    """Raise UsageError where a configuration that was asked for cannot be measured, whatever devices there are."""
    config = planner.config
    scenarios = _required(planner, scenarios)
    labels = [parse_label(label) for label in config.devices or (CPU, GPU)]
    devices = [Device(name, index) for kind, index in labels for name in (GPUS if kind == GPU else (CPU,))]
    refusals: dict[Options, list[Failure | None]] = {}
    for environment in environments:
        for case in _crossed(planner, scenarios, environment, devices, processors):
            chosen = case.options.but(environment=None)
            if chosen in config.options and not variants.has(chosen, "prepares"):
                refusals.setdefault(chosen, []).append(unsupported(case, planner, processors))
    for options, failures in refusals.items():
        causes = dict.fromkeys(f"{failure.cause}: {failure.remedy}" for failure in failures if failure)
        if None not in failures:
            raise UsageError(f"{options.label or 'nothing of it'} cannot be measured: {'; '.join(causes)}")


def _required(planner: CasePlanner, scenarios: Sequence[Selected]) -> Sequence[Selected]:
    planner.require(scenarios)
    return untrained(scenarios) if planner.config.effort.plan.agenda.only_predicts else scenarios


def _left_devices(by_environment: DevicesByEnvironment) -> list[str]:
    chosen = {device.label for devices in by_environment.values() for device in of_each_model(devices)}
    labels = {device.label: device.described for devices in by_environment.values() for device in devices}
    left = ", ".join(described for label, described in labels.items() if label not in chosen)
    how = f"all: --device {','.join(labels)}"
    return [f"one GPU of each model is measured, so these are left out: {left}; {how}"] if left else []


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
    entries: dict[str, Entry] = {}
    for selected in scenarios:
        description = selected.entry.description
        workloads = [replace(workload, predicts_only=True) for workload in description.workloads]
        predicting = replace(selected.entry, description=replace(description, workloads=workloads))
        entries.setdefault(selected.entry.name, predicting)  # one for all of its workloads
    return [
        replace(selected, entry=entries[selected.entry.name], workload=replace(selected.workload, predicts_only=True))
        for selected in scenarios
    ]


def with_controls(cases: Sequence[Case]) -> list[Case]:
    """Return the cases with a second one beside the first of each row: what differs between the two is noise."""
    first: dict[PairKey, Case] = {}
    for case in cases:
        first.setdefault(case.row, case)
    return [*cases, *(replace(case, options=case.options.but(control=True)) for case in first.values())]


def _crossed(
    planner: CasePlanner,
    scenarios: Sequence[Selected],
    environment: Environment,
    devices: Sequence[Device],
    processors: int,
) -> Iterator[Case]:
    """Leave out a large workload on the CPU, and, unless scenarios were named, a variant of which there is nothing."""
    config, backend = planner.config, environment.backend
    for device, selected in itertools.product(devices, scenarios):
        if selected.workload.large and device.kind == CPU and not selected.named:
            continue
        plain = Case(selected, backend, device, plan=config.effort.plan, paired=config.paired)
        for options in planner.options(plain, devices, processors):
            if not variants.belong(options, backend):
                continue
            labelled = options.but(environment=environment.label or None)
            case = replace(plain, options=labelled, plan=planner.plan(options)).resized()
            of_case = facts(case, processors)
            if config.scenarios or all(variant.is_there(of_case) for variant, _ in variants.chosen(options)):
                yield case


def _devices(config: RunConfig, environment: Environment, by_environment: DevicesByEnvironment) -> list[Device]:
    """Those asked for, or one of each model; what it does not see is as the version beside it sees it, or a label."""
    beside = [env for env in by_environment if config.paired and env.backend == environment.backend]
    by_label = {device.label: device for env in (*beside, environment) for device in by_environment[env]}
    labels = config.devices or [device.label for device in of_each_model(list(by_label.values()))] or [CPU]
    return [by_label.get(label) or Device(*parse_label(label)) for label in labels]


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


def _unavailable(case: Case, report: ProbeReport | Failure) -> Failure | None:
    if isinstance(report, Failure):
        return Failure(Code.UNAVAILABLE, report.cause, report.remedy, "import", report.detail)
    if case.device not in report.devices:
        return Failure(Code.UNAVAILABLE, f"{describe_probe(report)}, not {case.device.label}", DOCTOR)
    return None


def unsupported(case: Case, planner: CasePlanner, processors: int) -> Failure | None:
    """Return why a case means nothing, by its workload or by its options on its device, None where it does."""
    if case.plan.needs_training and case.selected.workload.predicts_only:
        cause = "the model is not trained, so it has no training steps to measure"
        return Failure(Code.UNSUPPORTED, cause, "compile the model, and save it again; or soak: --for predict")
    if case.selected.workload.loops and TRAIN not in case.plan.stages:
        cause = "of a script's own loop, steps are measured alone"
        return Failure(Code.UNSUPPORTED, cause, "save the model before the loop, and measure that file")
    refusal = planner.refusal(case.selected) or refusal_of(case, processors)
    return Failure(Code.UNSUPPORTED, *refusal) if refusal else None


def refusal_of(case: Case, processors: int) -> Refusal:
    """Return why it cannot have one of its options, and what to do."""
    of_case = facts(case, processors)
    refusals = (variant.refusal(value, of_case) for variant, value in variants.chosen(case.options))
    return next(filter(None, refusals), None)


def facts(case: Case, processors: int) -> CaseFacts:
    selected = case.selected
    return CaseFacts(
        backends.get(case.backend),
        case.backend,
        case.device,
        case.options,
        selected.label,
        selected.workload,
        case.plan,
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
