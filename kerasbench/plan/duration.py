"""How long a run will take, and which differences it will be able to see, by earlier runs on this machine."""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from kerasbench import variants
from kerasbench.analysis import estimates
from kerasbench.analysis.cases import HEADLINE
from kerasbench.analysis.estimates import CONFIDENCE, MIN_RATIOS, MIN_TRIALS_FOR_INTERVAL, LogEstimate
from kerasbench.analysis.families import ASSUMED, TYPICAL_SCATTER, Family
from kerasbench.analysis.metrics import NS_PER_S
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.errors import ResultsError
from kerasbench.host import Machine
from kerasbench.plan.cases import Case, Plan
from kerasbench.protocol.columns import CaseKey
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results.run import Run, Trial
from kerasbench.results.store import records

RECENT = 3  # trials of a case that tell how long another takes: its first ones measure more
FILES = 3  # the newest ones: an old driver's or kernel's figures would mislead, and reading takes time
LOOKED_AT = 12  # for these: others may have been measured since
TYPICAL_BORROWED = 2.2  # degrees of freedom, in committed results (validation/moderated.py)


@dataclass(frozen=True)
class RunScatter:
    between: float = TYPICAL_SCATTER  # from block to block: the standard deviation of a ratio's logarithm
    borrowed: float = 0.0  # degrees of freedom that they lend each other; 0 where they are too few
    source: str = ""  # the file that tells it; empty for a guess


@dataclass(frozen=True)
class History:
    trial_s: dict[CaseKey, float] = field(default_factory=dict)  # a case's median trial, without others' turns
    scatter: RunScatter = RunScatter()


def recall(folder: Path, machine: Machine, planned: Plan) -> History:
    """Read the newest results of the same machine and protocol; files that cannot be read are passed over."""
    durations: dict[CaseKey, list[float]] = {}
    scatter, family, plan = None, family_of(planned), planned.effort.plan
    for file, record in _newest(folder, machine, plan):
        for trial in record.trials if record.config.effort.plan == plan else ():  # others measured less, or more
            if trial.measurement is not None:
                durations.setdefault(trial.case, []).append(trial.own_ns / NS_PER_S)
        scatter = scatter or run_scatter(summarize(record), family, file.name)
    if scatter is None:
        blocks = [ASSUMED[family].between_blocks(case.backend, HEADLINE) for case in planned.cases]
        scatter = RunScatter(max(blocks, default=TYPICAL_SCATTER))
    return History({case: statistics.median(spent) for case, spent in durations.items()}, scatter)


def family_of(planned: Plan) -> Family:
    """Of the ratios that a plan is about; of several the one that scatters most."""
    columns = [case.column for case in planned.cases if variants.competes(case.column)]
    if planned.config.paired or not columns:
        return Family.REPEATED
    return max(Family.of(columns[0], other) for other in columns)


def run_scatter(summary: Summary, family: Family, source: str = "") -> RunScatter | None:
    """Take the medians over all of a family that are compared; None before three blocks."""
    ratios = [
        contrast.ratio
        for ranking in summary.rankings
        for contrast in ranking.others
        if Family.of(contrast.under.column, contrast.over.column) is family
    ]
    # Those of one block, or over days, say nothing of another block.
    over_blocks = [ratio for ratio in ratios if ratio.has_interval and ratio.basis == "trials"]
    if not over_blocks:
        return None
    between = statistics.median((ratio.log_error or 0.0) * math.sqrt(ratio.trials) for ratio in over_blocks)
    borrowed = statistics.median(max(0.0, ratio.degrees - (ratio.trials - 1)) for ratio in over_blocks)
    return RunScatter(between, borrowed, source)


def _newest(folder: Path, machine: Machine, plan: TrialPlan) -> Iterator[tuple[Path, Run]]:
    with suppress(ResultsError):  # there are none
        newest = islice(records(folder, lambda file, why: None, newest_first=True), LOOKED_AT)
        of_machine = (pair for pair in newest if pair[1].machine.identity == machine.identity)
        fitting = (pair for pair in of_machine if _tells(pair[1], plan))
        yield from islice(fitting, FILES)


def _tells(record: Run, plan: TrialPlan) -> bool:
    """How long trials take, or how their ratios scatter: a quick look tells other runs neither."""
    earlier = record.config.effort.plan
    return earlier == plan or (earlier.kind == plan.kind and record.rounds_completed >= MIN_TRIALS_FOR_INTERVAL)


def detectable(planned: Plan, effect: float, scatter: RunScatter) -> dict[int, float]:
    """After the fewest rounds and after the most; empty: too few for intervals."""
    together, least, most = comparisons(planned.cases), planned.effort.min_rounds, planned.effort.max_rounds
    if most < MIN_TRIALS_FOR_INTERVAL:
        return {}
    after = (max(least, MIN_TRIALS_FOR_INTERVAL), most)  # some begin with one
    between = ASSUMED[family_of(planned)].between_sessions
    return {rounds: minimum_detectable_effect(rounds, scatter, effect, together, between) for rounds in after}


