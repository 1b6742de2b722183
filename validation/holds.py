"""Do answers hold while something else runs? Many answers under many disturbances, next to those of the quiet machine.

    python validation/holds.py measure results-of-holds --hours 1.5      goes on with what the folder has
    python validation/holds.py measure results-of-holds --quiet 0.5      half of the answers without a disturbance
    python validation/holds.py judge results-of-holds
    python validation/holds.py between results-of-holds                  by how much the quiet answers differ

Each answer is one ``python -m kerasbench run`` of one scenario, by ``--quick`` or, now and then, in three rounds,
while a disturbance that was drawn at random goes on. At the beginning and whenever QUIET_S have gone by, each
scenario is measured on the quiet machine too: an answer is compared with the quiet ones nearest to it in time. It is
wrong where the interval of a ratio that it gives misses the quiet ratio by more than MISS. What must not happen is that
an answer is wrong and has no mark. Steal needs a hypervisor with other guests: nothing here can make it. While the
folder has a file called ``pause``, no new answer begins: the machine is free for something else.
"""

import argparse
import math
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from disturbers import KINDS

from kerasbench.analysis.estimates import LogEstimate, variance
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column
from kerasbench.results.store import load

HERE = Path(__file__).parent
SCENARIOS = ("mnist_dense", "cifar10_cnn", "iris_mlp", str(HERE / "convnet.py"))
NONE = "none"
DRAWN = (NONE, *KINDS)
QUIET_SHARE = 1 / len(DRAWN)  # of the answers
DEFAULT_EFFORT = 0.08  # of the answers: one in three rounds takes as long as six quick ones
QUIET_S = 3_600
MISS = math.log(1.05)
Pair = tuple[Column, Column]


@dataclass(frozen=True)
class Answer:
    """One answer: the interval of the logarithm of each ratio, and whether it is marked as doubtful."""

    scenario: str
    kind: str
    at_s: float
    marked: bool
    decided: bool
    ratios: dict[Pair, tuple[float, float, float]]


@contextmanager
def disturbed(kind: str) -> Iterator[None]:
    """Have something of that kind go on meanwhile."""
    if kind == NONE:
        yield
        return
    going_on = subprocess.Popen([sys.executable, str(HERE / "disturbers.py"), kind])
    time.sleep(5)  # until it does what it does: a training has to be compiled
    try:
        yield
    finally:
        going_on.terminate()
        going_on.wait()
        time.sleep(1)


def measure(folder: Path, hours: float, quiet_share: float) -> None:
    rng, ends_s = random.Random(), time.time() + hours * 3600
    while time.time() < ends_s:
        old = [scenario for scenario in SCENARIOS if time.time() - _quiet_s(folder, scenario) > QUIET_S]
        if old:
            one(folder, old[0], "quiet", quick=False)
        else:
            kind = NONE if rng.random() < quiet_share else rng.choice(list(KINDS))
            one(folder, rng.choice(SCENARIOS), kind, quick=rng.random() >= DEFAULT_EFFORT)


def _quiet_s(folder: Path, scenario: str) -> float:
    """Return when a scenario was last measured on the quiet machine."""
    made = folder.glob(f"*_{Path(scenario).stem}_quiet_default/*.json")
    return max((float(data.parent.name.split("_")[0]) for data in made), default=0.0)


def one(folder: Path, scenario: str, kind: str, quick: bool) -> None:
    """Measure one answer into a folder of its own, whose name says what it is."""
    while (folder / "pause").exists():
        time.sleep(1)
    effort = "quick" if quick else "default"
    name = f"{time.time():.0f}_{Path(scenario).stem}_{kind}_{effort}"
    more = ["--quick"] if quick else ["--rounds", "3"]
    command = [sys.executable, "-m", "kerasbench", "run", "--scenario", scenario, *more, "--wait"]
    with disturbed(NONE if kind == "quiet" else kind):
        ran = subprocess.run([*command, "--results", str(folder / name)], capture_output=True, text=True, check=False)
    print(name, ran.returncode, ran.stdout[:300].replace("\n", " "), flush=True)


