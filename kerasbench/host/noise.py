"""How quiet this machine is.

The gate: no trial begins before the machine is quiet, or before it has been waited for long enough.

What disturbs a measurement: each signal with its threshold, as pure functions over what was seen.

Every warning of kerasbench: what it means, and what to do about it. The only place that words them.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import psutil

from kerasbench.host import linux, macos
from kerasbench.host.nvidia import THERMAL_REASONS, Sample
from kerasbench.protocol.measurement import Measurement

SAMPLE_S = 0.3  # 60 ticks of the kernel's clock on two processors: the share of time to within 2 %


@dataclass(frozen=True)
class State:
    """A machine at one moment. None: it does not tell.

    ``busy_share`` is the part of all processors' time that was in use over the last moments; ``busy_s`` and
    ``steal_s`` count that time, and what a hypervisor kept for others, since the machine started. ``thermal_level``
    is macOS' own: 0 nominal, 1 moderate, 2 heavy. ``throttle_count`` counts since the start how often heat slowed a
    core down, ``quota_throttled`` how often the control group's quota stopped its processes.
    """

    at_ns: int
    busy_share: float
    load_per_core: float
    busy_s: float
    steal_s: float | None
    thermal_level: int | None
    on_battery: bool | None
    low_power: bool | None
    governors: list[str]
    throttle_count: int | None
    quota_throttled: int | None
    quota_cores: float | None


def observe(sample_s: float = SAMPLE_S) -> State:
    """Look at this machine for so many seconds."""
    busy_share = psutil.cpu_percent(interval=sample_s) / 100
    spent = psutil.cpu_times()
    apple = sys.platform == "darwin"
    return State(
        at_ns=time.monotonic_ns(),
        busy_share=busy_share,
        load_per_core=os.getloadavg()[0] / (psutil.cpu_count() or 1),
        busy_s=busy_seconds(spent._asdict()),
        steal_s=getattr(spent, "steal", None),
        thermal_level=macos.thermal_level() if apple else None,
        on_battery=macos.on_battery() if apple else linux.on_battery(),
        low_power=macos.low_power() if apple else None,
        governors=[] if apple else linux.governors(),
        throttle_count=None if apple else linux.throttle_count(),
        quota_throttled=None if apple else linux.quota_throttled(),
        quota_cores=None if apple else linux.quota_cores(),
    )


def booted_s() -> float:
    """Return when this machine was started, in s since 1970."""
    return psutil.boot_time()


def busy_seconds(times: dict[str, float]) -> float:
    """Return the time in use out of psutil's counters: all but idle, waiting for a disk, and stolen time.

    Linux counts a guest's time in ``user`` already.
    """
    idle = ("idle", "iowait", "steal", "guest", "guest_nice")
    return sum(seconds for name, seconds in times.items() if name not in idle)


BUSY_LIMIT = 0.15  # a desktop with an open browser idles at 5 to 10 %
CANARY_NS = 200_000_000
CANARY_TOLERANCE = 0.05
CANARY_MIN_READINGS = 3  # before that, the median says nothing
CANARY_SIDE = 1024  # 8 MiB of factors, so that the caches take part; 10 ms a product on two cores
RETRY_S = 1.0
PATIENCE_S = 10.0  # longer waits have hardly ever been rewarded, and slices taken in turn do not need quiet so much
IN_VAIN_S = 10.0  # of waiting that has not helped, in a whole run: from then on nothing is waited for but heat
QUICK_PATIENCE_S = 5.0  # where no interval is promised
HEAT_PATIENCE_S = 120.0  # a fanless laptop needs minutes to cool down
NOMINAL = 0

Canary = Callable[[], int]


@dataclass(frozen=True)
class GateResult:
    """How a gate was passed: after how long, with which canary; ``refused`` says why it was not, in time."""

    waited_s: float
    refused: str
    canary_ns: int


@dataclass
class Gate:
    """Wait for a quiet machine, for ``patience_s`` at most, and over a run for IN_VAIN_S where waiting has not helped.

    ``look`` reads its state, ``canary`` times a fixed product, in ns.
    """

    canary: Canary
    patience_s: float = PATIENCE_S
    look: Callable[[], State] = observe
    sleep: Callable[[float], None] = time.sleep
    clock_s: Callable[[], float] = time.monotonic
    _readings_ns: list[int] = field(default_factory=list)
    _in_vain_s: float = 0.0

    def wait(self, on_wait: Callable[[str], None] = lambda reason: None) -> GateResult:
        """Return as soon as nothing speaks against a block, or when patience is over."""
        began_s = self.clock_s()
        while True:
            state, canary_ns = self.look(), self.canary()
            reasons = refusals(state, canary_ns, self._readings_ns)
            waited_s = self.clock_s() - began_s
            is_hot = (state.thermal_level or NOMINAL) > NOMINAL
            patience_s = HEAT_PATIENCE_S if is_hot else min(self.patience_s, IN_VAIN_S - self._in_vain_s)
            if not reasons or waited_s >= patience_s:
                self._readings_ns.append(canary_ns)
                self._in_vain_s += waited_s if reasons and not is_hot else 0.0
                return GateResult(waited_s, "; ".join(reasons), canary_ns)
            on_wait("; ".join(reasons))
            self.sleep(RETRY_S)


def refusals(state: State, canary_ns: int, earlier_ns: Sequence[int]) -> list[str]:
    """Return what speaks against beginning a trial now: load, heat, a product slower or faster than usual.

    ``earlier_ns`` are the canary's readings before the other trials of the run.
    """
    reasons: list[str] = []
    if state.busy_share > BUSY_LIMIT:
        reasons.append(f"{state.busy_share:.0%} of the CPU in use")
    if (state.thermal_level or NOMINAL) > NOMINAL:
        reasons.append(f"thermal pressure level {state.thermal_level}")
    if len(earlier_ns) >= CANARY_MIN_READINGS:
        usual_ns = statistics.median(earlier_ns)
        if abs(canary_ns - usual_ns) > CANARY_TOLERANCE * usual_ns:
            reasons.append(f"a fixed product took {canary_ns / usual_ns:.2f} times as long as usual")
    return reasons


def product_canary() -> Canary:
    """Return a function that times as many NumPy products as take 0.2 s now; it does so each time.

    OpenBLAS would keep its threads spinning for 0.1 s after the last product, which is into the trial; it reads how
    long when it is loaded, so where NumPy was there before, in a notebook, they do spin.
    """
    with _set(OPENBLAS_THREAD_TIMEOUT="4"):
        import numpy as np

    factor = np.random.default_rng(0).standard_normal((CANARY_SIDE, CANARY_SIDE)).astype(np.float32)

    def timed(count: int) -> int:
        start_ns = time.perf_counter_ns()
        for _ in range(count):
            factor @ factor
        return time.perf_counter_ns() - start_ns

    timed(2)  # starts the threads
    count = max(1, round(CANARY_NS / (timed(5) / 5)))
    return lambda: timed(count)


@contextmanager
def _set(**variables: str) -> Iterator[None]:
    """Set environment variables meanwhile, but for those that the user has set."""
    mine = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]


# Others' share of all processors while a block runs. Busy neighbours hit the columns unequally (METHOD, fact 5: medians
# spread 1.4-fold on JAX, 29-fold on torch), so that taking turns does not cancel all of it.
OTHERS_WARN, OTHERS_INVALID = 0.05, 0.25
BUSY_BEFORE_WARN, BUSY_BEFORE_INVALID = 0.15, 0.50
LOAD_PER_CORE_WARN = 0.25
STEAL_WARN = 0.02  # of all processors' time: as much as the precision that a run aims at
SPREAD_WARN = 0.10  # interquartile range of a trial's slices over their median: the other columns had it too
SCATTER_WARN = 0.10  # coefficient of variation of a case's trials
SHARE_OF_OTHER_TRIALS = 0.9  # of the processors that the case's other trials had
THERMAL_WARN, THERMAL_INVALID = 1, 2  # macOS: moderate, heavy
CLOCK_SHARE_INVALID = 0.75  # of the highest SM clock that this run has seen on the card


class Severity(StrEnum):
    WARN = "warn"
    INVALID = "invalid"


@dataclass(frozen=True)
class Signal:
    """One sign of noise: its name, how bad it is, and the reason in words and figures."""

    name: str
    severity: Severity
    reason: str

    @property
    def invalidates(self) -> bool:
        return self.severity is Severity.INVALID


@dataclass(frozen=True)
class Surroundings:
    """What the parent saw around one trial: but for the GPU's, it is the same for all trials of a block.

    ``refused`` is why the gate was not passed when its time was up (empty: it was passed), ``canary_ns`` its last fixed
    product. ``child_cpu_s`` is what all children of the block used. ``gpu`` samples come once a second (None: the trial
    was not on an NVIDIA GPU), ``gpu_neighbours`` are processes that were on the card before, ``card`` is the UUID of
    the NVIDIA card that was asked for (empty: not told).
    """

    waited_s: float
    refused: str
    canary_ns: int
    before: State
    after: State
    child_cpu_s: float
    gpu: list[Sample] | None
    gpu_neighbours: list[int]
    card: str = ""


def of_machine(state: State, cores: int) -> list[Signal]:
    """Return what speaks against this machine before anything is measured."""
    return [
        *_load(state),
        *_when(state.on_battery is True, "power", "runs on battery"),
        *_when(state.low_power is True, "power", "low-power mode is on"),
        *_when(
            bool(state.governors) and state.governors != ["performance"],
            "governor",
            f"frequency governor {' and '.join(state.governors)}",
        ),
        *_when(
            state.quota_cores is not None and state.quota_cores < cores,
            "quota",
            f"a control group allows {state.quota_cores} of {cores} processors",
        ),
    ]


def of_surroundings(seen: Surroundings, cores: int, top_clock_mhz: int | None) -> list[Signal]:
    """Return what disturbed one trial, whatever became of it.

    ``cores`` are the machine's processors, ``top_clock_mhz`` the highest SM clock that the run has seen on the card.
    """
    return [
        *_when(bool(seen.refused), "gate", f"not quiet after {seen.waited_s:.0f} s: {seen.refused}"),
        *_graded(
            "others", others_share(seen, cores), OTHERS_WARN, OTHERS_INVALID, "other processes used {:.0%} of the CPU"
        ),
        *_hypervisor(seen, cores),
        *_heat(seen),
        *_gpu(seen, top_clock_mhz),
    ]


def of_measurement(measurement: Measurement, earlier: Sequence[Measurement]) -> list[Signal]:
    """Return what a trial's own readings show of a disturbance; ``earlier``: the case's undisturbed trials."""
    spreads = spread(measurement)
    return [
        *_when(spreads >= SPREAD_WARN, "spread", f"slices spread by {spreads:.0%} (quartiles)"),
        *_share(measurement, earlier),
    ]


def spread(measurement: Measurement) -> float:
    """Return the interquartile range of a trial's slices over their median; 0 for fewer than two slices."""
    each = [slice_.unit_ns for slice_ in measurement.slices]
    if len(each) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(each, n=4)
    return (high - low) / middle


