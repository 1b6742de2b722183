"""What does timing a call cost? The reading of calls that do nothing.

python validation/call_cost.py
"""

import itertools
import statistics
import time
from types import SimpleNamespace
from typing import Any

from kerasbench.worker.predict import Calls

CALLS = 200_000


def nothing(x: int) -> None:
    """Stand for a model."""


def main() -> None:
    pace: Any = SimpleNamespace(meter=SimpleNamespace(done=0))
    inputs = itertools.cycle(range(8))
    calls = Calls(lambda: nothing(next(inputs)), pace)
    read_ns = statistics.median(calls._time() for _ in range(CALLS))
    began_ns = time.perf_counter_ns()
    for _ in range(CALLS):
        calls._time()
    whole_ns = (time.perf_counter_ns() - began_ns) / CALLS
    print(f"a call of nothing is read as {read_ns:.0f} ns, and takes {whole_ns:.0f} ns with all that is around it")


if __name__ == "__main__":
    main()
