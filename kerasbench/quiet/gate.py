"""The gate: no trial begins before the machine is quiet, or before it has been waited for long enough."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kerasbench.machine.state import State, observe

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
class Passage:
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

    def wait(self, on_wait: Callable[[str], None] = lambda reason: None) -> Passage:
        """Return as soon as nothing speaks against a bout, or when patience is over."""
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
                return Passage(waited_s, "; ".join(reasons), canary_ns)
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
