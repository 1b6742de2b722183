"""Do moderated intervals hold the truth, and are few verdicts false? By simulation, with the scatter of committed runs.

    python validation/moderated.py                                      some minutes
    python validation/moderated.py 200                                  fewer pages of each kind
    python validation/moderated.py results/2026-11-25T205748.json ...   by the blocks that were measured

The variances of a page's ratios are drawn from a scaled inverse chi-square distribution (2.2 degrees of freedom around
6.5 %, as the committed runs have it; 4 and 1.5 show what another machine would), each block's ratio from a normal
distribution with that variance. Counted are: how many 95 % intervals hold the truth, by a ratio's own variance and
moderated; on how many pages of equal columns a difference is called; which share of what is called different is not,
where half of the columns are equal and half 20 % apart; and how many of those 20 % are found.

With result files: from the ratios of each file that have enough blocks, some blocks are drawn (400 times), and their
interval is compared with the mean of the blocks that are left.
"""

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtr

from kerasbench.analysis import ratios
from kerasbench.analysis.estimates import MINIMAL_EFFECT, confidence_of, prior_of, t_quantile
from kerasbench.analysis.families import Family
from kerasbench.analysis.summary import summarize
from kerasbench.results.store import load

SCATTER = 0.065
RATE = 0.05
EDGE = math.log1p(MINIMAL_EFFECT)
APART = math.log(1.2)


@dataclass
class Page:
    """What one simulated page says of its ratios, against what is so."""

    held: float  # share of 95 % intervals with the truth
    half_width: float  # the median
    false: int  # called different, or the other way round
    called: int
    found: float  # share of those that are apart


def page(truth: Sequence[float], blocks: int, degrees: float, moderated: bool, rng: np.random.Generator) -> Page:
    """Draw a page of ratios, and judge it."""
    deviations = SCATTER * np.sqrt(degrees / rng.chisquare(degrees, len(truth)))
    logs = np.array(truth) + rng.standard_normal((blocks, len(truth))) * deviations
    centres, own = logs.mean(0), logs.var(0, ddof=1)
    prior = prior_of([(float(variance), blocks - 1) for variance in own]) if moderated else None
    errors, freedoms = [], []
    for variance in own:
        found, freedom = prior.moderate(float(variance), blocks - 1) if prior else (float(variance), blocks - 1)
        errors.append(math.sqrt(found / blocks))
        freedoms.append(round(freedom, 3))
    reaches = [t_quantile(freedom) * error for freedom, error in zip(freedoms, errors, strict=True)]
    p_values = [
        2 * float(stdtr(freedom, -abs(abs(centre) - EDGE) / error))
        for centre, error, freedom in zip(centres, errors, freedoms, strict=True)
    ]
    confidence = confidence_of(p_values, RATE)
    different = [abs(centre) > EDGE and p <= 1 - confidence for centre, p in zip(centres, p_values, strict=True)]
    false = [
        one and (abs(true) <= EDGE or true * centre < 0)
        for one, true, centre in zip(different, truth, centres, strict=True)
    ]
    apart = [one for one, true in zip(different, truth, strict=True) if abs(true) > EDGE]
    return Page(
        statistics.fmean(abs(c - t) < reach for c, t, reach in zip(centres, truth, reaches, strict=True)),
        statistics.median(reaches),
        sum(false),
        sum(different),
        statistics.fmean(apart) if apart else 0.0,
    )


def measured_logs(file: Path) -> list[list[float]]:
    """Return the logarithm in each block of each row's ratios between backends or devices to its first column."""
    summary = summarize(load(file))
    return [
        [one.log for one in ratios.divide_blocks(*pair, row.headline) if not one.disturbed]
        for row in summary.rows
        for pair in ratios.neighbours(row.ratios.measured.values())
        if ratios.family_of(*pair) is Family.BACKENDS
    ]


def by_blocks(files: Sequence[Path], draws: int = 400) -> None:
    """Print how often intervals of so many blocks hold the mean of the others."""
    rng = np.random.default_rng(1)
    print("| blocks | interval | hold the mean of the others | half-width: median | mean | the widest tenth from |")
    print("|---|---|---|---|---|---|")
    for blocks in (3, 6):
        kept: dict[str, list[tuple[bool, float]]] = {"own": [], "moderated": []}
        for file in files:
            enough = [logs for logs in measured_logs(file) if len(logs) >= blocks + 3]
            for _ in range(draws):
                shuffled = [list(rng.permutation(logs)) for logs in enough]
                variances = [float(np.var(logs[:blocks], ddof=1)) for logs in shuffled]
                prior = prior_of([(variance, blocks - 1) for variance in variances])
                for logs, own in zip(shuffled, variances, strict=True):
                    off = abs(float(np.mean(logs[:blocks]) - np.mean(logs[blocks:])))
                    wider = math.sqrt(1 + blocks / (len(logs) - blocks))  # the mean of the others is not known either
                    for name, (variance, freedom) in {
                        "own": (own, blocks - 1),
                        "moderated": prior.moderate(own, blocks - 1) if prior else (own, blocks - 1),
                    }.items():
                        reach = t_quantile(round(freedom, 3)) * math.sqrt(variance / blocks)
                        kept[name].append((off < reach * wider, reach))
        for name, found in kept.items():
            reaches = sorted(reach for _, reach in found)
            print(
                f"| {blocks} | {name} | {statistics.fmean(held for held, _ in found):.1%} "
                f"| {statistics.median(reaches):.1%} | {statistics.fmean(reaches):.1%} "
                f"| {reaches[int(0.9 * len(reaches))]:.0%} |"
            )


def main(pages: int) -> None:
    rng = np.random.default_rng(1)
    print("| variances | intervals | ratios | blocks | hold the truth | half-width | pages | false | found |")
    print("|---|---|---|---|---|---|---|---|---|")
    for degrees in (2.2, 4.0, 1.5):
        for moderated in (False, True):
            for number in (6, 24, 60):
                for blocks in (3, 5, 10):
                    equal = [page([0.0] * number, blocks, degrees, moderated, rng) for _ in range(pages)]
                    half = [0.0] * (number // 2) + [APART] * (number // 2)
                    mixed = [page(half, blocks, degrees, moderated, rng) for _ in range(pages)]
                    print(
                        f"| {degrees:g} | {'moderated' if moderated else 'own'} | {number} | {blocks} "
                        f"| {statistics.fmean(one.held for one in equal + mixed):.1%} "
                        f"| {statistics.fmean(one.half_width for one in equal):.1%} "
                        f"| {statistics.fmean(one.false > 0 for one in equal):.1%} "
                        f"| {statistics.fmean(one.false / max(one.called, 1) for one in mixed):.1%} "
                        f"| {statistics.fmean(one.found for one in mixed):.0%} |",
                        flush=True,
                    )


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdigit():
        by_blocks([Path(name) for name in sys.argv[1:]])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 1000)