def others_share(seen: Surroundings, cores: int) -> float:
    """Return the part of all processors' time that went to other processes than the block's children."""
    available_s = (seen.after.at_ns - seen.before.at_ns) / 1e9 * cores
    busy_s = seen.after.busy_s - seen.before.busy_s
    return max(0.0, (busy_s - seen.child_cpu_s) / available_s) if available_s > 0 else 0.0


def top_clock(samples: Sequence[Sample]) -> int | None:
    """Return the highest SM clock, which is that under load: a card idles between the phases of a trial."""
    return max((sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None), default=None)


def _load(state: State) -> Iterator[Signal]:
    yield from _graded("load", state.busy_share, BUSY_BEFORE_WARN, BUSY_BEFORE_INVALID, "{:.0%} of the CPU in use")
    if state.load_per_core > LOAD_PER_CORE_WARN:
        yield Signal("load", Severity.WARN, f"load average {state.load_per_core:.2f} per processor")


def _hypervisor(seen: Surroundings, cores: int) -> Iterator[Signal]:
    if seen.before.steal_s is None or seen.after.steal_s is None:
        return
    share = (seen.after.steal_s - seen.before.steal_s) / ((seen.after.at_ns - seen.before.at_ns) / 1e9 * cores)
    yield from _when(share > STEAL_WARN, "steal", f"the hypervisor kept {share:.0%} of the CPU")


