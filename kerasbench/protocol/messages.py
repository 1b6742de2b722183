"""What a child says to its parent: JSON lines, each a message; times are ns of the system's ``time.monotonic_ns``."""

import json
import signal
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.protocol.columns import Device
from kerasbench.protocol.descriptions import Description
from kerasbench.protocol.measurement import Exported, Measurement, Slice

EXIT_PIPE_LOST = 203  # a child's status when its pipe was taken from it; no program leaves with it by custom
WRITE_STACKS = signal.SIGUSR2  # a child that gets it writes to stderr where each of its threads is
STOPPED = "Stopped at its time limit"  # the line before them
FIRST_STEP, FIRST_PREDICTION, FIRST_CALL = COMPILES = ("first step", "first prediction", "first call")
FIND = "find"  # the phase of a probe in which it turns out whether a backend is installed at all


OUTPACED = 10  # times as long as another column: whatever it would be exactly, nobody chooses it


class Code(StrEnum):
    """Why a case has no number."""

    UNAVAILABLE = "unavailable"  # the backend or the device is not there
    UNSUPPORTED = "unsupported"  # the backend cannot do this on that device
    OOM = "oom"  # memory ran out
    SLOW = "slow"  # so much slower than another one that a quick look left it out: an answer, and no failure
    TIMEOUT = "timeout"  # the child was stopped at its time limit
    CRASH = "crash"  # the child died from a signal or left without a word
    WRONG_DEVICE = "wrong-device"  # it ran, but not where it was asked to
    NONFINITE = "nonfinite"  # a loss that is not a number
    PARITY = "parity"  # it computed something else than the other backends
    INVALID = "invalid"  # the scenario file cannot be used, or the child broke the protocol
    ERROR = "error"  # the scenario or the backend raised an exception


@dataclass(frozen=True)
class Phase:
    """One span of a trial, by the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int
    waited_ns: int = 0  # what of it went by while other columns had their turns
    peak_rss_bytes: int | None = None  # the most memory that the process has held up to its end
    peak_device_bytes: int | None = None  # the same of the device's, where the backend counts it
    stage: str = ""  # that was measured in it, where several have phases of the same name
    rss_bytes: int | None = None  # that the process held at its end
    most_rss_bytes: int | None = None  # in it; None: the system tells the peak of the whole process alone
    device_bytes: int | None = None
    most_device_bytes: int | None = None

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns - self.waited_ns


@dataclass(frozen=True)
class Failure:
    code: Code
    cause: str  # one line
    remedy: str  # one line
    phase: str = ""
    detail: str = ""  # the last lines of the child
    own_limit: bool = False  # it passed a limit that was set for it alone, whatever the machine had left


class TrialFailure(Exception):
    """Raised inside a child where the cause is known, carrying the failure to report."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


@dataclass(frozen=True)
class ProbeReport:
    backend: str
    python: str
    versions: dict[str, str]
    devices: list[Device]


@dataclass(frozen=True)
class Inventory:
    python: str
    prefix: str
    architecture: str
    packages: dict[str, str]  # versions by normalised name


@dataclass(frozen=True)
class Message:
    """One line on the pipe: exactly one of its fields is set. After the first two, a child waits for its next turn."""

    ready: str | None = None  # the stage (``protocol.stages``) whose slices it can measure now
    slice: Slice | None = None  # one that it has measured: to decide when there are enough
    phase: Phase | None = None  # one that is over
    begun: str | None = None  # the name of the next phase
    measurement: Measurement | None = None
    exported: Exported | None = None
    failure: Failure | None = None
    descriptions: list[Description] | None = None
    fetched: str | None = None
    counted: float | None = None
    suspected: dict[str, str] | None = None  # causes; why each cannot be tried, empty where it can
    probe: ProbeReport | None = None
    inventory: Inventory | None = None

    def encode(self) -> bytes:
        """Return the JSON line; raise ValueError for a number that JSON does not know (NaN, infinity)."""
        fields = {kind: value for kind, value in vars(self).items() if value is not None}
        line = json.dumps(fields, default=vars, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return line.encode("utf-8", "replace") + b"\n"  # a file name that is no text has lone surrogates, JSON has none
