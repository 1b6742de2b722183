"""One block from a run's side: what its columns are asked for, by which rules they take turns, what surrounded it.

The rounds: one block after another, saved as they end, until every row has enough.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol as Interface

from kerasbench import text
from kerasbench.errors import ResultsError
from kerasbench.host.noise import State, booted_s
from kerasbench.plan.cases import Case, Plan
from kerasbench.processes import outcome
from kerasbench.processes.block import BlockMember, BlockPolicy, Ear
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code
from kerasbench.results.record import INTERRUPTED, UNWRITTEN, Record, TrialRecord, completed_rounds
from kerasbench.results.store import Store
from kerasbench.runs import rows, schedule, surroundings
from kerasbench.runs.rows import Calibration, Row, ordered, rows_of, seconds
from kerasbench.runs.schedule import Between, Ending
from kerasbench.runs.surroundings import Judge, Watcher

SAVED_SHARE = 0.75  # of the machine's memory for a saved model, so that a hostile one does not bring the machine down


class Launch(Interface):
    """Measures one block and tells how it goes meanwhile, as children.block.measure does. None: it did not fit."""

    def __call__(
        self, entrants: Sequence[BlockMember], rules: BlockPolicy, ear: Ear, alone: bool, /
    ) -> Sequence[Outcome | None]: ...


class Observer(Interface):
    """Who is told how a run goes."""

    def run_began(self, planned: Plan, record: Record) -> None: ...
    def gate_closed(self, row: str, reason: str) -> None: ...
    def trial_began(self, case: Case, round_index: int) -> None: ...
    def phase_began(self, case: Case, phase: str) -> None: ...
    def tick(self) -> None: ...
    def trial_ended(self, case: Case, trial: TrialRecord) -> None: ...
    def row_ended(self, cases: Sequence[Case], why: str) -> None: ...
    def round_ended(self, record: Record) -> None: ...
    def run_ended(self) -> None: ...


@dataclass(frozen=True)
class _Told:
    """Tells an observer of a block, whose columns are numbered there."""

    observer: Observer
    cases: Sequence[Case]
    round_index: int

    def began(self, index: int, /) -> None:
        self.observer.trial_began(self.cases[index], self.round_index)

    def phase(self, index: int, name: str, /) -> None:
        self.observer.phase_began(self.cases[index], name)

    def tick(self) -> None:
        self.observer.tick()


def _allowed_bytes(case: Case, planned: Plan) -> int | None:
    """Return what a trial may hold where nobody said so: of a saved model, which may be anybody's, not everything."""
    saved = case.selected.entry.is_saved and not case.selected.entry.model_config.trust
    return int(SAVED_SHARE * planned.machine.memory_bytes) if saved else None


@dataclass(frozen=True)
class Blocks:
    """Measures the blocks of a run. ``rest_s``: nobody runs for so long before each turn."""

    planned: Plan
    launch: Launch
    watch: Watcher
    observer: Observer
    interpreter: Callable[[Environment], str]
    rest_s: float = 0.0
    judge: Judge = field(default_factory=Judge)

    def measure(self, row: Row, cases: Sequence[Case], index: int, number: int) -> list[tuple[Case, TrialRecord]]:
        """Measure cases of a row side by side in this round, and return the trials of those that were started."""
        ear, known = _Told(self.observer, cases, index), [row.known[case.key] for case in cases]
        entrants = [self._entrant(case, one) for case, one in zip(cases, known, strict=True)]

        room = self._room(cases, known)

        def launched() -> Sequence[Outcome | None]:
            return self.launch(entrants, self._rules(cases, room, number), ear, row.starts_alone)

        outcomes, seen = self.watch(
            [case.device for case in cases], launched, partial(self.observer.gate_closed, cases[0].row_label)
        )
        if row.starts_alone:  # else several have started meanwhile
            for place, held_bytes in room.seen_on_cards().items():
                known[place].saw_on_card(held_bytes)
        several = sum(outcome is not None for outcome in outcomes) > 1
        trials: list[tuple[Case, TrialRecord]] = []
        for case, ended, around in zip(cases, outcomes, seen, strict=True):
            if ended is not None:
                found = rows.trial_record(case, index, ended, number, several)
                trials.append((case, self.judge(found, around)))
        return trials

    def _entrant(self, case: Case, known: Calibration) -> BlockMember:
        asked = self.planned.config
        allowed = asked.memory_limit_bytes or _allowed_bytes(case, self.planned)
        limited = outcome.trial_limits(asked.timeout_s, allowed, asked.effort.protocol.kind, known.first_s)
        request = rows.trial_request(case, known.protocol, self.planned)
        return BlockMember(self.interpreter(case.column.environment), request, limited)

    def _room(self, cases: Sequence[Case], known: Sequence[Calibration]) -> surroundings.Room:
        return surroundings.memory_room(
            [case.device for case in cases], [one.peak_bytes for one in known], [one.on_card_bytes for one in known]
        )

    def _rules(self, cases: Sequence[Case], room: surroundings.Room, number: int) -> BlockPolicy:
        """Return by what a block goes; its number draws the order, so that no two have the same."""
        protocol, workload = cases[0].protocol, cases[0].selected.workload
        return BlockPolicy(
            schedule.draw_orders(f"{self.planned.config.seed}/{number}"),
            partial(schedule.enough, protocol, schedule.shares(protocol, workload)),
            room,
            self.rest_s,
        )