def _heat(seen: Surroundings) -> Iterator[Signal]:
    level = max(seen.before.thermal_level or 0, seen.after.thermal_level or 0)
    yield from _graded("heat", level, THERMAL_WARN, THERMAL_INVALID, "thermal pressure level {}")
    throttled = _increase(seen.before.throttle_count, seen.after.throttle_count)
    yield from _when(throttled > 0, "heat", f"the CPU throttled {throttled} times")
    stopped = _increase(seen.before.quota_throttled, seen.after.quota_throttled)
    yield from _when(stopped > 0, "quota", f"the control group's quota stopped it {stopped} times")


def _share(measurement: Measurement, earlier: Sequence[Measurement]) -> Iterator[Signal]:
    if not earlier:
        return
    usual, got = statistics.median(one.usage.processors for one in earlier), measurement.usage.processors
    if got < SHARE_OF_OTHER_TRIALS * usual:
        yield Signal("share", Severity.WARN, f"{got:.2f} processors were busy for it, {usual:.2f} in other trials")


def _gpu(seen: Surroundings, top_clock_mhz: int | None) -> Iterator[Signal]:
    if seen.gpu is None:
        return
    yield from _when(not seen.gpu, "gpu", "the NVIDIA driver told nothing of the GPU while the trial ran")
    hot = sorted({reason for sample in seen.gpu for reason in sample.reasons} & THERMAL_REASONS)
    yield from _when(bool(hot), "gpu heat", f"the GPU slowed down: {', '.join(hot)}")
    yield from _when(bool(seen.gpu_neighbours), "gpu", f"{len(seen.gpu_neighbours)} other processes were on the GPU")
    clock = top_clock(seen.gpu)
    if clock is not None and top_clock_mhz is not None and clock < CLOCK_SHARE_INVALID * top_clock_mhz:
        yield Signal("gpu clock", Severity.INVALID, f"SM clock {clock} MHz, {top_clock_mhz} in other trials")


