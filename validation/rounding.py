"""How much load does rounding look like, and how soon is half a core found? On made counters.

    python validation/rounding.py [BLOCKS]      for each number of processors and length of slices; 500

Each block has 40 cycles of three columns. A processor is idle for a random share of each slice, and the system's count
of that is rounded down to 10 ms at both ends. Processors are read one by one, as where a process may use some of a
machine's processors, and on macOS. Nothing is measured.
"""

import sys

import numpy as np

from kerasbench.host.load import TICK_NS, LoadLimit, judged
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.stages import TRAIN

SEED, BLOCKS, CYCLES, COLUMNS = 20261126, 500, 40, 3
PROCESSORS, SLICES_NS = (4, 8, 16, 32, 64, 128), (100_000_000, 50_000_000)
HALF, FEW = 0.5, 0.01


def made_slice(rng: np.random.Generator, processors: int, ns: int, others: float, cycle: int) -> Slice:
    """Return a slice of which others took so much of one processor, as counters that round tell it."""
    began_ns = rng.uniform(0, TICK_NS, processors)  # where in a tick each count is
    free_ns = rng.uniform(0, 1, processors) * ns
    used_ns = processors * ns - free_ns.sum()
    free_ns[np.argmax(free_ns)] -= min(others * ns, free_ns.max())
    counted_ns = (np.floor((began_ns + free_ns) / TICK_NS) * TICK_NS).sum()
    return Slice(1, ns, cycle, others_ns=int(processors * ns - counted_ns - used_ns), steal_ns=0)


def made_block(rng: np.random.Generator, processors: int, ns: int, others: float) -> dict[int, list[Slice]]:
    return {
        column: [made_slice(rng, processors, ns, others, cycle) for cycle in range(CYCLES)] for column in range(COLUMNS)
    }


def marked_share(block: dict[int, list[Slice]], limit: LoadLimit, cycles: int = CYCLES) -> float:
    """Return the share of the first cycles of a block that do not count."""
    slices = judged(TRAIN, {column: slices[:cycles] for column, slices in block.items()}, [limit] * COLUMNS)
    return len({slice_.cycle for column in slices for slice_ in column if slice_.disturbed}) / cycles


def found_after(block: dict[int, list[Slice]], limit: LoadLimit) -> int:
    """Return after how many cycles some do not count; one more than there are where none ever does."""
    return next((cycles for cycles in range(1, CYCLES + 1) if marked_share(block, limit, cycles)), CYCLES + 1)


def main(blocks: int) -> None:
    rng = np.random.default_rng(SEED)
    print("| processors | slices | judged together | marked, nobody runs | half a core is found after | marked then |")
    print("|---|---|---|---|---|---|")
    for ns in SLICES_NS:
        for processors in PROCESSORS:
            limit = LoadLimit(counters=processors)
            quiet = np.mean([marked_share(made_block(rng, processors, ns, 0.0), limit) for _ in range(blocks)])
            loaded = [made_block(rng, processors, ns, HALF) for _ in range(blocks)]
            cycles = sorted(found_after(block, limit) for block in loaded)
            latest = cycles[int((1 - FEW) * blocks) - 1]
            share = np.mean([marked_share(block, limit) for block in loaded])
            cells = [processors, f"{ns / 1e6:.0f} ms", f"{limit.judged_s(ns):.2g} s", f"{quiet:.2%}"]
            cells += [f"{cycles[blocks // 2]} (99 %: {latest})", f"{share:.1%}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS)
