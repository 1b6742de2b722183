"""Two versions side by side: what the head's columns are to the base's, measured in the same blocks.

Two sets of results beside each other: what became faster, slower, new, or was lost.

The trials of a run share its hour, so that a run is one observation of its side, however many trials it has.
"""

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from kerasbench.analysis.cases import HEADLINE, Row
from kerasbench.analysis.estimates import Estimate, LogEstimate, Verdict, estimate, judge_all, welch
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.rankings import Control
from kerasbench.analysis.ratios import between
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.errors import Undecided
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import DataKind, ProtocolKind
from kerasbench.results.folder import merge
from kerasbench.results.record import Record
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
        return self.base.paired.label

    def ratio(self, column: Column, metric: str) -> LogEstimate | None:
        """Return what a column's figure is to the base's; None where one of the two has none."""
        cases = self.row.cases
        if column not in cases or self.base not in cases:
            return None
        return between(cases[column], cases[self.base], metric, cases.values())

    def failure(self, column: Column) -> Failure | None:
        case = self.row.cases.get(column)
        return case.failure if case else None

    @property
    def broken(self) -> Failure | None:
        """Why the head has no figures where the base has some; None where it has, or where the base has none too."""
        return self.failure(self.head) if self._measured(self.base) else None

    @property
    def baseless(self) -> Failure | None:
        """Why the base has no figures where the head has some, which then has nothing to be compared with."""
        return self.failure(self.base) if self._measured(self.head) else None

    def _measured(self, column: Column) -> bool:
        case = self.row.cases.get(column)
        return case is not None and case.failure is None and bool(case.trials)


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
    for column in row.cases:
        if column.options.environment in (base, head) and not column.options.control:
            of_base, of_head = (column.with_options(environment=label) for label in (base, head))
            found.setdefault(column.paired, Pair(row, of_base, of_head, of_base.with_options(control=True)))
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
    """Return a ratio of one or two blocks with the control's deviation in its error.

    Its slices do not know by how much processes differ; what the base shows against itself is one observation of it.
    """
    if ratio.log_error is None or ratio.basis != "slices" or again is None:
        return ratio
    return dataclasses.replace(ratio, log_error=math.hypot(ratio.log_error, again.log_centre))


def _estimate(row: Row, column: Column, metric: str) -> Estimate | None:
    case = row.cases.get(column)
    return case.estimate(metric) if case else None


DIFFERENT_MACHINES = "different machines"
NO_CODE = "the files do not say which code of kerasbench measured"
TOO_FEW = "a verdict needs three runs of each side by turns (old, new, old, new, old, new)"


class Manner(NamedTuple):
    """How a case was measured. What differs in it has no verdict."""

    protocol: ProtocolKind
    data: DataKind
    keep_env: tuple[tuple[str, str], ...]
    in_turn: bool
    code: str


# The fields of a Manner, in words.
DIFFERENT = ("protocol", "data", "--keep-env", "side by side or one after another", "code of kerasbench")


class Beside(NamedTuple):
    """What a case's ratio to another column of its run is now to what it was: the two share the hour of the machine."""

    column: Column
    ratio: float


@dataclass(frozen=True)
class Change:
    """One case that both sides measured. ``ratio`` is new over old.

    ``verdict`` is None where the two cannot be judged, and ``why`` says why not.
    """

    case: CaseKey
    old: LogEstimate
    new: LogEstimate
    ratio: LogEstimate
    source_changed: bool
    beside: Beside | None = None
    why: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Comparison:
    """What became of every case. ``failed`` were measured before and are not any more."""

    changes: list[Change]
    added: list[CaseKey]
    vanished: list[CaseKey]
    failed: list[tuple[CaseKey, Failure]]

    @property
    def regressions(self) -> list[CaseKey]:
        """The cases that became significantly slower, and those that were measured before and now fail."""
        slower = [change.case for change in self.changes if change.verdict is Verdict.SLOWER]
        return slower + [case for case, _ in self.failed]

    @property
    def overall(self) -> float | None:
        """The geometric mean of the ratios over all cases that both sides have, new over old; None without any."""
        logs = [change.ratio.log_centre for change in self.changes]
        return math.exp(statistics.fmean(logs)) if logs else None

    @property
    def unjudged(self) -> Counter[str]:
        """How many cases have no verdict, by the reason."""
        return Counter(change.why for change in self.changes if change.verdict is None)

    def require_decided(self) -> None:
        """Raise Undecided where no case has a verdict that says something, and none fails now."""
        if self.failed or any(change.verdict not in (None, Verdict.INCONCLUSIVE) for change in self.changes):
            return
        reasons = [f"{count(cases, 'case')}: {why}" for why, cases in self.unjudged.items()]
        unclear = sum(change.verdict is Verdict.INCONCLUSIVE for change in self.changes)
        reasons += [f"{count(unclear, 'case')}: inconclusive"] if unclear else []
        why = "; ".join(reasons) or "no case was measured on both sides"
        raise Undecided(f"nothing could be judged, so this is no pass: {why}; kerasbench versus measures two versions")


