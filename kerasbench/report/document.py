"""What ``--json`` prints, a contract: a field may be added; one that changes its meaning, or goes, raises SCHEMA."""

from typing import Any

import msgspec
from msgspec import Struct

from kerasbench.analysis.estimates import Interval, Verdict

SCHEMA = 1


class Configuration(Struct, frozen=True):
    """What a workload is measured on."""

    backend: str
    device: str  # cpu, gpu or gpu:1
    options: dict[str, bool | int | float | str]  # those that are set, by the names that result files have


class OfCase(Struct, frozen=True, kw_only=True):
    """A workload on a configuration."""

    scenario: str
    workload: str  # its name in the scenario: default, where it is the only one
    batch_size: int | None  # as a sweep sets it
    width: float | None  # a factor on hidden layers, as a sweep sets it
    configuration: Configuration


class Result(OfCase, frozen=True, kw_only=True):
    """A number of a case."""

    metric: str  # its name says the unit: train_step_ms
    unit: str  # ms, s, /s, MiB, %, FLOP/s, or empty: a loss, an accuracy, a share
    value: float
    low: float | None  # of the 95 % interval; null where too little was measured for one
    high: float | None
    trials: int  # processes, or of `compare` runs, that it is of
    sessions: int | None  # in which these were measured
    side: str = ""  # of `compare`: the results that it is from
    keras: str = ""  # versions
    backend_version: str = ""


class Ratio(OfCase, frozen=True, kw_only=True):
    """How many times as much the configuration takes as another one."""

    over: Configuration  # the other one; of `compare` the same, in the older results
    metric: str  # what it takes: time, or memory; of a rate, such as samples per second, the time for each sample
    takes_times_as_much: float  # 2.0: twice as long, or twice the memory
    low: float | None  # of its 95 % interval
    high: float | None
    verdict: Verdict | None  # of the configuration: slower where it takes more; null where none was to be had
    why_no_verdict: str = ""  # of `compare`
    disturbed: bool  # other programs used so much of the machine that it decides nothing
    rounds: int  # in which both were measured; of `compare` runs
    is_control: bool = False  # nothing differs that could make a difference: it should be 1
    dropped: bool = False  # of `fastest`: it was too slow, and left the race


class Winner(OfCase, frozen=True, kw_only=True):
    """The configuration that is fastest on a workload."""

    metric: str
    clearly: bool  # proven: all others are slower; of `fastest` none can be faster by more than --within
    to_use_it: list[str] = []  # of `fastest`: lines for a shell and a script
    without_settings: Configuration | None = None  # of `fastest`: what Keras takes by default


class CaseFact(OfCase, frozen=True, kw_only=True):
    """Which code ran, and what is like it: read from the backend, not timed."""

    fact: str  # attention, compiled, convolution, executions, products, quantised, recurrent
    value: str  # in words; none: the model has no such part; or not known


class CaseDifference(CaseFact, frozen=True, kw_only=True):
    """A fact that two versions differ in, of `versus` and `compare`: in the newer one."""

    before: str  # in the older one


class FailedCase(OfCase, frozen=True, kw_only=True):
    """A case that has no result."""

    code: str
    cause: str
    remedy: str
    phase: str


class UsageWarning(Struct, frozen=True, kw_only=True):
    """What to know before a number is used."""

    kind: str
    scenario: str | None  # null, with workload: of all
    workload: str | None
    batch_size: int | None
    width: float | None
    configurations: list[Configuration]  # empty: all of the workload
    meaning: str
    detail: str
    remedy: str


class Crossing(Struct, frozen=True, kw_only=True):
    """Where one configuration overtakes another as a size grows."""

    scenario: str
    workload: str
    axis: str  # batch or width
    faster_above: Configuration
    faster_below: Configuration
    at: float
    low: float | None  # of its 95 % interval
    high: float | None


class CaseAdvice(OfCase, frozen=True, kw_only=True):
    """What would make a case faster, as `explain` has measured it."""

    what: str  # a larger batch, jit, another device, or prepared data
    instead: Configuration
    instead_batch_size: int | None  # of a larger batch
    takes_times_as_much: float  # 0.5: half of the time for the same work
    low: float | None
    high: float | None


class TriedCause(OfCase, frozen=True, kw_only=True):
    """What may make a case slow, as `explain` has tried it."""

    cause: str
    says: str  # what is slow, in a sentence
    outcome: str  # found, no cause, undecided, refused (it computes something else), or not tried
    of: str  # step or prediction
    takes_times_as_much: float | None = None  # without the cause: 0.5 is half of the time; null where it has no ratio
    low: float | None = None
    high: float | None = None
    why: str = ""  # it was refused, or not tried
    upstream: str = ""  # who takes it away
    today: str = ""  # what you can do about it
    to_write: str = ""  # a line that takes it away


class Trend(OfCase, frozen=True, kw_only=True):
    """What became of a case while it went on for minutes. A unit is a step, an epoch or a prediction."""

    minutes: float
    unit: str
    units: int
    unit_ms: float
    memory_grows: bool
    memory_bytes_per_unit: Interval | None
    device_memory_bytes_per_unit: Interval | None  # null where the device does not tell
    becomes_slower: bool
    slower_share: Interval | None  # 0.1: a unit takes 10 % longer at the end


class HistoricRatio(Ratio, frozen=True, kw_only=True):
    """A ratio in one of several runs."""

    started: str
    commit: str  # of the checkout that the run was started in
    versions: dict[str, str]
    machine: str  # where there are several


class ProbedVersion(Struct, frozen=True, kw_only=True):
    """A version that `bisect` measured beside the first."""

    version: str
    takes_times_as_much: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    why_no_verdict: str
    control: Interval | None  # the first version over itself: it should be 1


class Search(Struct, frozen=True, kw_only=True):
    """How `bisect` ended."""

    outcome: str  # found, none or undecided
    versions: list[str]  # from good to bad
    last_fast: str | None  # of what is known
    first_slow: str | None  # where it is found
    case: OfCase | None  # that was followed; its configuration without a version
    tried: list[ProbedVersion]


class MachineData(Struct, frozen=True, kw_only=True):
    """Where it was measured."""

    chip: str
    cores: int  # logical CPUs
    memory_bytes: int
    gpus: list[str]
    system: str
    identifier: str  # of this one among machines of equal parts; empty where nothing tells


class RunFacts(Struct, frozen=True, kw_only=True):
    """One run: what `kerasbench` measured from its start to its end."""

    started: str
    finished: str
    rounds: int  # complete ones
    stopped_because: str
    kerasbench: str
    commit: str
    result_file: str | None = None


class Document(Struct, frozen=True, kw_only=True):
    """What --json prints. Each list is there, and empty where a command has none."""

    schema: int = SCHEMA
    command: str = ""
    machine: MachineData | None = None
    runs: list[RunFacts] = []
    fastest: list[Winner] = []
    results: list[Result] = []
    ratios: list[Ratio] = []
    facts: list[CaseFact] = []
    differences: list[CaseDifference] = []
    failures: list[FailedCase] = []
    warnings: list[UsageWarning] = []
    crossovers: list[Crossing] = []
    advice: list[CaseAdvice] = []
    causes: list[TriedCause] = []
    trends: list[Trend] = []
    history: list[HistoricRatio] = []
    search: Search | None = None

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def add(self, other: "Document") -> None:
        for name, entries in msgspec.structs.asdict(self).items():
            if isinstance(entries, list):
                entries.extend(getattr(other, name))
