"""Are the verdicts right? The same cell as several columns, and cells that are slower by a known 5 % and 10 %.

    python benchmarks/verdicts.py measure 2 FOLDER      two runs at the default settings, about 30 minutes on two cores
    python benchmarks/verdicts.py report FILE...        what the verdicts would have been

Of the comparisons of a cell with itself at most 5 % may be called different. Those with a slowed cell show the power;
the limit that the plan states beforehand (``verdict.visible_difference``) is printed beside.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

from rich.console import Console

from kerasbench import backends, text
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.verdicts import Verdict, judge, ratio, visible_difference
from kerasbench.children import trial
from kerasbench.environments.interpreters import Interpreters
from kerasbench.machine import fingerprint
from kerasbench.machine.lock import machine_lock
from kerasbench.machine.state import observe
from kerasbench.plan import catalog
from kerasbench.plan.cells import Cell, make
from kerasbench.quiet.gate import Gate, product_canary
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.asked import MAX_ROUNDS, MIN_ROUNDS, Asked, exactly
from kerasbench.results.record import Record
from kerasbench.results.store import Store, load
from kerasbench.runs.rounds import Run
from kerasbench.runs.surroundings import Watch
from kerasbench.runs.survey import probe_all

FILE = Path(__file__).with_name("slowed.py")
TIMEOUT_S = 120
STEP = BY_NAME["steady_step_ms"]  # the slow-down is in the steps; a hundred of them leave nothing else


def together(cells: Sequence[Cell], seed: int, round_index: int) -> list[Cell]:
    """Keep the variants of one backend together, because they are what is compared here."""
    rng = random.Random(f"{seed}/{round_index}")
    groups = [[cell for cell in cells if cell.backend == name] for name in backends.names()]
    rng.shuffle(groups)
    return [cell for group in groups for cell in rng.sample(group, len(group))]


def measure(count: int, folder: Path) -> None:
    probes = probe_all(backends.names(), Interpreters())
    selected = catalog.select([str(FILE)], sys.executable, "jax")
    for seed in range(count):
        asked = Asked(devices=["cpu"], effort=exactly(MAX_ROUNDS), seed=seed, timeout_s=TIMEOUT_S)
        planned = make(asked, selected, probes, fingerprint())
        store = Store.create(folder, text.now())
        progress = ConsoleProgress(Console(stderr=True, highlight=False))
        launch = partial(trial.launch, sys.executable)
        run = Run(planned, store, launch, Watch(Gate(product_canary())), progress, observe(), order=together)
        store.finish(run.execute())


def comparisons(record: Record, rounds: int) -> Iterator[tuple[str, str, LogEstimate]]:
    """Yield what is compared (``same``, ``5 %``, ``10 %``), the backend, and the ratio over the first rounds."""
    summary = summarize(record)
    by_regime = {row.regime.name: row.cells for row in summary.rows}
    for column in summary.columns:
        values = {
            name: {index: value for index, value in cells[column].by_round(STEP).items() if index <= rounds}
            for name, cells in by_regime.items()
        }
        same = [name for name in values if name.startswith("same")]
        pairs = [("same", a, b) for a, b in combinations(same, 2)]
        pairs += [(f"{name.removeprefix('slow_')} %", name, b) for name in values if name not in same for b in same]
        for kind, a, b in pairs:
            found = ratio(values[a], values[b])
            if found is not None:
                yield kind, column[0], found


def report(files: Sequence[Path]) -> None:
    for rounds in (MIN_ROUNDS, MAX_ROUNDS):
        counts: dict[tuple[str, str], Counter[Verdict]] = {}
        scatters: dict[str, list[float]] = {}
        for kind, backend, found in (each for file in files for each in comparisons(load(file), rounds)):
            for name in (backend, "all"):
                counts.setdefault((kind, name), Counter())[judge(found)] += 1
            if kind == "same":
                scatters.setdefault(backend, []).append(found.log_error * (rounds / 2) ** 0.5)
        print(f"\n{rounds} rounds")
        for (kind, backend), counted in sorted(counts.items()):
            total = sum(counted.values())
            said = ", ".join(f"{verdict} {counted[verdict]}" for verdict in Verdict)
            print(f"  {kind:>5} {backend:<10} of {total}: {said}")
        for backend, errors in scatters.items():
            c = (sum(one**2 for one in errors) / len(errors)) ** 0.5
            print(f"  {backend}: trials scatter by {c:.1%}; the plan says {visible_difference(rounds, c):.1%}")


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "measure":
        with machine_lock():
            measure(int(rest[0]), Path(rest[1]))
    else:
        report([Path(name) for name in rest])
