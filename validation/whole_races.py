"""Does a race find what measuring everything finds, and how much sooner? On real models.

    python validation/whole_races.py RESULTS [SCENARIO ...]

Each scenario is raced, and then all candidates are measured for three rounds, in the same hour. Told are the race's
choice, the best of all, how much slower the choice is than the best in the rounds of all (with its interval), the
processes that each started, and their times. The runs of both are kept in the folder RESULTS, with their pages.
"""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import kerasbench
from kerasbench.analysis.ratios import in_row
from kerasbench.modes.fastest import race
from kerasbench.report.words import seconds, times

SCENARIOS = ("mnist_dense", "cifar10_cnn", "iris_mlp", "resnet50/small")
ROUNDS = 3  # of all candidates

Look = Callable[..., "race.Seen[Any] | None"]


def nobody_leaves(look: Look) -> Look:
    """Return what looks at a race in which all candidates stay to the end."""

    def keep(left: Iterable[Any], *rest: Any) -> "race.Seen[Any] | None":
        found = look(left, *rest)
        return found and dataclasses.replace(found, slower=[], is_over=False)

    return keep


def measure(scenario: str, folder: str, **more: Any) -> tuple[race.Race, int, float]:
    """Race; return how the candidates came out, how many processes were started, and how long it took, in s."""
    began_s = time.monotonic()
    found = kerasbench.fastest(scenario, results=folder, wait=True, **more)
    (record,), (raced,) = found.records, found.races
    return raced, len(record.trials), time.monotonic() - began_s


def main() -> int:
    look, far_behind = race.look, race.far_behind
    print("| scenario | the race's choice | best of all | choice / best | processes | time |")
    print("|---|---|---|---|---|---|", flush=True)
    folder, *scenarios = sys.argv[1:]
    for scenario in scenarios or SCENARIOS:
        race.look, race.far_behind = look, far_behind
        chosen, processes, taken_s = measure(scenario, folder)
        race.look, race.far_behind = nobody_leaves(look), lambda *given: []
        every, of_all, all_s = measure(scenario, folder, rounds=ROUNDS)
        behind = None if chosen.leader == every.leader else in_row(every.row, chosen.leader, every.leader, every.metric)
        print(
            f"| {scenario} | {chosen.leader.label} | {every.leader.label} | {times(behind) if behind else '1×'} "
            f"| {processes} of {of_all} | {seconds(taken_s)} of {seconds(all_s)} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
