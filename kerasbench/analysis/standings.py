"""Who is fastest in each row of a table, and what the others are to it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from kerasbench.analysis.cells import HEADLINE, Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate
from kerasbench.analysis.ratios import between, by_means
from kerasbench.analysis.verdicts import Verdict, judge_all, rounds_to_decide
from kerasbench.exchange.options import competes, is_control
from kerasbench.results.keys import Column

CONTROL_BOUND = 0.03  # what is the same and differs by more, significantly, leaves nothing to be believed


@dataclass(frozen=True)
class Comparison:
    """The fastest cell of a row against one of the others: the ratio of their times, and what it means.

    ``decides``: about how many rounds in all would decide it by itself; None where no number would. ``by_means`` is the
    ratio by the means of the same slices, where that lies outside the interval; else None.
    """

    rival: Column
    ratio: LogEstimate
    verdict: Verdict
    decides: int | None
    by_means: float | None = None


@dataclass(frozen=True)
class Control:
    """A column that was measured twice in each bout: the ratio of the second to the first, which should be 1."""

    column: Column
    ratio: LogEstimate

    @property
    def is_off(self) -> bool:
        """Whether what is the same was measured as different, so that nothing else can be believed."""
        low, high = self.ratio.low, self.ratio.high
        return low is not None and high is not None and (low > 1 + CONTROL_BOUND or high < 1 / (1 + CONTROL_BOUND))


@dataclass(frozen=True)
class Standing:
    """Who is fastest in a row: one winner, or the first of several that cannot be told apart.

    Nobody is, where there is nobody to be compared with. Where each column is slower than another, a rival may be
    significantly faster, and none is ``first``. ``proven`` is False where too little is known for an interval; where no
    row of the table has one, it is ``tentative``. With a ``control`` that is off, nothing is called different.
    """

    fastest: Column | None
    comparisons: list[Comparison]
    proven: bool
    tentative: bool = False
    control: Control | None = None

    @property
    def first(self) -> Column | None:
        """The fastest where none is level with it: significantly, or of a tentative table."""
        if self.disturbed:
            return None
        if self.proven:
            return self.fastest if all(one.verdict is Verdict.FASTER for one in self.comparisons) else None
        return self.fastest if self.tentative else None

    @property
    def disturbed(self) -> bool:
        """Whether other processes used so much of the machine that the row has no verdict."""
        return any(one.ratio.disturbed for one in self.comparisons)

    @property
    def level(self) -> list[Column]:
        """Those that cannot be told from the fastest."""
        undecided = (Verdict.SAME, Verdict.INCONCLUSIVE)
        decides = self.proven and not self.disturbed
        return [one.rival for one in self.comparisons if decides and one.verdict in undecided]

    @property
    def by_slices(self) -> bool:
        """Whether the intervals rest on slices, because there were too few bouts."""
        return self.proven and any(one.ratio.basis == "slices" for one in self.comparisons)

    @property
    def withheld(self) -> bool:
        """Whether the control takes the row's verdicts away."""
        return self.control is not None and self.control.is_off

    def over_fastest(self, column: Column) -> LogEstimate | None:
        """Return by what factor a column's times are those of the fastest; None for itself, and without a ratio."""
        return next((one.ratio.inverse for one in self.comparisons if one.rival == column), None)


def stand(rows: Sequence[Row], effect: float) -> list[Standing]:
    """Compare the fastest cell of each row with each of its others.

    All verdicts of the table are judged together, because their number matters.
    """
    controls = [control(row) for row in rows]
    pairs = [_pairs(row) for row in rows]
    judged = [
        None if one is not None and one.is_off else ratio
        for one, (_, ratios) in zip(controls, pairs, strict=True)
        for ratio in ratios.values()
    ]
    verdicts = iter(judge_all(judged, effect))
    few = all(row.rounds < MIN_TRIALS_FOR_INTERVAL for row in rows)
    tentative = few and not any(one is not None and one.has_interval for one in judged)
    standings = []
    for row, repeated, (fastest, ratios) in zip(rows, controls, pairs, strict=True):
        comparisons = [
            Comparison(
                rival, found, next(verdicts), rounds_to_decide(found, effect), _by_means(row, fastest, rival, found)
            )
            for rival, found in ratios.items()
        ]
        proven = bool(comparisons) and all(one.ratio.has_interval for one in comparisons)
        standings.append(Standing(fastest, comparisons, proven, tentative, repeated))
    return standings


def _by_means(row: Row, fastest: Column | None, rival: Column, ratio: LogEstimate) -> float | None:
    """Return the ratio of the fastest to a rival by means, where that lies outside the interval of the medians'."""
    if fastest is None or row.headline != HEADLINE or ratio.low is None or ratio.high is None:
        return None
    found = by_means(row.cells[fastest], row.cells[rival])
    return None if found is None or ratio.low <= found <= ratio.high else found


def believed(row: Row) -> bool:
    """Tell whether a row's verdicts count: where its control is off they do not."""
    found = control(row)
    return found is None or not found.is_off


def control(row: Row) -> Control | None:
    """Return the ratio of a row's control to the column that it repeats; None where none was measured.

    Where versions are compared, each backend has one, and none speaks for the others (analysis/versus.py).
    """
    if row.origin.versus:
        return None
    for column, cell in row.cells.items():
        original = (*column[:2], " ".join(word for word in column[2].split() if not is_control(word)))
        if is_control(column[2]) and original in row.cells:
            ratio = between(cell, row.cells[original], row.headline, row.cells.values())
            if ratio is not None:
                return Control(original, ratio)
    return None


def _pairs(row: Row) -> tuple[Column | None, dict[Column, LogEstimate]]:
    """Return the fastest column of a row and the ratio of its times to those of each other.

    The fastest is not slower than most others by these ratios, which know whom the machine slowed down; of several such
    columns it is the one with the shortest times.

    Native twins do not compete, and neither does what was measured beside busy processors: they are compared with their
    own backend (prices.py). Nor does a control.
    """
    competing = {column: cell for column, cell in row.cells.items() if competes(column[2])}
    values = {column: found.value for column, cell in competing.items() if (found := cell.estimate(row.headline))}
    if len(values) < 2:
        return None, {}
    in_order = sorted(values, key=lambda column: values[column])
    ratios: dict[Column, dict[Column, LogEstimate]] = {column: {} for column in in_order}
    for one, other in itertools.combinations(in_order, 2):
        found = between(row.cells[one], row.cells[other], row.headline, row.cells.values())
        if found is not None:
            ratios[one][other], ratios[other][one] = found, found.inverse
    fastest = max(in_order, key=lambda column: sum(one.log_centre <= 0 for one in ratios[column].values()))
    return fastest, {column: ratios[fastest][column] for column in values if column in ratios[fastest]}
