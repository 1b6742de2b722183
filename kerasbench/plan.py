"""What will be measured, and in which order (pure)."""

import dataclasses
import itertools
import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import cast, get_args

from kerasbench import backends, explainable
from kerasbench.catalog import Selected
from kerasbench.devices import APPLE, Device, parse_label, processors
from kerasbench.errors import MissingBackend, UsageError, unknown
from kerasbench.gate import PATIENCE_S, QUICK_PATIENCE_S
from kerasbench.options import DEFAULT as DEFAULT_OPTIONS
from kerasbench.options import DTYPES, Fp32, Options, Size
from kerasbench.request import DataKind, Protocol, ProtocolKind
from kerasbench.wire import FIND, Code, Failure, ProbeReport

JIT = {"default": None, "on": True, "off": False}
DURATION = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>[smh]?)")
RUN_PROTOCOLS = ("steady", "published")  # sweep is a command
SECOND_NS = 1_000_000_000
MIN_ROUNDS, MAX_ROUNDS, RIGOROUS_ROUNDS = 3, 5, 10  # three trials are the fewest that carry an interval
DOCTOR = "python -m kerasbench doctor says what is wrong, and what mends it"
LARGER_BATCH = 4  # times the regime's: far enough to tell overhead from work, near enough to learn alike
CellKey = tuple[str, str, str, str, str]  # scenario, regime, backend, device label, options
# On 2 cores; only until the first trials have been timed.
TYPICAL_TRIAL_S, TYPICAL_SWEEP_TRIAL_S, TYPICAL_STEP_S, TYPICAL_EPOCH_S = 9.0, 4.0, 0.002, 0.01


@dataclass(frozen=True)
class Effort:
    """How many rounds, how much each trial measures, and how long it may take in all (None: as long as it takes).

    ``gate_s``: for how long a trial waits for a quiet machine at most.
    """

    min_rounds: int = MIN_ROUNDS
    max_rounds: int = MAX_ROUNDS
    budget_s: float | None = None
    protocol: Protocol = field(default_factory=Protocol)
    gate_s: float = PATIENCE_S


PUBLISHED = Effort(1, 1, protocol=Protocol(kind="published"))
QUICK = Effort(
    1,
    1,
    protocol=Protocol(
        warmup_max_ns=3 * SECOND_NS,
        measure_max_ns=4 * SECOND_NS,
        epochs_max_ns=SECOND_NS // 2,
        predict_min_ns=SECOND_NS // 5,
        predict_max_ns=SECOND_NS,
    ),
    gate_s=QUICK_PATIENCE_S,
)
# A trial of a sweep is one of dozens: it measures steps alone, in half the time, and its rounds make up for it.
SWEEP = Protocol(
    kind="sweep",
    block_ns=SECOND_NS // 20,
    warmup_min_ns=SECOND_NS // 2,
    warmup_max_ns=3 * SECOND_NS,
    measure_max_ns=4 * SECOND_NS,
)
DEFAULT = Effort()


def exactly(count: int, protocol: Protocol | None = None) -> Effort:
    """Return the effort of exactly that many rounds."""
    return Effort(count, count, protocol=protocol or Protocol())


@dataclass(frozen=True)
class Cell:
    """A scenario's regime on one backend and one device, with options."""

    selected: Selected
    backend: str
    device: Device
    options: Options = DEFAULT_OPTIONS

    @property
    def key(self) -> CellKey:
        """What tells a cell from all others of a run."""
        selected, options = self.selected, self.options
        return (selected.entry.name, selected.regime.name, self.backend, self.device.label, options.label)

    @property
    def label(self) -> str:
        return f"{self.selected.label} {self.backend} {self.device.label} {self.options.label}".strip()


@dataclass(frozen=True)
class Asked:
    """What a user asks for. Empty lists mean everything; None is the default limit of time, and no limit of memory.

    ``refine``: a sweep measures two more sizes where one series overtakes another, once its rounds are over.
    ``explain``: measure what a step is made of too, and each cell once more with a larger batch and the other jit.
    ``keep_env``: variables of the shell that are let in to every child, with their values.
    """

    scenarios: list[str] = field(default_factory=list)
    backends: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    options: list[Options] = field(default_factory=lambda: [DEFAULT_OPTIONS])
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    data: DataKind = "synthetic"
    timeout_s: float | None = None
    memory_limit_bytes: int | None = None
    refine: bool = False
    explain: bool = False
    keep_env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted:
    """The floating-point operations that a training step of a regime takes for each sample, as torch counts them."""

    scenario: str
    regime: str
    operations: float