def _between() -> Between:
    from kerasbench.analysis.ratios import between

    return between


# The kernel's own period of a control group's quota (cpu.max): what a column used of it beyond its share is not taken
# from the next one's.
QUOTA_PERIOD_S = 0.1


@dataclass
class Run:
    """One run. ``launch`` measures a block, wherever it likes (children here, by ``interpreter`` of each column's).

    ``earlier`` is the run that this one goes on with, with those of its trials that count as this run's.
    """

    planned: Plan
    store: Store
    launch: Launch
    watch: Watcher
    observer: Observer
    state: State
    earlier: Record | None = None
    interpreter: Callable[[Environment], str] = lambda environment: ""
    in_order: Callable[[Sequence[Case], int, int], list[Case]] = schedule.order_cases
    clock_s: Callable[[], float] = time.monotonic
    between: Between = field(default_factory=_between)
    record: Record = field(init=False)
    rows: list[Row] = field(init=False)
    _blocks: Blocks = field(init=False)
    _sitting: int = field(init=False)

    def __post_init__(self) -> None:
        limited = self.state.quota_cores is not None and self.state.quota_cores < rows.processors()
        rest_s = QUOTA_PERIOD_S if limited else 0.0
        self._blocks = Blocks(self.planned, self.launch, self.watch, self.observer, self.interpreter, rest_s)
        self.record = rows.new_record(self.planned, self.state)
        self._sitting = rows.sitting(self.earlier, time.time(), booted_s())
        self.rows = rows_of(self.planned)
        if self.earlier is not None:
            self.record = rows.resumed_record(self.earlier, self.record)
            self._restore()

    def execute(self) -> Record:
        """Measure the plan's rows round by round and return the record, each block of which ``store`` holds at once.

        Ctrl-C ends the block in flight and the run, and so does a disk that takes no more results; the record then
        says so. How the run ended is in the record alone: the caller saves it.

        Raises:
            ResultsError: the disk refuses the journal before anything has been measured.
        """
        self.store.begin(self.record)
        try:
            self.observer.run_began(self.planned, self.record)
            self._rounds()
        except KeyboardInterrupt:
            self.record.stopped_because = INTERRUPTED
        except ResultsError:
            self.record.stopped_because = UNWRITTEN
        finally:
            self.observer.run_ended()
        self.record.finished = text.now()
        return self.record

    @property
    def _precision(self) -> float:
        return schedule.precision_of(self.record.minimal_effect)

    def _restore(self) -> None:
        """Work out what each row has had in the earlier run, and whether that was enough; nothing is measured."""
        of = {case.key: row for row in self.rows for case in row.cases}
        for trial in self.record.trials:
            if trial.round and trial.case in of:
                of[trial.case].take(trial)
        for row in self.rows:
            whole = completed_rounds((case.key for case in row.cases), row.trials)
            self.record.trials += [trial for _, trial in self._leave_out_odd(row, whole)]  # killed before it was said
            for index in range(1, whole + 1):
                self._decide(row, index)
        needy = [row.had for row in self.rows if not row.over]
        self.record.rounds_completed = min(needy) if needy else max((row.had for row in self.rows), default=0)

    def _rounds(self) -> None:
        began_s = self.clock_s()
        earlier_s = seconds(self.earlier.trials) if self.earlier else 0.0
        while any(not row.over for row in self.rows):
            index = 1 + self.record.rounds_completed
            needy = [row for row in self.rows if not row.over and row.had < index]
            spent_s, another_s = self.clock_s() - began_s + earlier_s, sum(row.block_s for row in needy)
            stop = schedule.out_of_budget(self.planned.effort.budget_s, spent_s, another_s, index - 1)
            if stop:
                self.record.stopped_because = stop
                return
            drawn = self.in_order(self.planned.cases, self.planned.config.seed, index)
            for row in ordered(needy, drawn):
                row.arrange(drawn)
                self._round_of(row, index)
            self.record.rounds_completed = index
            self.record.stopped_because = "" if any(not row.over for row in self.rows) else self._ended()
            self.observer.round_ended(self.record)
        self.record.stopped_because = self._ended()

    def _ended(self) -> str:
        """Say why the run ends, all rows of which are over."""
        endings = [row.ending for row in self.rows if row.ending is not None]
        if not endings:
            return "every case has failed" if self.planned.cases else "no case can be measured"
        several = any(len(row.alive) > 1 for row in self.rows)
        return schedule.summed_up(endings, self.planned.effort, self._precision, several)

    def _round_of(self, row: Row, index: int) -> None:
        """Measure a row's columns in this round: in one block, or in several with the first column again.

        One by one, where even two do not fit into memory; by itself, what has run out of it beside others.
        """
        left, reference, together = list(row.alive), list[Case](), True
        while left:
            beside = [case for case in left if together and case.key not in row.crowded]
            trials = self._block(row, [*reference, *beside] if beside else left[:1], index)
            answered, together = [case for case, trial in trials if not trial.crowded], len(trials) > 1
            left = [case for case in left if case in row.alive and case not in answered]
            reference = [case for case in row.alive if case not in left and case.key not in row.crowded][:1]
        if odd := self._leave_out_odd(row, index):
            self._keep(odd)
        if row.alive:
            self._decide(row, index)
            if row.ending is not None:
                several = len(row.alive) > 1
                why = schedule.said(row.ending, self.planned.effort, self._precision, several)
                self.observer.row_ended(row.alive, why)
        row.had = index

    def _decide(self, row: Row, index: int) -> None:
        """Decide whether a row goes on after a round, which later ones may have followed already."""
        row.had = index
        row.widths.append(schedule.half_widths([one for one in row.trials if one.round <= index], self.between))
        enough = schedule.ending(self.planned.effort, row.widths, self._precision)
        row.ending = Ending.BROKEN if row.is_broken else enough

    def _block(self, row: Row, cases: list[Case], index: int) -> list[tuple[Case, TrialRecord]]:
        """Measure cases side by side, keep their trials, and return them: of those cases that were started."""
        number = 1 + max((one.block for one in self.record.trials), default=0)
        cpu_ns = time.process_time_ns()
        measured = self._blocks.measure(row, cases, index, number)
        trials = [(case, dataclasses.replace(trial, sitting=self._sitting)) for case, trial in measured]
        self.record.parent_cpu_ns += time.process_time_ns() - cpu_ns
        self._keep(trials)
        for case, trial in trials:
            row.take(trial)
            self._end_series(case, trial)
        return trials

    def _leave_out_odd(self, row: Row, index: int) -> list[tuple[Case, TrialRecord]]:
        """Measure a case no further that computes something else than the others; return the records that say so.

        Its trials stay in the record.
        """
        odd = [(case, rows.trial_record(case, index, Outcome([], 0, failure=failure))) for case, failure in row.odd()]
        for _, trial in odd:
            row.take(trial)
        return odd

    def _keep(self, trials: Sequence[tuple[Case, TrialRecord]]) -> None:
        """Put trials into the record and onto the disk, all at once, and tell of them."""
        self.record.trials += [trial for _, trial in trials]
        self.store.add([trial for _, trial in trials])
        for case, trial in trials:
            self.observer.trial_ended(case, trial)

    def _end_series(self, case: Case, trial: TrialRecord) -> None:
        """Where a case of a sweep has run out of memory, give up the larger ones that have not been measured yet."""
        if trial.failure is None or trial.failure.code is not Code.OOM or trial.crowded:
            return
        untried = [one for row in self.rows for one in row.alive if all(had.case != one.key for had in row.trials)]
        given_up = schedule.larger_in_series(case, untried)
        self._keep([(one, rows.not_tried(case, one, trial.failure, trial.round)) for one in given_up])
        for row in self.rows:
            row.give_up([one for one in given_up if one in row.alive])
