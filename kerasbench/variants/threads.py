"""``--threads``: how many logical CPUs a trial may use."""

import os
from pathlib import Path

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.protocol.columns import CPU, Device
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.text import count, parse_ranges
from kerasbench.variants.variant import SCRIPT, SHELL, START, CaseFacts, Refusal, ScriptFacts, Variant, Written

CPUS = Path("/sys/devices/system/cpu")
TOLERANCE = 0.1  # of a processor: the clock's own thread and the parent's watcher


class Threads(Variant[int]):
    name = "threads"
    metavar, help = "N", "Logical CPUs that a trial may use. Default: all."
    tried, pins = True, True

    def describe(self, value: int, backend: str) -> str:
        return count(value, "thread")

    def refusal(self, value: int, facts: CaseFacts) -> Refusal:
        if value <= facts.processors:
            return None
        cause = f"{value} threads were asked for, this machine has {facts.processors} logical CPUs"
        return cause, f"use --threads 1 to {facts.processors}"

    def candidates(self, facts: CaseFacts) -> list[int]:
        return [facts.processors // 2] if facts.device.kind == CPU and facts.processors > 1 else []

    def written(self, value: int, script: ScriptFacts) -> Written:
        if script.processors:  # each a core of its own: their numbers need not follow each other
            return START, f"taskset --cpu-list {script.processors} python your_script.py"
        # No program keeps a script on some CPU cores (macOS).
        if variable := backends.get(script.backend).THREADS:
            return SHELL, f"export {variable}={value}"
        return SCRIPT, f"tf.config.threading.set_intra_op_parallelism_threads({value})"

    def variables(self, value: int, backend: Backend, folder: str) -> dict[str, str]:
        return {backend.THREADS: str(value)} if backend.THREADS else {}

    def before_import(self, value: int) -> None:
        limit_processors(value)  # before a framework sizes its pools

    def apply(self, value: int, backend: Backend, device: Device) -> None:
        if backend.set_threads:
            backend.set_threads(value)

    def ran_as(self, value: int, resolved: Resolved, usage: Usage) -> str:
        if resolved.threads is not None and resolved.threads != value:
            return f"{resolved.threads} threads"
        return f"{usage.processors:.1f} logical CPUs busy" if usage.processors > value + TOLERANCE else ""


def limit_processors(number: int, root: Path = CPUS) -> None:
    """Keep this process on so many processors, each a core of its own while there are any; Linux alone can do it.

    The threads of a core share its units. Their numbers may be neighbours (0 and 1), or lie half the machine apart.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    # The first thread of every core comes before the second thread of any.
    thread = {cpu: sum(sibling < cpu for sibling in siblings(cpu, root) & allowed) for cpu in allowed}
    os.sched_setaffinity(0, sorted(allowed, key=lambda cpu: (thread[cpu], cpu))[:number])


def siblings(cpu: int, root: Path = CPUS) -> set[int]:
    """Return all processors of a processor's core; that one alone where the kernel does not say."""
    try:
        return {cpu} | parse_ranges((root / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text("ascii"))
    except (OSError, ValueError):
        return {cpu}
