"""What a user asks for, as it stands in the result file: scenarios, backends, devices, options, effort."""

from dataclasses import dataclass, field

from kerasbench.exchange.given import NOTHING, Given
from kerasbench.exchange.options import DEFAULT as DEFAULT_OPTIONS
from kerasbench.exchange.options import Options
from kerasbench.exchange.requests import DataKind, Protocol
from kerasbench.quiet.gate import PATIENCE_S, QUICK_PATIENCE_S

SECOND_NS = 1_000_000_000
MIN_ROUNDS, MAX_ROUNDS, RIGOROUS_ROUNDS = 3, 12, 12  # three bouts are the fewest that carry an interval


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
        slices_max_ns=5 * SECOND_NS // 2,
    ),
    gate_s=QUICK_PATIENCE_S,
)
# A trial of a sweep is one of dozens: it measures steps alone, in half the time, and its rounds make up for it.
SWEEP = Protocol(
    kind="sweep",
    block_ns=SECOND_NS // 20,
    warmup_min_ns=SECOND_NS // 2,
    warmup_max_ns=3 * SECOND_NS,
    slices_max_ns=4 * SECOND_NS,
)
DEFAULT = Effort()


def exactly(count: int, protocol: Protocol | None = None) -> Effort:
    """Return the effort of exactly that many rounds."""
    return Effort(count, count, protocol=protocol or Protocol())


@dataclass(frozen=True)
class Asked:
    """What a user asks for. Empty lists mean everything; None is the default limit of time, and no limit of memory.

    ``suite`` is measured where no scenarios are named.
    ``refine``: a sweep measures two more sizes where one series overtakes another, once its rounds are over.
    ``explain``: measure what a step is made of too, and each cell once more with a larger batch and the other jit.
    ``keep_env``: variables of the shell that are let in to every child, with their values. ``control``: measure one
    column of each row twice. ``environments``: whom the columns are for, ``torch`` or ``torch@LABEL``, where one has a
    label; empty where none has. ``versus``: the labels of base and head, which are compared with each other alone, and
    ``threshold`` the smallest share by which they differ that is called a difference. ``given`` is what is said of
    models that are no scenario files.
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
    control: bool = False
    environments: list[str] = field(default_factory=list)
    versus: list[str] = field(default_factory=list)
    threshold: float = 0.0
    given: Given = NOTHING
    suite: str = "published"


@dataclass(frozen=True)
class Resumed:
    """Asks for no new run, but for the rest of one; for ``more_s`` from now on, else for what its budget leaves.

    ``scenarios`` and ``given`` name again what of one's own it executes: a result file may be anybody's.
    """

    more_s: float | None = None
    scenarios: list[str] = field(default_factory=list)
    given: Given = NOTHING


@dataclass(frozen=True)
class Counted:
    """The floating-point operations that a training step of a regime takes for each sample, as torch counts them."""

    scenario: str
    regime: str
    operations: float
