"""Two versions side by side: what the head's columns are to the base's, measured in the same bouts."""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kerasbench.analysis.cells import HEADLINE, Row
from kerasbench.analysis.estimates import Estimate, LogEstimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.ratios import between
from kerasbench.analysis.standings import Control
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.verdicts import Verdict, judge_all
from kerasbench.errors import Undecided
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import AT, CONTROL, environment_of, is_control, without_environment
from kerasbench.results.keys import Column
from kerasbench.text import count

# The training step, then what else a new version may make worse. Of a rate, less is worse.
FIRST_STEP, ONE, THROUGHPUT = "first_step_ms", "predict_p50_ms", "predict_samples_per_s"
MEMORY, DEVICE_MEMORY = "peak_rss_mib", "peak_device_mib"
MEASURES = (HEADLINE, FIRST_STEP, ONE, THROUGHPUT, MEMORY, DEVICE_MEMORY)
RATE = "/s"


@dataclass(frozen=True)
class Pair:
    """The columns of base and head in a row, which differ by their interpreter; ``again`` is the base a second time."""

    row: Row
    base: Column
    head: Column
    again: Column

    @property
    def name(self) -> str:
        """What the two have in common: ``torch cpu jit=on``."""
        return " ".join(part for part in (*self.base[:2], without_environment(self.base[2])) if part)

    def ratio(self, column: Column, metric: str) -> LogEstimate | None:
        """Return what a column's figure is to the base's; None where one of the two has none."""
        cells = self.row.cells
        if column not in cells or self.base not in cells:
            return None
        return between(cells[column], cells[self.base], metric, cells.values())

    def failure(self, column: Column) -> Failure | None:
        cell = self.row.cells.get(column)
        return cell.failure if cell else None

    @property
    def broken(self) -> Failure | None:
        """Why the head has no figures where the base has some; None where it has, or where the base has none too."""
        return self.failure(self.head) if self._measured(self.base) else None

    @property
    def baseless(self) -> Failure | None:
        """Why the base has no figures where the head has some, which then has nothing to be compared with."""
        return self.failure(self.base) if self._measured(self.head) else None

    def _measured(self, column: Column) -> bool:
        cell = self.row.cells.get(column)
        return cell is not None and cell.failure is None and bool(cell.trials)


@dataclass(frozen=True)
class Difference:
    """A figure of base and head, and ``ratio``, the head's over the base's.

    ``control`` is the base's over its own, None where it was not measured twice. ``verdict`` is of the head: slower
    where it is worse, whatever the figure is.
    """

    pair: Pair
    metric: str
    base: Estimate
    head: Estimate
    ratio: LogEstimate
    control: Control | None
    verdict: Verdict

    @property
    def withheld(self) -> bool:
        """Whether the base differs from itself, so that nothing can be said of the head."""
        return self.control is not None and self.control.is_off


@dataclass(frozen=True)
class Versus:
    """All that was compared between two versions, by their labels. ``effect``: the smallest difference that counts."""

    base: str
    head: str
    effect: float
    pairs: list[Pair]
    differences: list[Difference]

    def of(self, metric: str) -> list[Difference]:
        return [one for one in self.differences if one.metric == metric]

    @property
    def regressions(self) -> list[Difference]:
        """Every figure that is significantly worse, of whatever kind."""
        return [one for one in self.differences if one.verdict is Verdict.SLOWER]

    @property
    def broken(self) -> list[tuple[Pair, Failure]]:
        """Where the head fails, or computes something else, and the base does not."""
        return [(pair, pair.broken) for pair in self.pairs if pair.broken is not None]

    @property
    def is_worse(self) -> bool:
        return bool(self.regressions or self.broken)

    @property
    def decided(self) -> list[Difference]:
        """Every figure whose verdict says something."""
        return [one for one in self.differences if one.verdict is not Verdict.INCONCLUSIVE]

    @property
    def overall(self) -> float | None:
        """The geometric mean of the ratios of the training step; None without any."""
        steps = self.of(HEADLINE)
        return _mean(steps) if steps else None

    @property
    def means(self) -> dict[str, float]:
        """The same for each of the columns that base and head have in common: ``torch cpu``."""
        steps = self.of(HEADLINE)
        names = dict.fromkeys(one.pair.name for one in steps)
        return {name: _mean([one for one in steps if one.pair.name == name]) for name in names}