def _increase(before: int | None, after: int | None) -> int:
    return 0 if before is None or after is None else after - before


def _when(true: bool, name: str, reason: str) -> list[Signal]:
    return [Signal(name, Severity.WARN, reason)] if true else []


def _graded(name: str, value: float, warn: float, invalid: float, reason: str) -> list[Signal]:
    """Return a signal from ``warn`` on; for shares the threshold itself still passes as quiet."""
    if value < warn:
        return []
    return [Signal(name, Severity.INVALID if value >= invalid else Severity.WARN, reason.format(value))]


class Warned(StrEnum):
    """What can be wrong with a case or a row; the values of signals of noise are their names."""

    IDLE = "idle"
    DISTURBED = "disturbed"
    UNJUDGED = "unjudged"
    SCATTERED = "scattered"
    DEVIATES = "deviates"
    FALLBACK = "fallback"
    WAITED = "waited"
    SLICES = "slices"
    FEW = "few"
    CONTROL = "control"
    UNDECIDED = "undecided"
    SITTINGS = "sittings"
    APART = "apart"
    VERSIONS = "versions"
    POWER = "power"
    GOVERNOR = "governor"
    QUOTA = "quota"
    LOAD = "load"
    HEAT = "heat"
    GATE = "gate"
    OTHERS = "others"
    STEAL = "steal"
    SPREAD = "spread"
    SHARE = "share"
    GPU = "gpu"
    GPU_HEAT = "gpu heat"
    GPU_CLOCK = "gpu clock"