@dataclass(frozen=True)
class Plan:
    """The cells of a run, those that cannot be measured, each with its reason, and what is odd about the whole."""

    asked: Asked
    cells: list[Cell]
    absent: list[tuple[Cell, Failure]]
    warnings: list[str] = field(default_factory=list)
    flops: list[Counted] = field(default_factory=list)

    @property
    def effort(self) -> Effort:
        return self.asked.effort


def parse_backends(given: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the backends that were named, without repeats; raise UsageError for an unknown one."""
    for name in given:
        if name not in known:
            raise unknown("backend", name, known)
    return list(dict.fromkeys(given))


def parse_devices(given: Sequence[str]) -> list[str]:
    """Return the device labels that were named, without repeats; raise UsageError for an unknown one."""
    for name in given:
        try:
            parse_label(name)
        except ValueError:
            raise unknown("device", name, ["cpu", "gpu", "gpu:1"]) from None
    return list(dict.fromkeys("gpu" if name == "gpu:0" else "cpu" if name == "cpu:0" else name for name in given))


def parse_data(name: str) -> DataKind:
    """Return the kind of data; raise UsageError for an unknown one."""
    if name not in get_args(DataKind):
        raise unknown("kind of data", name, get_args(DataKind))
    return cast("DataKind", name)


def require_seed(seed: int) -> None:
    """Raise UsageError for a seed that a child's random generator would refuse."""
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"--seed takes a whole number from 0 on, not {seed}")


def parse_protocol(name: str) -> ProtocolKind:
    """Return the kind of protocol of a run; raise UsageError for an unknown one."""
    if name not in RUN_PROTOCOLS:
        raise unknown("protocol", name, RUN_PROTOCOLS)
    return cast("ProtocolKind", name)


def make(
    asked: Asked,
    scenarios: Sequence[Selected],
    probes: dict[str, ProbeReport | Failure],
    named: Collection[str] = (),
) -> Plan:
    """Cross scenarios, backends, devices and options.

    Where no devices were asked for, every device that a backend sees. A twin that does not exist is left out, unless
    scenarios were asked for by name. A backend that is not installed is left out, unless it was asked for or is one of
    ``named``, whose interpreters were named; one that is installed and does not load is not left out.

    Raises:
        MissingBackend: nothing that was asked for is there; the message says what each backend saw.
        UsageError: an explanation was asked for, of regimes none of which can be taken apart.
    """
    if asked.explain:
        explainable.require_one(scenarios)
    cells: list[Cell] = []
    absent: list[tuple[Cell, Failure]] = []
    for backend, report in probes.items():
        if isinstance(report, Failure) and report.phase == FIND and not asked.backends and backend not in named:
            continue
        seen = [] if isinstance(report, Failure) else report.devices
        for label in asked.devices or [device.label for device in seen] or ["cpu"]:
            device = next((device for device in seen if device.label == label), None)
            for cell in (
                Cell(one, backend, device or _stand_in(label), each)
                for one in scenarios
                for each in _options(asked, backend, one)
                if asked.scenarios or not each.native or _has_twin(one, backend)
            ):
                if device is None:
                    absent.append((cell, _missing(label, report)))
                elif (failure := _refused(asked, cell)) is not None:
                    absent.append((cell, failure))
                else:
                    cells.append(cell)
    if not cells and not any(failure.code is Code.UNSUPPORTED for _, failure in absent):
        raise MissingBackend(_nothing_there(probes, asked.devices))
    return Plan(asked, cells, absent, differing_keras(probes))


def _options(asked: Asked, backend: str, selected: Selected) -> list[Options]:
    """Return the options of a backend's cells in a regime; for an explanation also what might help."""
    found = dict.fromkeys(asked.options)
    for each in asked.options if asked.explain and not explainable.refusal(selected) else []:
        other_jit = backends.get(backend).OTHER_JIT
        if each.jit is None and other_jit is not None:
            found[dataclasses.replace(each, jit=other_jit)] = None
        if each.batch is None:
            found[dataclasses.replace(each, batch=LARGER_BATCH * selected.regime.batch)] = None
    return list(found)


