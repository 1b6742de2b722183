"""Two sets of results: what became of every case. The trials of a run share its hour: a run is one observation."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import NamedTuple

from kerasbench.analysis.contrasts import CaseInRow, Contrast, judge
from kerasbench.analysis.differences import Difference, differences
from kerasbench.analysis.estimates import MINIMAL_EFFECT, LogEstimate, Verdict, estimate
from kerasbench.analysis.metrics import MEMORY_BY_PHASE
from kerasbench.analysis.summary import summarize
from kerasbench.errors import Undecided
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.results.merge import distinct, merge
from kerasbench.results.run import Run
from kerasbench.text import count

DIFFERENT_MACHINES = "different machines"
NO_CODE = "the files do not say which code of kerasbench measured"
CODE = "code of kerasbench"
TOO_FEW = "a verdict needs three runs of each side by turns (old, new, old, new, old, new)"


class Change(NamedTuple):
    contrast: Contrast  # new over old: each of the newest run; the ratio is of all
    old: LogEstimate
    new: LogEstimate
    source_changed: bool
    # What its ratio to another column of its run is now to what it was: the two share the hour of the machine.
    beside: tuple[Column, float] | None

    @property
    def case(self) -> CaseKey:
        return self.contrast.under.key


@dataclass(frozen=True)
class RunComparison:
    changes: list[Change]
    added: list[CaseKey]
    vanished: list[CaseKey]
    failed: list[tuple[CaseKey, Failure]]  # they were measured before
    effect: float = MINIMAL_EFFECT  # the smallest difference that counts
    differences: list[Difference] = field(default_factory=list)  # which code ran
    memory: list[Change] = field(default_factory=list)  # by phase, of the same cases

    @property
    def verdicts(self) -> Counter[Verdict | None]:
        return Counter(change.contrast.verdict for change in self.changes)

    @property
    def regressions(self) -> list[CaseKey]:
        """The cases that are clearly slower or hold more memory, and those that were measured before and now fail."""
        worse = [change.case for change in (*self.changes, *self.memory) if change.contrast.verdict is Verdict.SLOWER]
        return [*dict.fromkeys(worse)] + [case for case, _ in self.failed]

    @property
    def overall(self) -> float | None:
        ratios = [change.contrast.ratio.value for change in self.changes]
        return statistics.geometric_mean(ratios) if ratios else None

    @property
    def unjudged(self) -> Counter[str]:
        return Counter(change.contrast.why for change in self.changes if change.contrast.verdict is None)

    def require_decided(self) -> None:
        """Raise Undecided where no case has a verdict that says something, and none fails now."""
        reasons = self.unjudged + Counter(undecided=self.verdicts[Verdict.INCONCLUSIVE])
        if self.failed or len(self.changes) > reasons.total():
            return
        why = "; ".join(f"{count(cases, 'case')}: {why}" for why, cases in reasons.items())
        why = why or "no case was measured on both sides"
        raise Undecided(
            f"everything is undecided, so nothing has passed: {why}; kerasbench versus measures two versions"
        )


def compare(old: Sequence[Run], new: Sequence[Run]) -> RunComparison:
    """Compare what stands for every case over the runs of each side, by Welch's interval on logarithms."""
    (was, before, _), (now, after, failed) = _side(old), _side(new)
    is_one_machine = len({record.machine.identity for record in (*old, *new)}) == 1
    both = [(before[case], after[case]) for case in before if case in after]
    effect = max(was.minimal_effect, now.minimal_effect)
    changes = _judged([_change(*pair, is_one_machine, pair[0][0].place.row.headline) for pair in both], effect)
    memory = []
    for metric in MEMORY_BY_PHASE:
        measured = [pair for pair in both if all(side[0].values(metric) for side in pair)]
        memory += _judged([_change(*pair, is_one_machine, metric) for pair in measured], effect)
    return RunComparison(
        changes=changes,
        added=[case for case in after if case not in before],
        vanished=[case for case in before if case not in after and case not in failed],
        failed=[(case, failed[case]) for case in before if case in failed],
        effect=effect,
        memory=memory,
        differences=[
            different
            for case in before
            if case in after
            for different in differences(after[case][0].place, before[case][0].place)
        ],
    )


class _Observation(NamedTuple):
    place: CaseInRow
    steps_ms: list[float]
    manner: dict[str, object]  # how it was measured, in words: what differs in it has no verdict
    source: tuple[str, str]  # tells a changed case from an unchanged one
    likeness: tuple[object, ...]  # what runs of one side must share to count together

    def values(self, metric: str) -> list[float]:
        return self.steps_ms if metric == self.place.row.headline else self.place.case.values(metric)