def require_decided(found: Sequence[Versus]) -> None:
    """Raise Undecided where no figure has a verdict that says something, and the head fails nowhere alone.

    So too where others disturbed a figure: what is the same in the rest says nothing of it.
    """
    disturbed = [one for each in found for one in each.differences if one.ratio.disturbed]
    if disturbed and not any(one.is_worse for one in found):
        of = count(sum(len(one.differences) for one in found), "figure")
        raise Undecided(
            f"not decided: other processes used the processors while {len(disturbed)} of {of} were measured; "
            "close them and run again"
        )
    if not any(one.decided or one.broken for one in found):
        figures = sum(len(one.differences) for one in found)
        why = f"{count(figures, 'figure')}, all inconclusive" if figures else "base and head share no figure"
        raise Undecided(f"nothing could be judged, so this is no pass: {why}")


def _mean(differences: Sequence[Difference]) -> float:
    return math.exp(statistics.fmean(one.ratio.log_centre for one in differences))


def versus(summary: Summary) -> list[Versus]:
    """Compare the versions of a summary, those of each pair of labels; none where none were asked for.

    The verdicts on each kind of figure are judged together, because their number matters.
    """
    rows: dict[tuple[str, ...], list[Row]] = {}
    for row in summary.rows:
        if len(row.origin.versus) == 2:
            rows.setdefault(row.origin.versus, []).append(row)
    return [_compared(labels, own, summary.record.minimal_effect) for labels, own in rows.items()]


def _compared(labels: tuple[str, ...], rows: Sequence[Row], effect: float) -> Versus:
    base, head = labels
    effect = max([effect, *(row.origin.threshold for row in rows)])
    pairs = [pair for row in rows for pair in _pairs(row, base, head)]
    differences = [one for metric in MEASURES for one in _differences(pairs, metric, effect)]
    return Versus(base, head, effect, pairs, differences)


def _pairs(row: Row, base: str, head: str) -> list[Pair]:
    """Return the pairs of a row: one for each backend, device and set of terms."""
    found: dict[Column, Pair] = {}
    for backend, device, options in row.cells:
        if environment_of(options) not in (base, head) or is_control(options):
            continue
        terms = without_environment(options)
        names = [f"{AT}{label} {terms}".strip() for label in (base, head)]
        of_base, of_head, again = ((backend, device, one) for one in (*names, f"{names[0]} {CONTROL}"))
        found.setdefault((backend, device, terms), Pair(row, of_base, of_head, again))
    return list(found.values())


def _differences(pairs: Sequence[Pair], metric: str, effect: float) -> list[Difference]:
    found = [one for pair in pairs if (one := _unjudged(pair, metric)) is not None]
    rate = BY_NAME[metric].unit == RATE
    judged = [None if one.withheld else (one.ratio.inverse if rate else one.ratio) for one in found]
    verdicts = judge_all(judged, effect)
    return [dataclasses.replace(one, verdict=verdict) for one, verdict in zip(found, verdicts, strict=True)]


def _unjudged(pair: Pair, metric: str) -> Difference | None:
    """Return a figure of a pair without its verdict; None where base or head have none."""
    ratio = pair.ratio(pair.head, metric)
    base, head = (_estimate(pair.row, column, metric) for column in (pair.base, pair.head))
    if ratio is None or base is None or head is None:
        return None
    again = pair.ratio(pair.again, metric)
    control = Control(pair.base, again) if again else None
    return Difference(pair, metric, base, head, _widened(ratio, again), control, Verdict.INCONCLUSIVE)


def _widened(ratio: LogEstimate, again: LogEstimate | None) -> LogEstimate:
    """Return a ratio of one or two bouts with the control's deviation in its error.

    Its slices do not know by how much processes differ; what the base shows against itself is one observation of it.
    """
    if ratio.log_error is None or ratio.basis != "slices" or again is None:
        return ratio
    return dataclasses.replace(ratio, log_error=math.hypot(ratio.log_error, again.log_centre))


def _estimate(row: Row, column: Column, metric: str) -> Estimate | None:
    cell = row.cells.get(column)
    return cell.estimate(metric) if cell else None
