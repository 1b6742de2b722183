"""What does kerasbench itself cost? Trials of a model that does nothing, beside a script that does the same by hand.

    python validation/overhead.py

Until the first step: a trial of ``noop.py`` from its start to the end of its first step, beside ``by_hand.py``, which
imports Keras, builds the same model and fits the same batch. The parent: its processor time while a trial runs.
Medians over pairs, trial and script in turn. What marks add to a step that does nothing is said by
``python validation/fidelity.py steps validation/noop.py``.
"""

import statistics
import time
from pathlib import Path

from children import in_child
from columns import Column, chosen, one

from kerasbench import backends
from kerasbench.host.lock import machine_lock
from kerasbench.processes.outcome import Outcome
from kerasbench.results.run import QUICK

NOOP, BY_HAND = (Path(__file__).with_name(name) for name in ("noop.py", "by_hand.py"))
PAIRS = 5
ADDED = ("worker", "scenario", "finish", "exit")


def main() -> None:
    for backend in backends.names():
        found = [pair(backend) for _ in range(PAIRS)]
        by_hand_s, first_s, added_s, wall_s, parent_s = (
            statistics.median(column) for column in zip(*found, strict=True)
        )
        print(
            f"{backend:<10} until the first step: by hand {by_hand_s:.2f} s, in a trial {first_s:.2f} s; "
            f"{', '.join(ADDED)}: {added_s * 1e3:.0f} ms; the parent: {parent_s * 1e3:.1f} ms of its processor "
            f"in a trial of {wall_s:.1f} s ({parent_s / wall_s:.2%})",
            flush=True,
        )


def pair(backend: str) -> tuple[float, float, float, float, float]:
    """Return, in s: by hand, a trial until its first step, what it adds, all of it, the parent's processor time."""
    began_s = time.monotonic()
    by_hand_s = in_child(backend, str(BY_HAND)) - began_s
    used_s = time.process_time()
    (selected,) = chosen(str(NOOP))
    outcome, _ = one(Column(backend, selected, backend), QUICK.protocol)
    used_s = time.process_time() - used_s
    return by_hand_s, begun_s(outcome), spent_s(outcome), outcome.wall_ns / 1e9, used_s


def begun_s(outcome: Outcome) -> float:
    """Return how long it took from the parent's call to the end of the first step."""
    (end_ns,) = (phase.end_ns for phase in outcome.phases if phase.name == "first step")
    return (end_ns - outcome.phases[0].start_ns) / 1e9


def spent_s(outcome: Outcome) -> float:
    """Return how long the phases took that only kerasbench has."""
    return sum(phase.duration_ns for phase in outcome.phases if phase.name in ADDED) / 1e9


if __name__ == "__main__":
    with machine_lock():
        main()
