"""The result file: what was asked for, and everything that was measured, raw. Tables are derived from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from kerasbench import __version__, variants
from kerasbench.host import Machine
from kerasbench.host.load import LoadLimit
from kerasbench.host.noise import Signal, Surroundings
from kerasbench.protocol.columns import CaseKey, Column, Device, Options
from kerasbench.protocol.descriptions import Description
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Failure, Phase
from kerasbench.protocol.requests import NOTHING, DataKind, ModelConfig, TrialKind, TrialPlan
from kerasbench.protocol.stages import AGENDAS, ALL, BATCH, Agenda
from kerasbench.settings import RUN

SECOND_NS = 1_000_000_000
MAX_COLUMNS = 256  # of a run: eight cards on three backends have 170 settings to try; drawing 280 takes ten seconds
MIN_ROUNDS, MAX_ROUNDS, RIGOROUS_ROUNDS = 3, 12, 12  # three blocks are the fewest that carry an interval


@dataclass(frozen=True)
class Effort:
    """How many rounds, and how much each trial measures."""

    min_rounds: int = MIN_ROUNDS
    max_rounds: int = MAX_ROUNDS
    aim: float = 0.05  # half-width of the printed intervals, at which rounds may end
    budget_s: float | None = None  # how long it may take in all
    cold: bool = True  # start children one after another, for cold figures; else side by side where that can be
    plan: TrialPlan = field(default_factory=TrialPlan)


PUBLISHED = Effort(1, 1, plan=TrialPlan().of_kind("published"))
# Children that warm up side by side never get steady: how long they do so is what settles them.
QUICK = Effort(
    1,
    1,
    cold=False,
    plan=TrialPlan(
        slice_ns=SECOND_NS // 20,
        warmup_min_ns=SECOND_NS // 2,
        warmup_max_ns=6 * SECOND_NS // 5,
        predict_warmup_ns=SECOND_NS // 20,
        slices_max_ns=5 * SECOND_NS // 2,
        column_max_ns=20 * SECOND_NS,
        repeats_first_step=False,
    ).leaving_out(BATCH, ALL),
)
# A trial of a sweep is one of dozens: it measures steps alone, in half the time, and its rounds make up for it.
SWEEP = TrialPlan(
    slice_ns=SECOND_NS // 20,
    warmup_min_ns=SECOND_NS // 2,
    warmup_max_ns=3 * SECOND_NS,
    slices_max_ns=4 * SECOND_NS,
    column_max_ns=60 * SECOND_NS,
).of_kind("sweep")
DEFAULT = Effort()


def exactly(count: int, plan: TrialPlan | None = None) -> Effort:
    return Effort(count, count, plan=plan or TrialPlan())


@dataclass(frozen=True)
class RunConfig:
    """What a user asks for. Empty lists mean everything."""

    scenarios: list[str] = field(default_factory=list)
    backends: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    options: list[Options] = field(default_factory=lambda: [Options()])
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    data: DataKind = "synthetic"
    timeout_s: float | None = None  # None: the default limit
    memory_limit_bytes: int | None = None
    keep_env: dict[str, str] = field(default_factory=dict)  # variables of the shell that every child gets
    control: bool = False  # measure one column of each row twice
    environments: list[str] = field(default_factory=list)  # of the columns, torch or torch@LABEL; empty: without labels
    model_config: ModelConfig = NOTHING  # for models that are no scenario files
    suite: str = "published"  # measured if no scenarios are named
    mode: str = RUN
    own: dict[str, Any] = field(default_factory=dict)  # what its mode alone was asked
    # What a run of its mode is like.
    paired: bool = False  # a column is measured beside its pair, not all: the other version, or one that rests
    ranks: bool = True  # its rows say who is fastest, column against column
    general: bool = True  # its rows may stand for a workload among other runs


@dataclass(frozen=True)
class ResumeConfig:
    """Asks for the rest of a run, and names again what of one's own is executed: a result file may be anybody's."""

    more_s: float | None = None  # for so long from now on; None: for what the run's budget leaves
    scenarios: list[str] = field(default_factory=list)
    model_config: ModelConfig = NOTHING
    options: list[Options] = field(default_factory=list)


@dataclass(frozen=True)
class OperationCount:
    """The floating-point operations that a training step of a workload takes for each sample, as torch counts them."""

    scenario: str
    workload: str
    operations: float


SCHEMA = 7  # of the files

# Why a run stopped, in place of a reason to stop.
INTERRUPTED, UNWRITTEN = "interrupted", "results could not be written"
BUDGET = "--budget"  # part of the reason of every run that ran out of time


@dataclass(frozen=True)
class ScenarioFacts:
    """What a scenario said of itself."""

    file_hash: str
    description: Description
    baselines: dict[str, str] = field(default_factory=dict)  # hashes of the files of its native baselines, by backend
    suite: str | None = None  # the built-in one that it is part of, empty for one's own; None: not recorded

    def source(self, column: Column) -> tuple[str, str]:
        baseline = self.baselines.get(column.backend, "") if variants.has(column.options, "replaces") else ""
        return self.file_hash, baseline


class Group(NamedTuple):
    """What a run measured together, and is taken from it as a whole: a workload, as published or at other sizes."""

    scenario: str
    workload: str
    sized: bool


@dataclass(frozen=True)
class Origin:
    """The run that a group was measured in."""

    config: RunConfig
    rounds: int  # that are complete
    started: str  # tells runs of one machine apart
    commit: str = ""  # of the user's checkout

    @property
    def agenda(self) -> Agenda:
        return self.config.effort.plan.agenda


@dataclass(frozen=True)
class Trial:
    """One trial of one case: its measurement or its failure."""

    round: int  # 0 for a case that could not be tried
    scenario: str
    workload: str
    backend: str
    device: Device
    wall_ns: int
    phases: list[Phase]
    measurement: Measurement | None = None
    failure: Failure | None = None
    options: Options = field(default_factory=Options)
    surroundings: Surroundings | None = None
    noise: list[Signal] = field(default_factory=list)  # what disturbed it, as its surroundings show
    protocol: TrialKind | None = None  # what it measured, or was to; None: not recorded
    block: int = 0  # from 1: trials of the same block were alive together, measured in turn; 0: of no block
    started_alone: bool = True  # nothing else ran while it started, so that its start-up and first step count
    crowded: bool = False  # it failed beside others as it may not alone: out of memory, or never measured on a GPU
    code: str = ""  # the hash of the code of kerasbench that measured it; empty: not recorded
    ended: str = ""  # when it ended; empty: not recorded
    session: int = 1  # another one if the run went on after an hour or more, or after the machine was started again

    @cached_property
    def case(self) -> CaseKey:
        return CaseKey(self.scenario, self.workload, self.column, self.options.size)

    @cached_property
    def column(self) -> Column:
        return Column(self.backend, self.device.label, self.options.unsized)

    @property
    def ends_case(self) -> bool:
        """Whether it failed so that its case would fail again."""
        return self.failure is not None and not self.crowded

    @property
    def group(self) -> Group:
        return Group(self.scenario, self.workload, self.options.size is not None)

    @property
    def agenda(self) -> Agenda:
        """What it measured, or was to; by its size where its file does not tell."""
        return AGENDAS[self.protocol or ("steady" if self.options.size is None else "sweep")]

    @property
    def own_ns(self) -> int:
        """How long it took, without the turns of the other columns of its block."""
        return self.wall_ns - sum(phase.waited_ns for phase in self.phases)

    @property
    def disturbed(self) -> bool:
        return any(signal.invalidates for signal in self.noise)


def completed_rounds(cases: Iterable[CaseKey], trials: Sequence[Trial], at_least: int = 0) -> int:
    """Return how many rounds have all cases that had not failed by then; ``at_least``: so many of the run are."""
    left, done = set(cases), 0
    while True:
        left -= {trial.case for trial in trials if trial.ends_case and trial.round <= done + 1}
        if at_least and done:  # what is missing in a complete round has left; later it may be an interruption
            least = done + 1 if done < at_least else done
            left &= {trial.case for trial in trials if trial.round >= least}
        ran = [trial for trial in trials if trial.round == done + 1 and not trial.crowded]
        if not any(trial.block or trial.measurement for trial in ran) or not left <= {trial.case for trial in ran}:
            return done
        done += 1


@dataclass(frozen=True)
class RemoteOrigin:
    """How the records of another machine came here."""

    host: str  # as it was asked for
    share: str  # what the folder is called in which it was measured there
    insecure: bool = False  # without encryption, as its user allowed


@dataclass
class Run:
    """A run: what was asked for, the machine, and every trial in the order in which it ran."""

    config: RunConfig
    machine: Machine
    started: str
    minimal_effect: float
    scenarios: list[ScenarioFacts]
    noise: list[Signal] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    rounds_completed: int = 0
    stopped_because: str = ""
    parent_cpu_ns: int = 0
    finished: str = ""
    kerasbench: str = __version__
    schema: int = SCHEMA
    flops: list[OperationCount] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)  # when it went on after each interruption
    cases: int = 0  # how many were planned; 0: not known
    commit: str = ""  # of the git checkout that the run was started in, or as KERASBENCH_COMMIT says
    carried: RemoteOrigin | None = None  # from another machine; None: measured by the one that wrote it
    load: LoadLimit | None = None  # from when on others disturbed a CPU column on all cores; None: not recorded

    @property
    def unfinished(self) -> bool:
        """Whether the run was ended before it had decided that there was enough."""
        return self.stopped_because in ("", INTERRUPTED, UNWRITTEN)

    @property
    def out_of_time(self) -> bool:
        return BUDGET in self.stopped_because

    def origin(self, group: Group) -> Origin:
        """Return the run that a group comes from: this one, unless it was merged of several."""
        return Origin(self.config, self.rounds_completed, self.started, self.commit)
