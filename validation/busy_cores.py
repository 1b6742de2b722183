"""How much longer do a backend's steps take while other processes keep some processors busy?

    python validation/busy_cores.py mnist_dense                  beside one busy core
    python validation/busy_cores.py mnist_dense --cores 2 --pairs 6

The backends are measured side by side, in pairs of blocks: a quiet one and one beside so many busy processes.
"""

import argparse
import math
import statistics

from columns import STEPS, Column, chosen, launched
from disturbers import always, disturbed

from kerasbench import backends
from kerasbench.host.lock import machine_lock
from kerasbench.runs.turns import draw_orders
from kerasbench.text import count

PAIRS = 3


def main(pattern: str, cores: int, pairs: int, names: list[str]) -> None:
    (selected, *_) = chosen(pattern)
    columns = [Column(backend, selected, backend) for backend in names]
    logs: dict[str, list[float]] = {name: [] for name in names}
    with machine_lock():
        for index in range(pairs):
            quiet_ms = steps_ms(columns, index)
            with disturbed(cores, always):
                busy_ms = steps_ms(columns, index)
            for name in names:
                logs[name].append(math.log(busy_ms[name] / quiet_ms[name]))
    print(f"{selected.label}, times as long beside {count(cores, 'busy core')}, in {count(pairs, 'pair')} of blocks")
    for name, in_pairs in logs.items():
        times = [math.exp(log) for log in (statistics.fmean(in_pairs), min(in_pairs), max(in_pairs))]
        print("  {:<10} {:.2f} ({:.2f} to {:.2f})".format(name, *times))


def steps_ms(columns: list[Column], index: int) -> dict[str, float]:
    """Return the median step of each column in one block, all its slices counted."""
    outcomes = launched(columns, {column.name: STEPS for column in columns}, draw_orders(f"0/{index}"), at_once=1)
    return {
        column.name: measured.training.median_ns / 1e6
        for column, (_, measured) in zip(columns, outcomes, strict=True)
        if measured.training
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--backend", default=",".join(backends.names()))
    asked = parser.parse_args()
    main(asked.scenario, asked.cores, asked.pairs, asked.backend.split(","))
