"""Two versions side by side, in the same blocks (``versus``), and two sets of results (``compare``).

The trials of a run share its hour, so that ``compare`` has one observation of each run, however many trials it has.
"""

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from kerasbench.analysis.cases import FIRST_STEP, PREDICTED_ONE, PREDICTED_RATE, Row
from kerasbench.analysis.estimates import (
    MINIMAL_EFFECT,
    Estimate,
    Judgement,
    LogEstimate,
    Verdict,
    estimate,
    judge_all,
    welch,
)
from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.rankings import Control
from kerasbench.analysis.ratios import in_row
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.errors import Undecided
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import DataKind
from kerasbench.results.run import Run
from kerasbench.results.store import distinct, merge
from kerasbench.text import count

MEMORY, DEVICE_MEMORY = "peak_rss_mib", "peak_device_mib"
# What another Keras cannot change where all else has the same versions: if it moved, something else is at work.
UNTOUCHED, TOUCHES = "backend_import_ms", "keras"
# What a new version may make worse besides what stands for a row. Of a rate, less is worse.
BESIDES = (FIRST_STEP, PREDICTED_ONE, PREDICTED_RATE, MEMORY, DEVICE_MEMORY)


@dataclass(frozen=True)
class VersionPair:
    """The columns of base and head in a row, which differ by their interpreter alone."""

    row: Row
    base: Column
    head: Column

    @property
    def again(self) -> Column:
        """The base a second time, where it was measured twice."""
        return self.base.with_options(control=True)

    @property
    def name(self) -> str:
        """What the two have in common: ``torch cpu jit=on``."""
        return self.base.paired.label

    @property
    def broken(self) -> Failure | None:
        """Why the head has no figures where the base has some; None where it has, or where the base has none too."""
        return self.failure(self.head) if self._is_measured(self.base) else None

    @property
    def baseless(self) -> Failure | None:
        """Why the base has no figures where the head has some, which then has nothing to be compared with."""
        return self.failure(self.base) if self._is_measured(self.head) else None

    @property
    def differ_in_keras_alone(self) -> bool:
        """Whether base and head have the same version of all else that their first trials name."""
        if not (self._is_measured(self.base) and self._is_measured(self.head)):
            return False
        base, head = (self.row.cases[one].trials[0][1].resolved.versions for one in (self.base, self.head))
        return {**base, TOUCHES: ""} == {**head, TOUCHES: ""}

    def failure(self, column: Column) -> Failure | None:
        case = self.row.cases.get(column)
        return case.failure if case else None

    def _is_measured(self, column: Column) -> bool:
        case = self.row.cases.get(column)
        return case is not None and case.failure is None and bool(case.trials)


@dataclass(frozen=True)
class Difference:
    """A figure of base and head."""

    pair: VersionPair
    metric: str
    base: Estimate
    head: Estimate
    ratio: LogEstimate  # head over base
    control: Control | None  # the base over itself, where it was measured twice
    verdict: Verdict = Verdict.INCONCLUSIVE  # of the head: slower where it is worse, whatever the figure is

    @property
    def is_rate(self) -> bool:
        return BY_NAME[self.metric].unit == RATE

    @property
    def is_headline(self) -> bool:
        """Whether it stands for its row: the training step, or a prediction of an untrained model."""
        return self.metric == self.pair.row.headline

    @property
    def withheld(self) -> bool:
        """Whether the base differs from itself, so that nothing can be said of the head."""
        return self.control is not None and self.control.is_off


@dataclass(frozen=True)
class Versus:
    """All that was compared between two versions, by their labels."""

    base: str
    head: str
    effect: float  # the smallest difference that counts
    pairs: list[VersionPair]
    differences: list[Difference]
    untouched: list[Difference] = field(default_factory=list)  # the negative control: what head cannot have changed

    @property
    def headlines(self) -> list[Difference]:
        """The figure that stands for each row, of each column."""
        return [one for one in self.differences if one.is_headline]

    @property
    def regressions(self) -> list[Difference]:
        """Every figure that is significantly worse, of whatever kind."""
        return [one for one in self.differences if one.verdict is Verdict.SLOWER]

    @property
    def broken(self) -> list[tuple[VersionPair, Failure]]:
        """Where the head fails, or computes something else, and the base does not."""
        return [(pair, pair.broken) for pair in self.pairs if pair.broken is not None]

    @property
    def is_worse(self) -> bool:
        return bool(self.regressions or self.broken)

    @property
    def moved(self) -> list[Difference]:
        """What is significantly different although the versions cannot have changed it."""
        return [one for one in self.untouched if one.verdict in (Verdict.SLOWER, Verdict.FASTER)]

    @property
    def decided(self) -> list[Difference]:
        """Every figure whose verdict says something."""
        return [one for one in self.differences if one.verdict is not Verdict.INCONCLUSIVE]