def _side(records: Sequence[Run]) -> tuple[Run, dict[CaseKey, list[_Observation]], dict[CaseKey, Failure]]:
    """Return a side merged, the runs that measured each case (first the one that a page shows), and what failed."""
    records = distinct(records)
    shown = merge(records)
    runs: dict[CaseKey, dict[str, _Observation]] = {}
    for observed in chain.from_iterable(map(_observed, records)):
        runs.setdefault(observed.place.key, {})[observed.place.row.run] = observed
    cases: dict[CaseKey, list[_Observation]] = {}
    failed: dict[CaseKey, Failure] = {}
    for row, column, case in summarize(shown).cases:
        key = row.key(column)
        if case.failure is not None:
            failed[key] = case.failure
        elif first := runs.get(key, {}).get(row.run):
            alike = [run for run in runs[key].values() if run is not first and run.likeness == first.likeness]
            cases[key] = [first, *alike]
    return shown, cases, failed


def _observed(record: Run) -> Iterator[_Observation]:
    """Yield the cases of a run that were measured; a control is the column that it repeats."""
    scenarios = {scenario.description.name: scenario for scenario in record.scenarios}
    for row, column, case in summarize(record).cases:
        if case.failure is not None or not case.steps_ms or column.options.control:
            continue
        config, codes = row.origin.config, sorted({trial.code for trial, _ in case.trials})
        manner = {
            "protocol": row.origin.agenda.name,
            "data": config.data,
            "--keep-env": config.keep_env,
            "side by side or one after another": row.in_turn,
            CODE: " ".join(codes) if all(codes) else "",
        }
        source = scenarios[row.scenario.name].source(column)
        versions = sorted({item for _, measurement in case.trials for item in measurement.resolved.versions.items()})
        likeness = (manner, source, versions, config.mode, config.own)
        yield _Observation(CaseInRow(row, column), case.steps_ms, manner, source, likeness)


def _judged(changes: Sequence[Change], effect: float) -> list[Change]:
    contrasts = judge({c.case: c.contrast for c in changes if not c.contrast.why}, effect, by_run=False)
    return [change._replace(contrast=contrasts.get(change.case, change.contrast)) for change in changes]


def _change(old: Sequence[_Observation], new: Sequence[_Observation], is_one_machine: bool, metric: str) -> Change:
    # A stretch of runs of one side is one observation: else a slower day would be a slower version.
    sides = ((False, old), (True, new))
    runs = [
        (run.place.row.run, is_new, estimate(values).value)
        for is_new, side in sides
        for run in side
        if (values := run.values(metric))
    ]
    observations: tuple[list[float], list[float]] = ([], [])
    for is_new, stretch in groupby(sorted(runs), key=lambda run: run[1]):
        observations[is_new].append(statistics.geometric_mean([value for _, _, value in stretch]))
    old_values, new_values = observations
    ratio = estimate(new_values).and_then(estimate(old_values).inverse)
    differing = [name for name, was in old[0].manner.items() if new[0].manner[name] != was]
    why = ""
    if not is_one_machine:
        why = DIFFERENT_MACHINES
    elif differing:
        why = f"measured differently ({', '.join(differing)})"
    elif not ratio.has_interval:
        why = TOO_FEW
    elif not new[0].manner[CODE]:
        why = NO_CODE
    return Change(
        Contrast(new[0].place, old[0].place, metric, ratio, why=why),
        estimate(old[0].values(metric) if len(old) == 1 else old_values),
        estimate(new[0].values(metric) if len(new) == 1 else new_values),
        source_changed=old[0].source != new[0].source,
        beside=_beside(old[0].place, new[0].place),
    )


def _beside(old: CaseInRow, new: CaseInRow) -> tuple[Column, float] | None:
    """Compare a case with the fastest other column that both runs have in its row, then and now."""
    metric = old.row.headline
    others = {
        column: known.value
        for column, case in old.row.cases.items()
        if column != old.column and column in new.row.cases and not column.options.control
        if (known := case.estimate(metric)) is not None
    }
    if not others:
        return None
    column = min(others, key=others.__getitem__)
    then, now = (place.row.ratios.estimate(place.column, column, metric) for place in (old, new))
    return (column, now.value / then.value) if then and now else None