def differing_keras(probes: dict[str, ProbeReport | Failure]) -> list[str]:
    """Say so where backends have different versions of keras: their columns then differ by more than the backend."""
    reports = [report for report in probes.values() if isinstance(report, ProbeReport)]
    found = {report.backend: report.versions.get("keras", "") for report in reports}
    if len(set(found.values())) < 2:
        return []
    versions = ", ".join(f"{name} has {version}" for name, version in found.items())
    return [f"keras differs: {versions}; what is compared is not the backend alone"]


def _refused(asked: Asked, cell: Cell) -> Failure | None:
    """Return why a cell whose device is there is not measured, None where it is."""
    failure = explainable.refusal(cell.selected) if asked.explain else None
    return failure or unsupported(cell)


def unsupported(cell: Cell) -> Failure | None:
    """Return why a cell's options mean nothing on its device, None where they do."""
    device, options = cell.device, cell.options
    if options.native and (failure := _without_twin(cell)) is not None:
        return failure
    if options.fp32 == "tf32" and device.platform != "cuda":
        cause = f"TF32 is a mode of NVIDIA GPUs, not of {device.platform}"
        return Failure(Code.UNSUPPORTED, cause, "leave --fp32 tf32 out for this device")
    if options.dtype == "float64" and device.platform in APPLE:
        return Failure(Code.UNSUPPORTED, "the Apple GPU knows no float64", "--device cpu measures float64")
    if options.jit and device.platform == "metal" and cell.backend == "tensorflow":
        return Failure(Code.UNSUPPORTED, "XLA does not compile for Metal", "--device cpu measures it compiled")
    if options.threads is not None and options.threads > processors():
        cause = f"{options.threads} threads were asked for, {processors()} processors are there"
        return Failure(Code.UNSUPPORTED, cause, f"--threads 1 to {processors()}")
    return None


def _has_twin(selected: Selected, backend: str) -> bool:
    """Tell whether a regime has a twin for a backend."""
    return not selected.regime.keras_only and backend in selected.entry.twins


def _without_twin(cell: Cell) -> Failure | None:
    """Return why there is no native twin of a cell, None where there is one."""
    entry, regime, options = cell.selected.entry, cell.selected.regime, cell.options
    if regime.keras_only:
        cause = f"{cell.selected.label} has {regime.keras_only}, which no twin without Keras has"
        return Failure(Code.UNSUPPORTED, cause, "leave --native out for this scenario")
    if cell.backend not in entry.twins:
        remedy = f"docs/scenarios.md says how to write native/{entry.name}_{cell.backend}.py"
        return Failure(Code.UNSUPPORTED, f"{entry.name} has no twin in plain {cell.backend}", remedy)
    if options.jit is not None or options.dtype not in (None, "float32"):
        cause = "a twin is compiled as its framework does by default, and computes in float32"
        return Failure(Code.UNSUPPORTED, cause, "leave --jit and --dtype out with --native")
    return None


def options_of(
    jit: Sequence[str], dtype: Sequence[str], fp32: Sequence[str], threads: Sequence[str], native: bool = False
) -> list[Options]:
    """Cross what the options name; an empty list means the default; ``native`` adds the twin of each.

    Raises:
        UsageError: a value is unknown.
    """
    for what, given, known in (("--jit", jit, JIT), ("--dtype", dtype, DTYPES), ("--fp32", fp32, get_args(Fp32))):
        for value in given:
            if value not in known:
                raise unknown(f"value of {what}", value, known)
    for value in threads:
        if not value.isdecimal() or int(value) < 1:
            raise UsageError(f"--threads takes whole numbers from 1 on, not {value!r}")
    policies: list[str | None] = [*dtype] or [None]
    counts: list[int | None] = [int(value) for value in threads] or [None]
    crossed = itertools.product(jit or ["default"], policies, fp32 or ["ieee"], counts)
    made = [Options(JIT[a], b, cast("Fp32", c), d) for a, b, c, d in crossed]
    twins = [dataclasses.replace(one, native=True) for one in made] if native else []
    return list(dict.fromkeys([*made, *twins]))


