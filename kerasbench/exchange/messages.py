"""What a child says to its parent: JSON lines, each one message.

The child builds these from standard-library types; the parent validates every line against them. Times are
nanoseconds of the system-wide monotonic clock (``time.monotonic_ns``), so that both processes read the same one.
"""

import dataclasses
import json
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.exchange.descriptions import Description
from kerasbench.exchange.devices import Device
from kerasbench.exchange.measurement import Block, Measurement

EXIT_PIPE_LOST = 203  # a child's status when its pipe was taken from it; no program leaves with it by custom
FIND = "find"  # the phase of a probe in which it turns out whether a backend is installed at all


class Code(StrEnum):
    """Why a cell has no number."""

    UNAVAILABLE = "unavailable"  # the backend or the device is not there
    UNSUPPORTED = "unsupported"  # the backend cannot do this on that device
    OOM = "oom"  # memory ran out
    TIMEOUT = "timeout"  # the child was stopped at its time limit
    CRASH = "crash"  # the child died from a signal or left without a word
    WRONG_DEVICE = "wrong-device"  # it ran, but not where it was asked to
    NONFINITE = "nonfinite"  # a loss that is not a number
    PARITY = "parity"  # it computed something else than the other backends
    INVALID = "invalid"  # the scenario file cannot be used, or the child broke the protocol
    ERROR = "error"  # the scenario or the backend raised an exception


@dataclass(frozen=True)
class Phase:
    """One span of a trial. ``start_ns`` and ``end_ns`` are readings of the monotonic clock.

    ``waited_ns`` of it went by while other columns had their turns.
    """

    name: str
    start_ns: int
    end_ns: int
    waited_ns: int = 0

    @property
    def duration_ns(self) -> int:
        """How long it took, without the turns of others."""
        return self.end_ns - self.start_ns - self.waited_ns


@dataclass(frozen=True)
class Failure:
    """Why there is no measurement: a code, one line each of cause and remedy, and what the child said last.

    ``own_limit``: it passed a limit that was set for it alone, whatever the machine had left.
    """

    code: Code
    cause: str
    remedy: str
    phase: str = ""
    detail: str = ""
    own_limit: bool = False


@dataclass(frozen=True)
class ProbeReport:
    """What a backend said when it was imported."""

    backend: str
    python: str
    versions: dict[str, str]
    devices: list[Device]


@dataclass(frozen=True)
class Inventory:
    """What an interpreter is and has installed. ``packages`` has versions by normalised name.

    ``tags`` say for which interpreters and systems the backend's own wheel was built.
    """

    python: str
    prefix: str
    architecture: str
    packages: dict[str, str]
    tags: list[str]


@dataclass(frozen=True)
class Message:
    """One line on the pipe: exactly one of its fields is set.

    ``ready`` names the stage (``turns.STAGES``) whose slices a child can measure now; ``slice`` is one that it has
    measured. After each of the two it waits for its next turn.
    """

    ready: str | None = None
    slice: Block | None = None
    phase: Phase | None = None
    begun: str | None = None
    measurement: Measurement | None = None
    failure: Failure | None = None
    descriptions: list[Description] | None = None
    fetched: str | None = None
    counted: float | None = None
    probe: ProbeReport | None = None
    inventory: Inventory | None = None

    def encode(self) -> bytes:
        """Return the JSON line; raise ValueError for a number that JSON does not know (NaN, infinity)."""
        said = {kind: value for kind, value in dataclasses.asdict(self).items() if value is not None}
        line = json.dumps(said, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return line.encode("utf-8", "replace") + b"\n"  # a file name that is no text has lone surrogates, JSON has none