def compare(old: Sequence[Record], new: Sequence[Record]) -> Comparison:
    """Compare the training step of every case: Welch's interval on logarithms, over the runs of each side.

    Each side is one run or several of one machine. Of a side's runs those count together that measured a case alike.
    Runs of a side that follow each other, with none of the other side between, are one observation: else a slower day
    would be a slower version.
    """
    before, after = _Side.of(old), _Side.of(new)
    is_one = len({record.machine.identity for record in (*old, *new)}) == 1
    changes = [_change(case, before, after, is_one) for case in before.cases if case in after.cases]
    effect = max(before.record.minimal_effect, after.record.minimal_effect)
    verdicts = iter(judge_all([change.ratio for change in changes if not change.why], effect))
    return Comparison(
        changes=[one if one.why else dataclasses.replace(one, verdict=next(verdicts)) for one in changes],
        added=[case for case in after.cases if case not in before.cases],
        vanished=[case for case in before.cases if case not in after.cases and case not in after.failed],
        failed=[(case, after.failed[case]) for case in before.cases if case in after.failed],
    )


@dataclass(frozen=True)
class _Measured:
    """A case of one run. ``likeness`` is what runs of one side must share to count together."""

    started: str
    row: Row
    column: Column
    steps_ms: list[float]
    manner: Manner
    source: tuple[str, str]
    likeness: tuple[object, ...]

    @property
    def step_ms(self) -> float:
        return estimate(self.steps_ms).value


@dataclass(frozen=True)
class _Side:
    """One of the two sets: the runs of each case, the one that a page would show first, and the cases that failed."""

    record: Record
    cases: dict[CaseKey, list[_Measured]] = field(default_factory=dict)
    failed: dict[CaseKey, Failure] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Sequence[Record]) -> "_Side":
        side = cls(merge(records))
        runs: dict[CaseKey, dict[str, _Measured]] = {}
        for record in records:
            for key, one in _measured(record):
                runs.setdefault(key, {})[one.started] = one
        for row in summarize(side.record).rows:
            for column, case in row.cases.items():
                key, alike = row.key(column), runs.get(row.key(column), {})
                if case.failure is not None:
                    side.failed[key] = case.failure
                elif first := alike.get(row.origin.started):
                    others = [one for one in alike.values() if one is not first and one.likeness == first.likeness]
                    side.cases[key] = [first, *others]
        return side


def _measured(record: Record) -> Iterator[tuple[CaseKey, _Measured]]:
    """Yield the cases of a run that were measured; a control is the column that it repeats."""
    for row in summarize(record).rows:
        for column, case in row.cases.items():
            if case.failure is None and case.steps_ms and not column.options.control:
                yield row.key(column), _of_case(record, row, column)


def _of_case(record: Record, row: Row, column: Column) -> _Measured:
    case, origin = row.cases[column], row.origin
    codes = sorted({trial.code for trial, _ in case.trials})
    kept = tuple(sorted(origin.keep_env.items()))
    manner = Manner(origin.protocol, origin.data, kept, row.in_turn, " ".join(codes) if all(codes) else "")
    versions = sorted({package for _, found in case.trials for package in found.resolved.versions.items()})
    source = _source(record, row, column)
    likeness = (manner, source, versions, origin.versus, record.config.explain)
    return _Measured(origin.started, row, column, case.steps_ms, manner, source, likeness)


def _source(record: Record, row: Row, column: Column) -> tuple[str, str]:
    """Return what tells a changed case from an unchanged one."""
    found = next(one for one in record.scenarios if one.description.name == row.scenario.name)
    return found.source(column.backend, column.options.native)


def _change(case: CaseKey, before: _Side, after: _Side, is_one_machine: bool) -> Change:
    old, new = before.cases[case], after.cases[case]
    stretches = _stretches(old, new)
    ratio = welch(stretches[True], stretches[False])
    steps_ms = (
        estimate(runs[0].steps_ms if len(runs) == 1 else stretches[is_new])
        for is_new, runs in ((False, old), (True, new))
    )
    why = _why(old[0].manner, new[0].manner, ratio) if is_one_machine else DIFFERENT_MACHINES
    source_changed = old[0].source != new[0].source
    return Change(case, next(steps_ms), next(steps_ms), ratio, source_changed, _beside(old[0], new[0]), why)


def _stretches(old: Sequence[_Measured], new: Sequence[_Measured]) -> Mapping[bool, list[float]]:
    """Return for each side (new: True) the step of each stretch of its runs that none of the other interrupts."""
    of_side = [(one.started, is_new, one.step_ms) for is_new, runs in ((False, old), (True, new)) for one in runs]
    found: dict[bool, list[float]] = {False: [], True: []}
    for is_new, runs in groupby(sorted(of_side), key=lambda one: one[1]):
        found[is_new].append(statistics.geometric_mean([step_ms for _, _, step_ms in runs]))
    return found


def _why(old: Manner, new: Manner, ratio: LogEstimate) -> str:
    """Return why two sides of one machine cannot be judged; empty where they can."""
    differing = [what for what, one, other in zip(DIFFERENT, old, new, strict=True) if one != other]
    if differing:
        return f"measured differently ({', '.join(differing)})"
    if not ratio.has_interval:
        return TOO_FEW
    return "" if new.code else NO_CODE


def _beside(old: _Measured, new: _Measured) -> Beside | None:
    """Compare a case with the fastest other column that both runs have in its row, then and now."""
    others = [
        (found.value, column)
        for column, case in old.row.cases.items()
        if column != old.column and column in new.row.cases and not column.options.control
        if (found := case.estimate(old.row.headline)) is not None
    ]
    if not others:
        return None
    column = min(others, key=lambda other: other[0])[1]
    then, now = (
        between(one.row.cases[one.column], one.row.cases[column], one.row.headline, one.row.cases.values())
        for one in (old, new)
    )
    return Beside(column, now.value / then.value) if then and now else None