def answers(folder: Path) -> Iterator[Answer]:
    for data in sorted(folder.glob("*/*.json")):
        at, *scenario, kind, _ = data.parent.name.split("_")
        for ranking in summarize(load(data)).rankings:
            if ranking.fastest is None:
                continue
            ratios = {}
            for contrast in ranking.others:
                ratio = contrast.ratio.inverse
                if ratio.low and ratio.high:
                    place = (ranking.fastest, contrast.over.column)
                    ratios[place] = (math.log(ratio.low), ratio.log_centre, math.log(ratio.high))
            yield Answer("_".join(scenario), kind, float(at), ranking.disturbed, ranking.winner is not None, ratios)


def judge(folder: Path) -> int:
    found = list(answers(folder))
    quiet = [one for one in found if one.kind == "quiet"]
    counted: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    for one in found:
        if one.kind != "quiet":
            off = max((missed(one, pair, quiet) for pair in one.ratios), default=0.0)
            counted[one.kind].append((off > MISS, one.marked, one.decided))
            if off > MISS and not one.marked:
                print(f"wrong without a mark: {one.scenario}, {one.kind}, by {math.expm1(off):.0%}")
    print("| disturbance | answers | marked | decided | wrong | wrong and not marked |\n|---|---|---|---|---|---|")
    for kind in DRAWN:
        of = counted[kind]
        cases = [len(of), sum(m for _, m, _ in of), sum(d for _, _, d in of), sum(w for w, _, _ in of)]
        print(f"| {kind} | {' | '.join(map(str, cases))} | {sum(w and not m for w, m, _ in of)} |")
    return int(any(w and not m for of in counted.values() for w, m, _ in of))


def missed(answer: Answer, pair: Pair, quiet: list[Answer]) -> float:
    """Return by how much an interval misses the quiet ratio of the same hour, as a logarithm; 0 where it holds it."""
    near = sorted(
        (one for one in quiet if one.scenario == answer.scenario), key=lambda one: abs(one.at_s - answer.at_s)
    )
    centres = [ratio for one in near for ratio in (_centre(one, pair),) if ratio is not None][:2]
    if not centres:
        return 0.0
    true, (low, _, high) = sum(centres) / len(centres), answer.ratios[pair]
    return max(0.0, true - high, low - true)


def _centre(answer: Answer, pair: Pair) -> float | None:
    """Return the logarithm of a ratio by those to the fastest of the quiet answer."""
    to = {answer_pair[1]: centre for answer_pair, (_, centre, _) in answer.ratios.items()}
    fastest = next(iter(answer.ratios))[0]
    to[fastest] = 0.0
    return to[pair[1]] - to[pair[0]] if pair[0] in to and pair[1] in to else None


def between(folder: Path) -> int:
    """Print by how much the quiet answers of a model differ beyond what their own rounds explain."""
    found: dict[tuple[str, Pair], list[LogEstimate]] = defaultdict(list)
    for data in sorted(folder.glob("*_quiet_default/*.json")):
        for row in summarize(load(data)).rows:
            first, *others = sorted(row.cases, key=lambda one: one.label)
            for other in others:
                ratio = row.ratios.estimate(other, first, row.headline)
                if ratio is not None and ratio.basis == "trials" and not ratio.disturbed:
                    found[row.label, (first, other)].append(ratio)
    excess: list[tuple[int, float]] = []
    print("| model | ratio | answers | scatter | of which rounds explain |\n|---|---|---|---|---|")
    for (label, (first, other)), ratios in found.items():
        if len(ratios) > 1:
            total = variance([one.log_centre for one in ratios])
            within = statistics.fmean((one.log_error or 0.0) ** 2 for one in ratios)
            excess.append((len(ratios) - 1, total - within))
            cells = [label, f"{other.label} / {first.label}", len(ratios), f"{total**0.5:.1%}", f"{within**0.5:.1%}"]
            print(f"| {' | '.join(map(str, cells))} |")
    degrees = sum(own for own, _ in excess)
    pooled = sum(own * more for own, more in excess) / degrees
    print(f"\nbetween answers: {math.copysign(abs(pooled) ** 0.5, pooled):.1%} ({degrees} degrees of freedom)")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "judge", "between"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--quiet", type=float, default=QUIET_SHARE, help="share of answers without a disturbance")
    asked = parser.parse_args()
    if asked.what in ("judge", "between"):
        return {"judge": judge, "between": between}[asked.what](asked.folder)
    measure(asked.folder, asked.hours, asked.quiet)
    return 0


if __name__ == "__main__":
    sys.exit(main())