def require_decided(comparisons: Sequence[Versus]) -> None:
    """Raise Undecided where no figure has a verdict that says something, and the head fails nowhere alone.

    So too where others disturbed a figure: what is the same in the rest says nothing of it.
    """
    differences = [one for comparison in comparisons for one in comparison.differences]
    figures = count(len(differences), "number")
    disturbed = sum(one.ratio.disturbed for one in differences)
    if disturbed and not any(one.is_worse for one in comparisons):
        raise Undecided(
            f"undecided: other programs used the CPU while {disturbed} of {figures} were measured; "
            "close them and run again"
        )
    if not any(one.decided or one.broken for one in comparisons):
        why = f"{figures}, all undecided" if differences else "nothing was measured with both base and head"
        raise Undecided(f"nothing could be judged, so this is no pass: {why}")


def _mean_ratio(ratios: Sequence[LogEstimate]) -> float | None:
    return statistics.geometric_mean([ratio.value for ratio in ratios]) if ratios else None


def versus(summary: Summary) -> list[Versus]:
    """Compare the versions of a summary, those of each pair of labels; none where none were asked for."""
    rows: dict[tuple[str, ...], list[Row]] = {}
    for row in summary.rows:
        labels = tuple(row.origin.config.versus)
        if len(labels) == 2:
            rows.setdefault(labels, []).append(row)
    comparisons = []
    for (base, head), compared in rows.items():
        effect = max([summary.record.minimal_effect, *(row.origin.config.threshold for row in compared)])
        pairs = [pair for row in compared for pair in _pairs(row, base, head)]
        # The verdicts on each kind of figure are judged together, because their number matters.
        kinds = [[(pair, pair.row.headline) for pair in pairs]]
        kinds += [[(pair, metric) for pair in pairs if metric != pair.row.headline] for metric in BESIDES]
        differences = [one for kind in kinds for one in _differences(kind, effect)]
        untouched = _differences([(pair, UNTOUCHED) for pair in pairs if pair.differ_in_keras_alone], effect)
        comparisons.append(Versus(base, head, effect, pairs, differences, untouched))
    return comparisons


def _pairs(row: Row, base: str, head: str) -> list[VersionPair]:
    common = dict.fromkeys(
        column.paired
        for column in row.cases
        if column.options.environment in (base, head) and not column.options.control
    )
    return [
        VersionPair(row, column.with_options(environment=base), column.with_options(environment=head))
        for column in common
    ]


def _differences(figures: Sequence[tuple[VersionPair, str]], effect: float) -> list[Difference]:
    """Judge these metrics of pairs together."""
    differences = [one for figure in figures if (one := _unjudged(*figure)) is not None]
    costs = [None if one.withheld else (one.ratio.inverse if one.is_rate else one.ratio) for one in differences]
    judgements = judge_all(costs, effect, [one.pair.row.run for one in differences])
    found = []
    for one, (judged, verdict) in zip(differences, judgements, strict=True):
        ratio = judged.inverse if judged is not None and one.is_rate else judged
        found.append(dataclasses.replace(one, ratio=ratio or one.ratio, verdict=verdict))
    return found


def _unjudged(pair: VersionPair, metric: str) -> Difference | None:
    """Return a figure of a pair without its verdict; None where base or head have none."""
    cases = pair.row.cases
    if pair.base not in cases or pair.head not in cases:
        return None
    base, head = (cases[column].estimate(metric) for column in (pair.base, pair.head))
    ratio = in_row(pair.row, pair.head, pair.base, metric)
    if ratio is None or base is None or head is None:
        return None
    again = in_row(pair.row, pair.again, pair.base, metric) if pair.again in cases else None
    control = Control(pair.base, again) if again else None
    return Difference(pair, metric, base, head, _widened(ratio, again), control)


