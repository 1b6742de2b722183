"""Do two sessions agree? Each ratio of one run next to the same ratio of another.

    python validation/two_sessions.py ONE.json OTHER.json

Ratios are those of a row's columns to the fastest of ONE, with their 95 % intervals. They agree where they are apart by
no more than both intervals reach (half of each, added). *Jointly*: by no more than the interval of their difference
does, which is narrower: if the two differed by chance alone, 95 % would agree so. Printed last is how many would agree
if each interval allowed for other sessions by some other standard deviation than by analysis.families.ASSUMED.
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.report.words import times
from kerasbench.results.store import load

BETWEEN = (0.0, 0.01, 0.015, 0.02, 0.03)  # sessions, as standard deviations of a ratio's logarithm


def read(file: str) -> Summary:
    return summarize(load(Path(file)))


def agreement(first: LogEstimate, second: LogEstimate) -> tuple[bool, bool]:
    """Tell whether two ratios are apart by no more than both intervals reach, and than that of their difference."""
    apart = abs(second.log_centre - first.log_centre)
    reach = [math.log1p(one.half_width or 0.0) for one in (first, second)]
    return apart <= sum(reach), apart <= math.hypot(*reach)


def main() -> int:
    one, other = map(read, sys.argv[1:])
    rows = {row.label: row for row in other.rows}
    agree = jointly = 0
    found: list[tuple[LogEstimate, LogEstimate]] = []
    print("| row | column | one | other | other / one | agree | jointly |")
    print("|---|---|---|---|---|---|---|")
    for row, ranking in one.ranked:
        for compared in ranking.others:
            pair = (compared.over.column, compared.under.column, row.headline)
            first = row.ratios.estimate(*pair)
            second = rows[row.label].ratios.estimate(*pair) if row.label in rows else None
            if first is None or second is None or first.half_width is None or second.half_width is None:
                continue
            found.append((first, second))
            agrees, agrees_jointly = agreement(first, second)
            agree, jointly = agree + agrees, jointly + agrees_jointly
            words = ["yes" if fits else "no" for fits in (agrees, agrees_jointly)]
            apart_by = f"{second.value / first.value:.2f}"
            cells = [row.label, compared.over.column.label, times(first), times(second), apart_by, *words]
            print(f"| {' | '.join(cells)} |")
    print(f"\n{agree} of {len(found)} agree, {jointly} jointly.")
    for between in BETWEEN:
        fit = sum(agreement(*(replace(one, between_sessions=between) for one in pair))[0] for pair in found)
        print(f"{fit} would if each interval allowed for {100 * between:g} % between sessions.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