def comparisons(cases: Sequence[Case]) -> int:
    """Count the ratios that the larger table of a plan judges together: in each row all others to the fastest."""
    rows = Counter(case.row for case in cases if variants.competes(case.column))
    tables = Counter[bool]()
    for (*_, size, _), columns in rows.items():
        tables[size is None] += columns - 1
    return max([1, *tables.values()])


def minimum_detectable_effect(
    rounds: int, scatter: RunScatter, effect: float, together: int = 1, between_sessions: float = 0.0
) -> float:
    """Return the difference, as a share, that will be called in nine of ten cases, of so many judged ``together``.

    By the noncentral t distribution, at the level over their number; ``between_sessions`` is a standard deviation.
    """
    borrowed = (scatter.borrowed or TYPICAL_BORROWED) if together >= MIN_RATIOS else 0.0
    confidence = 1 - (1 - CONFIDENCE) / together
    error, degrees = scatter.between / math.sqrt(rounds), borrowed + rounds - 1
    ratio = LogEstimate(0.0, error, degrees, rounds, confidence=confidence, between_sessions=between_sessions)
    return estimates.detectable(ratio, effect) or 0.0


# On 2 cores; only until the first trials have been timed. The first: of all but the slices and published epochs.
TYPICAL_START_S, TYPICAL_STEP_S, TYPICAL_EPOCH_S = 15.0, 0.002, 0.01


def typical_trial_s(case: Case) -> float:
    workload = case.selected.workload
    runs_epochs = case.plan.agenda.in_full and not workload.predicts_only
    published_s = workload.epochs * (TYPICAL_EPOCH_S + TYPICAL_STEP_S * workload.steps) if runs_epochs else 0.0
    return TYPICAL_START_S + case.slices_ns / NS_PER_S + published_s


class Eta:
    """How long a run will take: what a case's trials have taken, else a guess, corrected by how others were guessed."""

    def __init__(self, planned: Plan, known_s: Mapping[CaseKey, float] | None = None) -> None:
        self._cases, self._effort = planned.cases, planned.effort
        self._guess_s = {case.key: (known_s or {}).get(case.key) or typical_trial_s(case) for case in planned.cases}
        self._foreseen_s: dict[CaseKey, float] = {}  # by first steps
        self._spent_s: dict[CaseKey, list[float]] = {}
        self._trial_counts: Counter[CaseKey] = Counter()  # trials
        self._rounds: Counter[CaseKey] = Counter()
        self._over: set[CaseKey] = set()

    def carried(self, record: Run) -> int:
        cases = {case.key: case for case in self._cases}
        trials = [trial for trial in record.trials if trial.round and trial.case in cases]
        for trial in trials:
            self.ended(cases[trial.case], trial)
        return len(trials)

    def foreseen(self, cases: Collection[Case], block_s: float) -> None:
        self._foreseen_s.update({case.key: block_s / len(cases) for case in cases})

    def ended(self, case: Case, trial: Trial) -> None:
        own_ns = trial.own_ns
        if trial.block and not trial.started_alone:  # its start and warm-ups are those of the others, too
            own_ns = min(own_ns, trial.wall_ns // sum(other.row == case.row for other in self._cases))
        if trial.wall_ns:  # else it was given up without a trial
            self._spent_s.setdefault(case.key, []).append(own_ns / NS_PER_S)
        self._trial_counts[case.key] += 1
        self._rounds[case.key] = trial.round
        if trial.ends_case:
            self._over.add(case.key)

    def decided(self, cases: Sequence[Case]) -> None:
        self._over.update(case.key for case in cases)

    @property
    def trials(self) -> int:
        """Trials that the whole run comes to, at most; a row's first column has more where not all fit into memory."""
        fewer = sum(self._effort.max_rounds - self._rounds[key] for key in self._over)
        more = sum(trials - self._rounds[key] for key, trials in self._trial_counts.items())
        return len(self._cases) * self._effort.max_rounds - fewer + more

    @property
    def left_s(self) -> tuple[float, float]:
        """At least, where every row is decided as soon as it can be, and at most."""
        return self._until(self._effort.min_rounds), self._until(self._effort.max_rounds)

    def left_within(self, spent_s: float) -> tuple[float, float]:
        """Return ``left_s`` of a run that has taken so long: after its first round its budget ends it."""
        (least_s, most_s), budget_s = self.left_s, self._effort.budget_s
        if budget_s is not None:
            most_s = min(most_s, max(self._until(1), budget_s - spent_s))
        return min(least_s, most_s), most_s

    def _until(self, rounds: int) -> float:
        """Return how long it takes until so many rounds are done, in s."""
        guessed_s = sum(self._guess_s[key] * len(spent) for key, spent in self._spent_s.items())
        correction = sum(map(sum, self._spent_s.values())) / guessed_s if guessed_s else 1.0
        left_s = 0.0
        for case in self._cases:
            recent, rounds_done = self._spent_s.get(case.key, [])[-RECENT:], self._rounds[case.key]
            if case.key not in self._over:
                guess_s = self._foreseen_s.get(case.key, self._guess_s[case.key] * correction)
                trial_s = sum(recent) / len(recent) if recent else guess_s
                before = variants.has(case.options, "prepares") or variants.has(case.options, "exports")
                first = before and not recent  # a process before them fills the caches, or exports
                left_s += trial_s * (first + max(0, rounds - rounds_done))
        return left_s