def _widened(ratio: LogEstimate, again: LogEstimate | None) -> LogEstimate:
    """Return a ratio of one or two blocks with the control's deviation in its error.

    Its slices do not know by how much processes differ; what the base shows against itself is one observation of it.
    """
    if ratio.log_error is None or ratio.basis != "slices" or again is None:
        return ratio
    return dataclasses.replace(ratio, log_error=math.hypot(ratio.log_error, again.log_centre))


DIFFERENT_MACHINES = "different machines"
NO_CODE = "the files do not say which code of kerasbench measured"
TOO_FEW = "a verdict needs three runs of each side by turns (old, new, old, new, old, new)"


class Manner(NamedTuple):
    """How a case was measured. What differs in it has no verdict."""

    protocol: str
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
    """One case that both sides measured."""

    case: CaseKey
    row: Row  # of the old side
    old: LogEstimate
    new: LogEstimate
    ratio: LogEstimate  # new over old
    source_changed: bool
    beside: Beside | None = None
    why: str = ""  # it has no verdict; empty where it has one
    verdict: Verdict | None = None

    def judged(self, judgement: Judgement) -> "Change":
        return dataclasses.replace(self, ratio=judgement.ratio or self.ratio, verdict=judgement.verdict)


@dataclass(frozen=True)
class RunComparison:
    """What became of every case."""

    changes: list[Change]
    added: list[CaseKey]
    vanished: list[CaseKey]
    failed: list[tuple[CaseKey, Failure]]  # they were measured before
    effect: float = MINIMAL_EFFECT  # the smallest difference that counts

    @property
    def regressions(self) -> list[CaseKey]:
        """The cases that became significantly slower, and those that were measured before and now fail."""
        slower = [change.case for change in self.changes if change.verdict is Verdict.SLOWER]
        return slower + [case for case, _ in self.failed]

    @property
    def overall(self) -> float | None:
        """The geometric mean of the ratios over all cases that both sides have, new over old; None without any."""
        return _mean_ratio([change.ratio for change in self.changes])

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
        reasons += [f"{count(unclear, 'case')}: undecided"] if unclear else []
        why = "; ".join(reasons) or "no case was measured on both sides"
        raise Undecided(f"nothing could be judged, so this is no pass: {why}; kerasbench versus measures two versions")


def compare(old: Sequence[Run], new: Sequence[Run]) -> RunComparison:
    """Compare what stands for every case, a training step or a prediction, over the runs of each side.

    By Welch's interval on logarithms.

    Each side is one run or several of one machine. Of a side's runs those count together that measured a case alike.
    Runs of a side that follow each other, with none of the other side between, are one observation: else a slower day
    would be a slower version. Runs old, old, new, old, new, new are two observations of each side.
    """
    before, after = _side(old), _side(new)
    is_one_machine = len({record.machine.identity for record in (*old, *new)}) == 1
    changes = [_change(case, before, after, is_one_machine) for case in before.cases if case in after.cases]
    effect = max(before.minimal_effect, after.minimal_effect)
    judgements = iter(judge_all([change.ratio for change in changes if not change.why], effect))
    return RunComparison(
        changes=[one if one.why else one.judged(next(judgements)) for one in changes],
        added=[case for case in after.cases if case not in before.cases],
        vanished=[case for case in before.cases if case not in after.cases and case not in after.failed],
        failed=[(case, after.failed[case]) for case in before.cases if case in after.failed],
        effect=effect,
    )


@dataclass(frozen=True)
class _Measured:
    """A case of one run."""

    started: str
    row: Row
    column: Column
    steps_ms: list[float]
    manner: Manner
    source: tuple[str, str]  # tells a changed case from an unchanged one
    likeness: tuple[object, ...]  # what runs of one side must share to count together

    @property
    def step_ms(self) -> float:
        return estimate(self.steps_ms).value


