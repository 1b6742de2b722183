"""What does it cost to read, at both ends of a slice, what other processes use of the machine?

    python validation/others_cost.py [READINGS]

The clock's own reading is a part of each figure. A slice takes 100 ms.
"""

import statistics
import sys
import time

from kerasbench.worker.usage import Meter

READINGS = 20_000
SLICE_NS = 100_000_000


def main(readings: int) -> None:
    meter, taken_ns = Meter(), list[int]()
    for _ in range(readings):
        began_ns = time.perf_counter_ns()
        meter.read()
        taken_ns.append(time.perf_counter_ns() - began_ns)
    middle, high = statistics.median(taken_ns), statistics.quantiles(taken_ns, n=100)[98]
    print(
        f"one reading: {middle / 1e3:.1f} µs (median of {readings:,}), 99 % take at most {high / 1e3:.1f} µs; "
        f"two in a slice of {SLICE_NS / 1e6:.0f} ms: {2 * middle / SLICE_NS:.3%}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else READINGS)