def parse_duration_s(text: str) -> float:
    """Return ``90``, ``90s``, ``10m`` or ``1.5h`` in seconds; raise UsageError for anything else."""
    found = DURATION.fullmatch(text.strip())
    if found is None or float(found["number"]) <= 0:
        raise UsageError(f"not a duration: {text!r}; say 90s, 10m or 1.5h")
    return float(found["number"]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found["unit"]]


def _stand_in(label: str) -> Device:
    kind, index = parse_label(label)
    return Device(kind, index)


def _missing(label: str, report: ProbeReport | Failure) -> Failure:
    if isinstance(report, Failure):
        return Failure(Code.UNAVAILABLE, report.cause, report.remedy, "import", report.detail)
    return Failure(Code.UNAVAILABLE, f"{describe_probe(report)}, not {label}", DOCTOR)


def _nothing_there(probes: dict[str, ProbeReport | Failure], devices: Sequence[str]) -> str:
    asked = f"no device {' or '.join(devices)}" if devices else "no backend"
    lines = [f"there is {asked} to measure on:"]
    for backend, report in probes.items():
        if isinstance(report, Failure):
            lines.append(f"  {backend}: {report.cause}\n    {report.remedy}")
        else:
            lines.append(f"  {describe_probe(report)}")
    return "\n".join([*lines, DOCTOR])


def describe_probe(report: ProbeReport) -> str:
    """Return ``torch 2.13.0+cpu sees cpu``."""
    version = report.versions.get(report.backend, "")
    seen = ", ".join(f"{device.label} ({device.title})" if device.title else device.label for device in report.devices)
    return f"{report.backend} {version} sees {seen}"


def typical_trial_s(cell: Cell, protocol: Protocol) -> float:
    """Guess a trial's duration before any has been timed."""
    if protocol.kind == "sweep":
        return TYPICAL_SWEEP_TRIAL_S
    regime = cell.selected.regime
    each_epoch_s = TYPICAL_EPOCH_S + TYPICAL_STEP_S * regime.steps
    return TYPICAL_TRIAL_S + (regime.epochs * each_epoch_s if protocol.kind == "published" else 0)


def order(cells: Sequence[Cell], seed: int, round_index: int) -> list[Cell]:
    """Return the cells in this round's random order: scenarios permuted, then the cells inside each.

    Cells of one scenario, and in a sweep those of one size, stay together, because they are what is compared: drift
    between them must be small.
    """
    rng = random.Random(f"{seed}/{round_index}")
    groups: dict[tuple[str, str, Size | None], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((*cell.key[:2], cell.options.size), []).append(cell)
    together = list(groups.values())
    rng.shuffle(together)
    return [cell for group in together for cell in rng.sample(group, len(group))]


def larger_in_series(cell: Cell, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that differ from a cell of a sweep in nothing but a larger size."""
    return [
        one
        for one in cells
        if one.options.size is not None
        and cell.options.size is not None
        and one.options.size.exceeds(cell.options.size)
        and (*one.key[:4], one.options.terms) == (*cell.key[:4], cell.options.terms)
    ]


def effort_of(
    quick: bool, count: int | None, rigorous: bool, kind: ProtocolKind = "steady", budget_s: float | None = None
) -> Effort:
    """Return the effort that the options ask for; raise UsageError where they mean nothing or exclude each other."""
    if quick + (count is not None) + rigorous > 1:
        raise UsageError("--quick, --rounds and --rigorous exclude each other: give one of them")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise UsageError(f"--rounds takes a whole number from 1 on, not {count}")
    if quick and kind == "published":
        raise UsageError("--protocol published runs every epoch: it cannot be --quick; choose fewer with --scenario")
    standard = PUBLISHED if kind == "published" else QUICK if quick else DEFAULT
    if kind == "sweep":
        standard = dataclasses.replace(standard, protocol=SWEEP)
    if rigorous or count is not None:
        standard = exactly(RIGOROUS_ROUNDS if count is None else count, standard.protocol)
    return dataclasses.replace(standard, budget_s=budget_s)
