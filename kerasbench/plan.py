"""What will be measured, and in which order (pure)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast, get_args

from kerasbench.catalog import Selected
from kerasbench.devices import Device, parse_label
from kerasbench.errors import MissingBackend, UsageError, unknown
from kerasbench.wire import Code, DataKind, Failure, ProbeReport, Protocol, ProtocolKind

SECOND_NS = 1_000_000_000
MIN_ROUNDS, MAX_ROUNDS, RIGOROUS_ROUNDS = 3, 5, 10  # three trials are the fewest that carry an interval
# On 2 cores; only until the first trials have been timed.
TYPICAL_TRIAL_S, TYPICAL_STEP_S, TYPICAL_EPOCH_S = 9.0, 0.002, 0.01


@dataclass(frozen=True)
class Effort:
    """How many rounds, and how much each trial measures."""

    min_rounds: int = MIN_ROUNDS
    max_rounds: int = MAX_ROUNDS
    protocol: Protocol = field(default_factory=Protocol)


PUBLISHED = Effort(1, 1, Protocol(kind="published"))
QUICK = Effort(1, 1, Protocol(warmup_max_ns=3 * SECOND_NS, measure_max_ns=4 * SECOND_NS, predict_max_ns=SECOND_NS))
DEFAULT = Effort()


def exactly(count: int, protocol: Protocol | None = None) -> Effort:
    """Return the effort of exactly that many rounds."""
    return Effort(count, count, protocol or Protocol())


@dataclass(frozen=True)
class Cell:
    """A scenario's regime on one backend and one device."""

    selected: Selected
    backend: str
    device: Device

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Scenario, regime, backend and device label, which tell a cell from all others of a run."""
        return (self.selected.entry.name, self.selected.regime.name, self.backend, self.device.label)

    @property
    def label(self) -> str:
        return f"{self.selected.label} {self.backend} {self.device.label}"


@dataclass(frozen=True)
class Plan:
    """The cells of a run, and those that cannot be measured, each with its reason."""

    cells: list[Cell]
    absent: list[tuple[Cell, Failure]]
    effort: Effort
    seed: int
    data: DataKind = "synthetic"


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


def parse_protocol(name: str) -> ProtocolKind:
    """Return the kind of protocol; raise UsageError for an unknown one."""
    if name not in get_args(ProtocolKind):
        raise unknown("protocol", name, get_args(ProtocolKind))
    return cast("ProtocolKind", name)


def make(
    scenarios: Sequence[Selected],
    probes: dict[str, ProbeReport | Failure],
    devices: Sequence[str],
    hints: dict[str, str],
    effort: Effort,
    seed: int,
    data: DataKind,
    backends_were_named: bool,
) -> Plan:
    """Cross scenarios, backends and devices.

    Without ``devices``, every device that a backend sees. A backend that is missing is left out, unless it was named.
    ``hints`` say, per backend, how its missing devices are brought back.

    Raises:
        MissingBackend: nothing that was asked for is there; the message says what each backend saw.
    """
    cells: list[Cell] = []
    absent: list[tuple[Cell, Failure]] = []
    for backend, report in probes.items():
        if isinstance(report, Failure) and not backends_were_named:
            continue
        seen = [] if isinstance(report, Failure) else report.devices
        for label in devices or [device.label for device in seen] or ["cpu"]:
            device = next((device for device in seen if device.label == label), None)
            here = [Cell(one, backend, device or _stand_in(label)) for one in scenarios]
            if device is not None:
                cells += here
            else:
                failure = _missing(backend, label, report, hints[backend])
                absent += [(cell, failure) for cell in here]
    if not cells:
        raise MissingBackend(_nothing_there(probes, devices, hints))
    return Plan(cells, absent, effort, seed, data)


def _stand_in(label: str) -> Device:
    kind, index = parse_label(label)
    return Device(kind, index)


def _missing(backend: str, label: str, report: ProbeReport | Failure, hint: str) -> Failure:
    if isinstance(report, Failure):
        return Failure(Code.UNAVAILABLE, report.cause, report.remedy, "import", report.detail)
    return Failure(Code.UNAVAILABLE, f"{describe_probe(report)}, not {label}", hint)


def _nothing_there(probes: dict[str, ProbeReport | Failure], devices: Sequence[str], hints: dict[str, str]) -> str:
    asked = f"no device {' or '.join(devices)}" if devices else "no backend"
    lines = [f"there is {asked} to measure on:"]
    for backend, report in probes.items():
        if isinstance(report, Failure):
            lines.append(f"  {backend}: {report.cause}\n    {report.remedy}")
        else:
            lines.append(f"  {describe_probe(report)}\n    {hints[backend]}")
    return "\n".join(lines)


def describe_probe(report: ProbeReport) -> str:
    """Return ``torch 2.13.0+cpu sees cpu``."""
    version = report.versions.get(report.backend, "")
    seen = ", ".join(f"{device.label} ({device.name})" if device.name else device.label for device in report.devices)
    return f"{report.backend} {version} sees {seen}"


def typical_trial_s(cell: Cell, protocol: Protocol) -> float:
    """Guess a trial's duration before any has been timed."""
    regime = cell.selected.regime
    each_epoch_s = TYPICAL_EPOCH_S + TYPICAL_STEP_S * regime.steps
    return TYPICAL_TRIAL_S + (regime.epochs * each_epoch_s if protocol.kind == "published" else 0)


def order(cells: Sequence[Cell], seed: int, round_index: int) -> list[Cell]:
    """Return the cells in this round's random order: scenarios permuted, then the cells inside each.

    Cells of one scenario stay together, because they are what is compared: drift between them must be small.
    """
    rng = random.Random(f"{seed}/{round_index}")
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.key[:2], []).append(cell)
    together = list(groups.values())
    rng.shuffle(together)
    return [cell for group in together for cell in rng.sample(group, len(group))]


def effort_of(quick: bool, count: int | None, rigorous: bool, kind: ProtocolKind = "steady") -> Effort:
    """Return the effort that the options ask for; raise UsageError where they contradict each other."""
    if quick + (count is not None) + rigorous > 1:
        raise UsageError("--quick, --rounds and --rigorous exclude each other: give one of them")
    if quick and kind == "published":
        raise UsageError("--protocol published runs every epoch: it cannot be --quick; choose fewer with --scenario")
    if quick:
        return QUICK
    standard = PUBLISHED if kind == "published" else DEFAULT
    if rigorous or count is not None:
        return exactly(count or RIGOROUS_ROUNDS, standard.protocol)
    return standard
