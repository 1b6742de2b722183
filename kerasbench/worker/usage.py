"""What this process uses: processor time, and how often the kernel took a processor away from it."""

import resource
import time

from kerasbench.wire import Usage


class Meter:
    """Count from now on."""

    def __init__(self) -> None:
        self._began_cpu_ns, self._began_wall_ns = time.process_time_ns(), time.perf_counter_ns()
        self._began_switches = _involuntary_switches()

    def read(self) -> Usage:
        return Usage(
            cpu_ns=time.process_time_ns() - self._began_cpu_ns,
            wall_ns=time.perf_counter_ns() - self._began_wall_ns,
            involuntary_switches=_involuntary_switches() - self._began_switches,
        )


def _involuntary_switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