@dataclass(frozen=True)
class _Side:
    """One of the two sets. Of a case's runs, the first is the one that a page would show."""

    minimal_effect: float
    cases: dict[CaseKey, list[_Measured]] = field(default_factory=dict)
    failed: dict[CaseKey, Failure] = field(default_factory=dict)


def _side(records: Sequence[Run]) -> _Side:
    records = distinct(records)
    shown = merge(records)
    side = _Side(shown.minimal_effect)
    runs: dict[CaseKey, dict[str, _Measured]] = {}
    for record in records:
        for key, measured in _measured(record):
            runs.setdefault(key, {})[measured.started] = measured
    for row, column, case in summarize(shown).cases:
        key = row.key(column)
        if case.failure is not None:
            side.failed[key] = case.failure
        elif first := runs.get(key, {}).get(row.origin.started):
            alike = [one for one in runs[key].values() if one is not first and one.likeness == first.likeness]
            side.cases[key] = [first, *alike]
    return side


def _measured(record: Run) -> Iterator[tuple[CaseKey, _Measured]]:
    """Yield the cases of a run that were measured; a control is the column that it repeats."""
    scenarios = {one.description.name: one for one in record.scenarios}
    for row, column, case in summarize(record).cases:
        if case.failure is not None or not case.steps_ms or column.options.control:
            continue
        asked, codes = row.origin.config, sorted({trial.code for trial, _ in case.trials})
        kept = tuple(sorted(asked.keep_env.items()))
        code = " ".join(codes) if all(codes) else ""
        manner = Manner(row.origin.agenda.name, asked.data, kept, row.in_turn, code)
        source = scenarios[row.scenario.name].source(column.backend, column.options.native)
        versions = sorted({item for _, one in case.trials for item in one.resolved.versions.items()})
        likeness = (manner, source, versions, asked.versus, asked.race, asked.soak, asked.explain)
        yield row.key(column), _Measured(row.run, row, column, case.steps_ms, manner, source, likeness)


def _change(case: CaseKey, before: _Side, after: _Side, is_one_machine: bool) -> Change:
    old, new = before.cases[case], after.cases[case]
    old_ms, new_ms = _observations_ms(old, new)
    ratio = welch(new_ms, old_ms)
    return Change(
        case,
        old[0].row,
        estimate(old[0].steps_ms if len(old) == 1 else old_ms),
        estimate(new[0].steps_ms if len(new) == 1 else new_ms),
        ratio,
        source_changed=old[0].source != new[0].source,
        beside=_beside(old[0], new[0]),
        why=_why_unjudged(old[0].manner, new[0].manner, ratio) if is_one_machine else DIFFERENT_MACHINES,
    )


def _observations_ms(old: Sequence[_Measured], new: Sequence[_Measured]) -> tuple[list[float], list[float]]:
    """Return for each side the step of each stretch of its runs that no run of the other side interrupts."""
    runs = [(one.started, is_new, one.step_ms) for is_new, side in ((False, old), (True, new)) for one in side]
    observations: tuple[list[float], list[float]] = ([], [])
    for is_new, stretch in groupby(sorted(runs), key=lambda run: run[1]):
        observations[is_new].append(statistics.geometric_mean([step_ms for _, _, step_ms in stretch]))
    return observations


def _why_unjudged(old: Manner, new: Manner, ratio: LogEstimate) -> str:
    """Return why two sides of one machine cannot be judged; empty where they can."""
    differing = [name for name, a, b in zip(DIFFERENT, old, new, strict=True) if a != b]
    if differing:
        return f"measured differently ({', '.join(differing)})"
    if not ratio.has_interval:
        return TOO_FEW
    return "" if new.code else NO_CODE


def _beside(old: _Measured, new: _Measured) -> Beside | None:
    """Compare a case with the fastest other column that both runs have in its row, then and now."""
    others = {
        column: known.value
        for column, case in old.row.cases.items()
        if column != old.column and column in new.row.cases and not column.options.control
        if (known := case.estimate(old.row.headline)) is not None
    }
    if not others:
        return None
    column = min(others, key=lambda other: others[other])
    then, now = (in_row(one.row, one.column, column, one.row.headline) for one in (old, new))
    return Beside(column, now.value / then.value) if then and now else None
