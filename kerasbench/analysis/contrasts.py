"""How many times as much one case takes as another: the one form in which that is said, and the one judge of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from kerasbench.analysis import estimates, ratios
from kerasbench.analysis.cases import Measured
from kerasbench.analysis.estimates import LogEstimate, Verdict
from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.rows import Row
from kerasbench.protocol.columns import CaseKey, Column

Key = TypeVar("Key")

CONTROL_BOUND = 0.03  # what is the same and differs by more, significantly, leaves nothing to be believed


class CaseInRow(NamedTuple):
    row: Row
    column: Column

    @property
    def case(self) -> Measured:
        return self.row.cases[self.column]

    @property
    def key(self) -> CaseKey:
        return self.row.key(self.column)


@dataclass(frozen=True)
class Contrast:
    """How many times as much ``over`` takes as ``under``: time or memory, and of a rate the time for each sample."""

    over: CaseInRow
    under: CaseInRow
    metric: str
    ratio: LogEstimate
    control_ratio: LogEstimate | None = None  # what is the same, measured twice: it should be 1
    verdict: Verdict | None = None  # of ``over``: slower where it takes more; None: not judged
    why: str = ""  # it cannot be judged

    @property
    def withheld(self) -> bool:
        return is_off(self.control_ratio)

    @property
    def is_decided(self) -> bool:
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)

    @property
    def is_headline(self) -> bool:
        return self.metric == self.over.row.headline


def between(row: Row, over: Column, under: Column, metric: str, control: LogEstimate | None = None) -> Contrast | None:
    """Compare two columns of a row, without a verdict; None where nothing can be divided."""
    ratio = row.ratios.estimate(over, under, metric)
    if ratio is None:
        return None
    cost = ratio.inverse if BY_NAME[metric].unit == RATE else ratio
    return Contrast(CaseInRow(row, over), CaseInRow(row, under), metric, cost, control)


def judge(contrasts: Mapping[Key, Contrast | None], effect: float, by_run: bool = True) -> dict[Key, Contrast]:
    """Return those of one kind that can be divided, with verdicts; ``by_run``: those of a run are judged together."""
    divided = {key: contrast for key, contrast in contrasts.items() if contrast is not None}
    ratios = [None if contrast.withheld else contrast.ratio for contrast in divided.values()]
    runs = [contrast.over.row.run for contrast in divided.values()] if by_run else ()
    return {
        key: replace(contrast, ratio=ratio or contrast.ratio, verdict=verdict)
        for (key, contrast), (ratio, verdict) in zip(
            divided.items(), estimates.judge(ratios, effect, runs), strict=True
        )
    }


def is_off(ratio: LogEstimate | None) -> bool:
    """Tell whether what is the same was measured as different, so that nothing else can be believed."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 + CONTROL_BOUND or ratio.high < 1 / (1 + CONTROL_BOUND)


def by_session(contrast: Contrast) -> dict[int, LogEstimate]:
    """Return the ratio by the blocks of each session of the run alone; nothing where it had one."""
    (row, over), (_, under), metric = contrast.over, contrast.under, contrast.metric
    if len({trial.session for trial, _ in row.cases[over].trials}) < 2:  # nearly always
        return {}
    scatter = row.ratios.assumed_scatter(over, under, metric)
    sessions = ratios.group_by_session(row.ratios.blocks(over, under, metric))
    of_sessions = {day: ratio for day, blocks in sessions.items() if (ratio := ratios.sum_up_blocks(blocks, scatter))}
    return of_sessions if len(of_sessions) > 1 else {}


def apart(of_sessions: Mapping[int, LogEstimate]) -> LogEstimate | None:
    """Return the larger ratio of two sessions over the smaller; of more, their interval tells how they differ."""
    if len(of_sessions) != 2:
        return None
    first, last = of_sessions.values()
    over = first.and_then(last.inverse)
    return over if over.log_centre > 0 else over.inverse


def control(row: Row) -> Contrast | None:
    """Return a row's control over the column that it repeats; None where none was measured."""
    if row.origin.config.paired:  # each pair has one that speaks for no other, or that differs where time makes slower
        return None
    repeated = (between(row, again, column, row.headline) for again, column in varied("control", row))
    return next(filter(None, repeated), None)


def control_ratio_of(row: Row) -> LogEstimate | None:
    repeated = control(row)
    return repeated.ratio if repeated else None


def believed(row: Row) -> bool:
    """Tell whether a row's verdicts count: where its control is off they do not."""
    return not is_off(control_ratio_of(row))


def varied(option: str, row: Row) -> Iterator[tuple[Column, Column]]:
    """Yield each column that has an option, and the one that differs from it by not having it."""
    for column in row.cases:
        if option in column.options and (without := column.with_options(**{option: None})) in row.cases:
            yield column, without
