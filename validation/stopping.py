"""Do intervals hold what they promise where a run decides by them whether to go on? By simulation of whole pages.

    python validation/stopping.py          500 pages of each kind

A page has twelve rows of three columns. The variances of its ratios are drawn from a scaled inverse chi-square
distribution (2.2 degrees of freedom, as committed runs have it) around what is printed; a session moves each ratio by
2 % more. Rounds are added by the rule of a run (runs/stopping.py). Printed are: rounds of a row, the share of printed
95 % intervals that hold the truth, how many are within 6 % and 10 %, and on how many pages a column is called slower
that is not. The same with a fixed number of rounds: `python validation/stopping.py 500 5`.
"""

import itertools
import math
import statistics
import sys
from dataclasses import dataclass, replace

import numpy as np

from kerasbench.analysis.estimates import MINIMAL_EFFECT, LogEstimate, Prior, Verdict, judge, prior_of, variance
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.ratios import moderate_logs
from kerasbench.results.run import MIN_ROUNDS, Effort, exactly
from kerasbench.runs import stopping

ROWS, COLUMNS, DEGREES = 12, 3, 2.2
BETWEEN = ASSUMED[Family.BACKENDS].between_sessions
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)


@dataclass
class Row:
    truth: np.ndarray  # logarithms of its columns' times
    offset: np.ndarray  # by what this session moves them
    scatter: float
    logs: np.ndarray  # of each round

    def measure(self, rng: np.random.Generator) -> None:
        drawn = self.truth + self.offset + rng.standard_normal(COLUMNS) * self.scatter / math.sqrt(2)
        self.logs = np.vstack([self.logs, drawn])

    def ratio(self, over: int, under: int, prior: Prior | None) -> LogEstimate:
        found = moderate_logs([float(log) for log in self.logs[:, over] - self.logs[:, under]], prior)
        return replace(found, between_sessions=BETWEEN)

    @property
    def fastest(self) -> int:
        return int(np.argmin(self.logs.mean(0)))

    def others(self, prior: Prior | None) -> list[LogEstimate]:
        return [self.ratio(column, self.fastest, prior) for column in range(COLUMNS) if column != self.fastest]

    def off(self) -> list[float]:
        """Return the true ratios of the others."""
        return [
            float(self.truth[column] - self.truth[self.fastest]) for column in range(COLUMNS) if column != self.fastest
        ]


def page(
    truth: list[float], scatter: float, effort: Effort, rng: np.random.Generator
) -> tuple[list[Row], Prior | None]:
    deviations = scatter * np.sqrt(DEGREES / rng.chisquare(DEGREES, ROWS))
    offsets = rng.standard_normal((ROWS, COLUMNS)) * BETWEEN / math.sqrt(2)
    rows = [Row(np.array(truth), offsets[row], float(deviations[row]), np.empty((0, COLUMNS))) for row in range(ROWS)]
    precisions: list[stopping.RowPrecision] = [{} for _ in rows]
    open_, prior = list(range(ROWS)), None
    while open_:
        for row in open_:
            rows[row].measure(rng)
        prior = None
        if len(rows[open_[0]].logs) >= MIN_ROUNDS:
            pairs = list(itertools.combinations(range(COLUMNS), 2))
            apart = [np.diff(row.logs[:, pair], axis=1)[:, 0] for row in rows for pair in pairs]
            variances = [(variance([float(log) for log in logs]), len(logs) - 1.0) for logs in apart]
            prior = prior_of(variances, ROWS * (COLUMNS - 1))
        for row in open_:
            others = rows[row].others(prior) if len(rows[row].logs) >= MIN_ROUNDS else []
            known = [stopping.ratio_precision(ratio, effort, MINIMAL_EFFECT) for ratio in others]
            precisions[row] = {(rows[row].fastest, place): of_ratio for place, of_ratio in enumerate(known)}
        open_ = [row for row in open_ if stopping.stop_reason(effort, len(rows[row].logs), precisions[row]) is None]
    return rows, prior


def main(pages: int, effort: Effort) -> None:
    rng = np.random.default_rng(1)
    print("| ratios scatter by | columns | rounds | hold the truth | within 6 % | 10 % | pages: false |")
    print("|---|---|---|---|---|---|---|")
    kinds = {
        "equal": [0.0] * COLUMNS,
        "10 % apart": [0.0, math.log(1.1), math.log(1.21)],
        "1, 1.5, 3": [0.0, math.log(1.5), math.log(3)],
    }
    for scatter, (name, truth) in itertools.product((0.005, 0.02, 0.03, 0.065, 0.1), kinds.items()):
        rounds, held, widths, false = list[int](), list[bool](), list[float](), 0
        for _ in range(pages):
            rows, prior = page(truth, scatter, effort, rng)
            judged = judge([ratio for row in rows for ratio in row.others(prior)], MINIMAL_EFFECT)
            true = [math.exp(log) for row in rows for log in row.off()]
            rounds += [len(row.logs) for row in rows]
            for ratio, is_so in zip([ratio for row in rows for ratio in row.others(prior)], true, strict=True):
                assert ratio.low is not None and ratio.high is not None and ratio.half_width is not None
                held.append(ratio.low <= is_so <= ratio.high)
                widths.append(ratio.half_width)
            false += any(
                one.verdict is Verdict.SLOWER and is_so < 1 + MINIMAL_EFFECT
                for one, is_so in zip(judged, true, strict=True)
            )
        print(
            f"| {scatter:.1%} | {name} | {statistics.fmean(rounds):.1f} | {statistics.fmean(held):.1%} "
            f"| {statistics.fmean(width <= 0.06 for width in widths):.0%} "
            f"| {statistics.fmean(width <= 0.1 for width in widths):.0%} | {false / pages:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(given[0] if given else 500, exactly(given[1]) if given[1:] else Effort())
