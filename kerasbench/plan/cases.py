"""What will be measured: the cases of a run, and why others cannot be."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kerasbench import backends
from kerasbench.errors import MissingBackend, UsageError
from kerasbench.host import Machine
from kerasbench.plan.catalog import Entry, Selected
from kerasbench.protocol import columns
from kerasbench.protocol.columns import CPU, CUDA, GPU, CaseKey, Column, Device, Environment, Options, Size, has_glibc
from kerasbench.protocol.columns import DEFAULT as DEFAULT_OPTIONS
from kerasbench.protocol.messages import FIND, Code, Failure, ProbeReport
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES, SOAK_TURNS, Protocol, counts_epochs, too_few_executions
from kerasbench.results.run import MAX_COLUMNS, Counted, Effort, RaceConfig, RunConfig
from kerasbench.settings import BATCH_SIZE

DOCTOR = "python -m kerasbench doctor shows what each backend finds, and what is wrong"
MEASURES = "`kerasbench run --scenario {}` measures its epochs"
EXECUTIONS = (8, 32)  # training steps in one execution that a race tries
BATCHES = (4, 16)  # times the workload's: batch sizes that a race tries, if it is to
LARGER_BATCH = 4  # times the workload's: far enough to tell overhead from work, near enough to learn alike
Probes = Mapping[Environment, ProbeReport | Failure]  # what each interpreter said of its backend
Seen = Mapping[Environment, Sequence[Device]]  # the devices that each sees; none where its backend failed
Shared = tuple[str, str, Size | None, Column | None]  # scenario, workload, size; of versions what a pair has in common


@dataclass(frozen=True)
class Case:
    """A scenario's workload on one backend and one device, with options."""

    selected: Selected
    backend: str
    device: Device
    options: Options = DEFAULT_OPTIONS
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

    @property
    def slices_ns(self) -> int:
        """How long its slices last in a block, at most: the control of a soak rests most of the time."""
        rests = self.protocol.soaks and self.options.control
        return self.protocol.slices_max_ns // (SOAK_TURNS if rests else 1)

    @property
    def row_label(self) -> str:
        size = self.options.size.label if self.options.size else ""
        column = self.column.paired.label if self.paired else ""
        return " ".join(part for part in (self.selected.label, size, column) if part)

    @property
    def label(self) -> str:
        return f"{self.selected.label} {self.backend} {self.device.label} {self.options.label}".strip()


@dataclass(frozen=True)
class Plan:
    """What a run on a machine will measure."""

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
) -> Plan:
    """Cross scenarios, backends, devices and options, and tell the cases that can be measured from the others.

    A backend that is not installed is left out, unless it was asked for or is one of ``named``, whose interpreters were
    named; one that is installed and does not load is not left out. Of two versions that are compared, neither is left
    out where the other is there, nor is a device that only one of them sees.
    """
    if config.explain:
        _require_explainable(scenarios)
    if config.effort.protocol.agenda.only_predicts:
        scenarios = untrained(scenarios)
    absent_at_all = {env for env, report in probes.items() if isinstance(report, Failure) and report.phase == FIND}
    backends_there = {env.backend for env in probes.keys() - absent_at_all}
    expected = {env for env in probes if env.backend in backends_there} if config.versus else {*named}
    wanted = [env for env in probes if env in expected or env not in absent_at_all or env.backend in config.backends]
    reports = {env: probes[env] for env in wanted}
    seen = {env: [] if isinstance(report, Failure) else report.devices for env, report in reports.items()}
    judged = [
        (case, _failure(config, case, report, here.cores))
        for env, report in reports.items()
        for case in _crossed(config, scenarios, env, _devices(config, env, seen), here.cores)
    ]
    cases = [case for case, failure in judged if failure is None]
    cases = with_controls(cases) if config.control else cases
    failures = [(case, failure) for case, failure in judged if failure is not None]
    if (number := len({case.column for case in (*cases, *(case for case, _ in failures))})) > MAX_COLUMNS:
        most = f"a run has {MAX_COLUMNS} at most"
        raise UsageError(f"these are {number} configurations, and {most}: name fewer backends, devices or options")
    absent = [(case, failure) for case, failure in failures if not _is_left_out(config, case, failure)]
    if not cases and not any(failure.code is Code.UNSUPPORTED for _, failure in absent):
        raise MissingBackend(_nothing_there(probes, config.devices))
    if any(case.device.platform == CUDA for case in cases):
        require_clear_numbers(here.gpus)
    return Plan(config, here, cases, absent, [*differing_keras(probes), *_notices(config, seen, failures)])