class Words(NamedTuple):
    """What a warning means and what to do; ``is_command``: the remedy can be typed as it stands."""

    meaning: str
    remedy: str
    is_command: bool = False


WORDS: dict[Warned, Words] = {
    Warned.IDLE: Words(
        "does not learn: training did not change the loss",
        "check the model, its loss and its data; learnable=False in a scenario that has nothing to learn",
    ),
    Warned.DISTURBED: Words("other load disturbed at least one round", "close other programs and run again"),
    Warned.UNJUDGED: Words(
        "the losses were not compared with those of the other backends", "make the model and its feed deterministic"
    ),
    Warned.SCATTERED: Words(f"trials scatter by {SCATTER_WARN:.0%} or more", "run more rounds on a quieter machine"),
    Warned.WAITED: Words(
        "processors were idle while it trained", "a median shows little of it, a long fit has it (docs/method.md)"
    ),
    Warned.DEVIATES: Words(
        "the losses differ between the columns", "compare what the model learns on each backend, before its speed"
    ),
    Warned.FALLBACK: Words(
        "the CPU ran operations that the GPU does not support", "avoid these operations in the model"
    ),
    Warned.SLICES: Words("interval from the slices of fewer than 3 rounds, widened", "run 3 rounds or more"),
    Warned.FEW: Words("fewer than 3 rounds: no interval and no verdict", "run 3 rounds or more"),
    Warned.CONTROL: Words("no verdict: a column measured twice differs from itself", "run again on a quiet machine"),
    Warned.UNDECIDED: Words("not decided: other processes used the processors", "close other programs and run again"),
    Warned.SITTINGS: Words(
        "two sittings differ by more than their intervals allow", "measure a third one, on a quiet machine: run again"
    ),
    Warned.APART: Words("not measured side by side, for lack of memory", "free memory, or measure fewer columns"),
    Warned.VERSIONS: Words("versions differ between columns", "install the same version for all backends"),
    Warned.POWER: Words("the machine saves power", "plug it in and switch the low-power mode off"),
    Warned.GOVERNOR: Words(
        "the processor's frequency is limited", "sudo cpupower frequency-set --governor performance", is_command=True
    ),
    Warned.QUOTA: Words(
        "a control group limits the processors", "give the container all processors, or report that it had fewer"
    ),
    Warned.LOAD: Words("the machine was busy before the run", "close other programs"),
    Warned.HEAT: Words("the processor was too hot", "let the machine cool down"),
    Warned.GATE: Words("the machine did not become quiet in time", "close other programs"),
    Warned.OTHERS: Words("other processes used the processors", "close other programs"),
    Warned.STEAL: Words("the hypervisor gave processors to other machines", "use a machine that is not shared"),
    Warned.SPREAD: Words("times within the trial vary widely", "run more rounds on a quieter machine"),
    Warned.SHARE: Words("fewer processors were busy than in other trials", "close other programs"),
    Warned.GPU: Words("the GPU was shared or could not be observed", "end other processes on the GPU"),
    Warned.GPU_HEAT: Words("the GPU slowed down from heat or a power limit", "let the GPU cool down"),
    Warned.GPU_CLOCK: Words("the GPU ran at a lower clock than in other trials", "let the GPU cool down"),
}