def _is_left_out(config: RunConfig, case: Case, failure: Failure) -> bool:
    """Tell whether what a backend cannot do is a candidate less or a warm cache less, and no failure."""
    races = config.race and not _cannot_race(config, case.selected)
    return failure.code is Code.UNSUPPORTED and bool(races or case.options.warm_cache)


def _notices(config: RunConfig, seen: Seen, failures: Sequence[tuple[Case, Failure]]) -> list[str]:
    """Say which columns with a warm cache there are not, and which cards another one of their model stands for."""
    without_cache = [
        f"{case.column.label} is not measured: {failure.cause}; {failure.remedy}"
        for case, failure in failures
        if case.options.warm_cache and failure.code is Code.UNSUPPORTED
    ]
    chosen = {device.label for devices in seen.values() for device in of_each_model(devices)}
    labels = {device.label: device.described for devices in seen.values() for device in devices}
    left = ", ".join(described for label, described in labels.items() if label not in chosen)
    if config.devices or not left:
        return list(dict.fromkeys(without_cache))
    how = f"all: --device {','.join(labels)}"
    return [*dict.fromkeys(without_cache), f"one GPU of each model is measured, so these are left out: {left}; {how}"]


def require_clear_numbers(cards: Sequence[str], shell: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError where the shell counts cards of several models in another order than ours, that of the bus."""
    variable, models = columns.VISIBILITY[0], dict.fromkeys(cards)
    shown = shell.get(variable, "")
    is_counted = any(entry.strip().isdecimal() for entry in shown.split(","))
    if is_counted and shell.get(columns.ORDER) != columns.BY_BUS and len(models) > 1:
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


def _require_explainable(scenarios: Sequence[Selected]) -> None:
    """Raise UsageError where none of the workloads can be explained."""
    if all(counts_epochs(selected.workload.steps) for selected in scenarios):
        named = ", ".join(f"{selected.label} ({selected.workload.steps})" for selected in scenarios)
        raise UsageError(
            f"nothing here can be explained: epochs need {MIN_STEPS_FOR_SLICES} steps or more, and these have fewer: "
            f"{named}; {MEASURES.format(scenarios[0].word)}"
        )


def with_controls(cases: Sequence[Case]) -> list[Case]:
    """Return the cases with a second one beside the first of each row: what differs between the two is noise."""
    first: dict[Shared, Case] = {}
    for case in cases:
        first.setdefault(case.row, case)
    return [*cases, *(replace(case, options=replace(case.options, control=True)) for case in first.values())]


def _crossed(
    config: RunConfig,
    scenarios: Sequence[Selected],
    environment: Environment,
    devices: Sequence[Device],
    processors: int,
) -> Iterator[Case]:
    """Yield an interpreter's cases on these devices.

    A baseline that does not exist is left out, unless scenarios were asked for by name; so is a large workload on the
    CPU, unless it was named itself.
    """
    backend, paired = environment.backend, bool(config.versus or config.soak)
    for device in devices:
        for selected in scenarios:
            if selected.workload.large and device.kind == CPU and not selected.named:
                continue
            has_baseline = not selected.workload.keras_only and backend in selected.entry.baselines
            for options in _options(config, backend, device, selected, processors):
                if config.scenarios or not options.native or has_baseline:
                    labelled = replace(options, environment=environment.label)
                    yield Case(selected, backend, device, labelled, _protocol(config, options), paired)


def _devices(config: RunConfig, environment: Environment, seen: Seen) -> list[Device]:
    """Return the devices that were asked for, or else one of each model that an interpreter, or one beside it, sees.

    One that it does not see is as the other version sees it, or its label alone.
    """
    beside = [env for env in seen if config.versus and env.backend == environment.backend]
    known = {device.label: device for env in (*beside, environment) for device in seen[env]}
    asked = config.devices or [device.label for device in of_each_model(list(known.values()))] or [CPU]
    devices = [known.get(label) or Device(*columns.parse_label(label)) for label in asked]
    if config.race and "device" not in config.race.tries and not config.devices:
        return [max(devices, key=lambda device: device.kind == GPU)]  # as Keras does without settings
    return devices


def candidates(
    race: RaceConfig, backend: str, device: Device, steps: int, processors: int, batch: int = 1
) -> list[Options]:
    """Return the settings of a backend that are tried on a device.

    Each with all the others, but half of the threads, kept memory and larger batches by themselves. ``steps`` are those
    of an epoch, 0 where none are trained, and ``batch`` is the workload's. The largest execution is the first that
    holds a whole epoch; no batch is larger than one.
    """
    module = backends.get(backend)
    compiled = [None, True] if "jit" in race.tries and module.OTHER_JIT else [None]
    several = "steps-per-execution" in race.tries and module.SEVERAL_STEPS
    executions = [size for fewer, size in pairwise((1, *EXECUTIONS)) if fewer < steps and several]
    lower = "mixed_bfloat16" if device.kind == CPU else "mixed_float16"
    tried = [
        Options(jit=jit, dtype=dtype, steps_per_execution=size)
        for jit in compiled
        for dtype in ([None, lower] if "dtype" in race.tries else [None])
        for size in (None, *executions)
    ]
    if "threads" in race.tries and device.kind == CPU and processors > 1:
        tried.append(Options(threads=processors // 2))
    if "malloc" in race.tries and module.RETURNS_MEMORY and device.kind == CPU and has_glibc():
        tried.append(Options(malloc="keep"))
    if BATCH_SIZE in race.tries and not counts_epochs(steps):
        tried += [Options(batch_size=times * batch) for times in BATCHES if times <= steps]
    return tried


def _cannot_race(config: RunConfig, selected: Selected) -> bool:
    """Tell whether a race is about training, and the model is not trained."""
    return config.race is not None and config.race.purpose == "train" and selected.workload.predicts_only


def _options(config: RunConfig, backend: str, device: Device, selected: Selected, processors: int) -> list[Options]:
    """Return the options of a backend's cases in a workload; for an explanation also what might help."""
    workload = selected.workload
    if config.race:
        steps = workload.steps if config.race.purpose == "train" else 0
        tried = candidates(config.race, backend, device, steps, processors, workload.batch)
        return [DEFAULT_OPTIONS] if _cannot_race(config, selected) else tried
    options = list(config.options)
    if config.explain and not inexplicable(selected):
        other_jit = backends.get(backend).OTHER_JIT
        for asked in config.options:
            if asked.jit is None and other_jit is not None:
                options.append(replace(asked, jit=other_jit))
            if asked.batch is None:
                options.append(replace(asked, batch=LARGER_BATCH * workload.batch))
    return list(dict.fromkeys(options))


def _protocol(config: RunConfig, options: Options) -> Protocol:
    """Return what a case's trials measure: an explanation takes its own cases apart, and sizes are as in a sweep."""
    protocol = config.effort.protocol
    if not config.explain:
        return protocol
    return replace(protocol, kind="sweep" if options.size else protocol.kind, parts=options in config.options)


def differing_keras(probes: Probes) -> list[str]:
    """Say so where backends have different versions of keras: their columns then differ by more than the backend."""
    versions = {
        environment.backend: report.versions.get("keras", "")
        for environment, report in probes.items()
        if isinstance(report, ProbeReport) and not environment.label
    }
    if len(set(versions.values())) < 2:
        return []
    named = ", ".join(f"{name} has {version}" for name, version in versions.items())
    return [f"versions of Keras differ: {named}; ratios compare these too, not the backends alone"]


def _failure(config: RunConfig, case: Case, report: ProbeReport | Failure, processors: int) -> Failure | None:
    """Return why a case cannot be measured, None where it can."""
    if isinstance(report, Failure):
        return Failure(Code.UNAVAILABLE, report.cause, report.remedy, "import", report.detail)
    if case.device not in report.devices:
        return Failure(Code.UNAVAILABLE, f"{describe_probe(report)}, not {case.device.label}", DOCTOR)
    return unsupported(case, config, processors)


def unsupported(case: Case, config: RunConfig, processors: int) -> Failure | None:
    """Return why a case means nothing, by its workload or by its options on its device, None where it does."""
    refusals = (
        *_refusals_of_workload(case, config),
        *_refusals_of_options(case, processors),
        *(_refusals_of_baseline(case) if case.options.native else ()),
        *filter(None, [backends.get(case.backend).unsupported(case.device, case.options)]),
    )
    return Failure(Code.UNSUPPORTED, *refusals[0]) if refusals else None


def _refusals_of_workload(case: Case, config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield each cause with its remedy."""
    workload = case.selected.workload
    if cause := too_few_executions(workload.steps, case.options.steps_per_execution or 1):
        yield cause, "leave out --steps-per-execution for this workload, or lower it"
    if case.protocol.needs_training and workload.predicts_only:
        cause = "the model is not trained, so it has no training steps to measure"
        yield cause, "compile the model, and save it again; or soak: --for predict"
    if _cannot_race(config, case.selected):
        cause = "the model was saved without an optimizer and a loss, so it cannot be trained"
        yield cause, "add --for predict or --for predict-one"
    if config.explain and (refusal := inexplicable(case.selected)):
        yield refusal


def inexplicable(selected: Selected) -> tuple[str, str] | None:
    """Return why a workload's epochs cannot be taken apart, and a remedy, None where they can."""
    steps = selected.workload.steps
    if selected.workload.predicts_only:
        cause = f"{selected.label} is not trained, so it has no training step to explain"
        return cause, "compile the model, and save it again"
    if not counts_epochs(steps):
        return None
    cause = f"too short to explain: an epoch has {steps} of the {MIN_STEPS_FOR_SLICES} steps that are needed"
    return cause, MEASURES.format(selected.word)


def _refusals_of_options(case: Case, processors: int) -> Iterator[tuple[str, str]]:
    device, options = case.device, case.options
    if options.fp32 == "tf32" and device.platform != "cuda":
        yield f"TF32 is a mode of NVIDIA GPUs, not of {device.platform}", "leave out --fp32 tf32 for this device"
    if options.dtype == "float64" and device.platform in columns.APPLE:
        yield "the Apple GPU has no float64", "measure float64 with --device cpu"
    if options.threads is not None and options.threads > processors:
        cause = f"{options.threads} threads were asked for, this machine has {processors} CPU cores"
        yield cause, f"use --threads 1 to {processors}"
    if options.malloc and not (device.platform == CPU and has_glibc()):
        yield "--malloc keep works on a CPU only, on Linux with glibc", "leave out --malloc for this device"


def _refusals_of_baseline(case: Case) -> Iterator[tuple[str, str]]:
    entry, workload, options = case.selected.entry, case.selected.workload, case.options
    if workload.keras_only:
        cause = f"{case.selected.label} has {workload.keras_only}, which a native baseline cannot have"
        yield cause, "leave out --native for this scenario"
    elif case.backend not in entry.baselines:
        remedy = f"write native/{entry.name}_{case.backend}.py as docs/your-model.md shows"
        yield f"{entry.name} has no native baseline for {case.backend}", remedy
    if (options.jit is not None and not case.protocol.agenda.only_predicts) or options.dtype not in (None, "float32"):
        cause = "a native baseline is compiled as its framework does by default, and computes in float32"
        yield cause, "leave out --jit and --dtype with --native"


def _nothing_there(probes: Probes, devices: Sequence[str]) -> str:
    missing = f"no device {' or '.join(devices)}" if devices else "no backend"
    lines = [f"there is {missing} to measure on:"]
    for environment, report in probes.items():
        if isinstance(report, Failure):
            lines.append(f"  {environment}: {report.cause}\n    {report.remedy}")
        else:
            lines.append(f"  {describe_probe(report)}")
    return "\n".join([*lines, DOCTOR])


def describe_probe(report: ProbeReport) -> str:
    """Return ``torch 2.13.0+cpu sees cpu``."""
    version = report.versions.get(report.backend, "")
    return f"{report.backend} {version} sees {', '.join(device.described for device in report.devices)}"
