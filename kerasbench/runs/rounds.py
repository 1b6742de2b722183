"""The rounds of a run: one block after another, each saved as it ends, until every row has enough."""

import time
from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psutil

from kerasbench import events, text
from kerasbench.analysis.ratios import RunRatios
from kerasbench.errors import ResultsError
from kerasbench.host.noise import MachineState
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import History
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import INTERRUPTED, UNWRITTEN, Run, Trial, completed_rounds
from kerasbench.results.store import Store
from kerasbench.runs import schedule, stopping
from kerasbench.runs.launcher import BlockLauncher
from kerasbench.runs.planner import Planner
from kerasbench.runs.records import new_record, resumed_record, session_of, trial_record
from kerasbench.runs.rows import Decision, RowProgress, rows_of, seconds


@dataclass
class Rounds:
    planned: Plan
    planner: Planner[Any]
    store: Store
    launcher: BlockLauncher
    on_event: events.OnEvent
    state: MachineState  # of the machine before the first child
    earlier: Run | None = None  # the run that this one goes on with, with those of its trials that count
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        new = new_record(self.planned, self.state)
        self.record = resumed_record(self.earlier, new) if self.earlier else new
        self._cases = {case.key: case for case in self.planned.cases}
        self.rows = rows_of(self.planned)
        for row in self.rows:
            usual = Decision(next_block=schedule.first_block(self.planned.effort, row.cases))
            row.apply(self.planner.decide(row, usual))
        if self.earlier is not None:
            self._restore(self.earlier.rounds_completed)

    def execute(self) -> Run:
        """Return the record, for the caller to save. ResultsError: the disk refuses the journal at the start."""
        self.store.begin(self.record)
        self.store.hold()
        try:
            self.on_event(events.RunStarted(self.planned, self.record, self.history))
            with self.launcher.folders:
                self._measure_rounds()
        except KeyboardInterrupt:
            self.record.stopped_because = INTERRUPTED
        except ResultsError as error:
            self.record.stopped_because = UNWRITTEN
            self.on_event(events.Notice(str(error)))
        finally:
            self.store.release()
            self.on_event(events.RunEnded(self.record.stopped_because == INTERRUPTED))
        self.record.finished = text.now()
        return self.record

    def _restore(self, completed: int) -> None:
        """Take in the rounds of the earlier run as they came, and decide after each as it did; nothing is measured."""
        row_of = {case.key: row for row in self.rows for case in row.cases}
        earlier = [trial for trial in self.record.trials if trial.round and trial.case in row_of]
        rounds_of = []
        for row in self.rows:
            trials = [trial for trial in earlier if row_of[trial.case] is row]
            rounds_of.append((row, completed_rounds((case.key for case in row.cases), trials, completed)))
        for index in range(1, 1 + max((trial.round for trial in earlier), default=0)):
            for trial in earlier:
                if trial.round == index:
                    row_of[trial.case].take(trial)
            for row, done in rounds_of:
                for trial in self._mismatches(row, index) if done == index else ():  # killed before it had saved that
                    self.record.trials.append(trial)
                    row.take(trial)
                row.rounds_done = min(done, index)
            self._decide([row for row in self.rows if row.rounds_done == index])
        needy = [row.rounds_done for row in self.rows if not row.over]
        self.record.rounds_completed = min(needy) if needy else max((row.rounds_done for row in self.rows), default=0)

    def _measure_rounds(self) -> None:
        started_s = time.monotonic() - (seconds(self.earlier.trials) if self.earlier else 0.0)
        while any(not row.over for row in self.rows):
            index = 1 + self.record.rounds_completed
            needy = [row for row in self.rows if not row.over and row.rounds_done < index]
            spent_s, another_s = time.monotonic() - started_s, sum(row.block_s for row in needy)
            stop = stopping.out_of_budget(self.planned.effort.budget_s, spent_s, another_s, index - 1)
            if stop:
                self.record.stopped_because = stop
                return
            drawn = schedule.order_cases(self.planned.cases, self.planned.config.seed, index)
            for row in sorted(needy, key=lambda row: drawn.index(row.cases[0])):  # rows are drawn as a whole
                row.arrange(drawn)
                self._measure_row(row, index)
            self._decide([row for row in needy if row.alive])
            for row in needy:
                if row.alive and row.decision.stop is not None:
                    reason = stopping.in_words(row.decision.stop, self.planned.effort)
                    self.on_event(events.RowEnded(list(row.alive), reason))
            self.record.rounds_completed = index
            self.record.stopped_because = "" if any(not row.over for row in self.rows) else self._why_all_stopped()
            self.on_event(events.RoundEnded(self.record, dict(ChainMap(*(row.measured for row in self.rows)))))
        self.record.stopped_because = self._why_all_stopped()

    def _why_all_stopped(self) -> str:
        reasons = [stop for row in self.rows if (stop := row.decision.stop) is not None]
        if not reasons:
            return "every case has failed" if self.planned.cases else "no case can be measured"
        return stopping.all_in_words(reasons, self.planned.effort)

    def _measure_row(self, row: RowProgress, index: int) -> None:
        """Measure a row in as few blocks as memory allows, each with a column of an earlier one; at last one by one."""
        for case in [*row.alive]:
            if failed := self.launcher.prepare(row, case, index):
                self._keep(row, [failed])
        left, reference, together = list(row.alive), list[Case](), True
        while left:
            beside = [case for case in left if together and case.key not in row.crowded]
            trials = self._measure_block(row, [*reference, *beside] if beside else left[:1], index)
            answered = {trial.case for trial in trials if not trial.crowded}
            together = len(trials) > 1
            left = [case for case in left if case in row.alive and case.key not in answered]
            reference = [case for case in row.alive if case not in left and case.key not in row.crowded][:1]
        if mismatches := self._mismatches(row, index):
            self._keep(row, mismatches)
        row.rounds_done = index

    def _decide(self, rows: Iterable[RowProgress]) -> None:
        """Decide whether rows go on after a round: all of them by the same knowledge of how ratios scatter."""
        of_run: RunRatios[Column] = RunRatios()
        for row in self.rows:
            row.ratios = of_run.add_row(row.columns)
        for row in rows:
            least, is_known = self.planned.effort.min_rounds, partial(self._is_known, row)
            precision = self._precision(row, self.planner.metric(row))
            usual = Decision(
                stopping.stop_reason(self.planned.effort, row.rounds_done, precision),
                schedule.next_block(row.cases[0], least, row.ratios, row.trials, is_known),
            )
            row.apply(self.planner.decide(row, usual))

    def _is_known(self, row: RowProgress, metric: str) -> bool:
        return all(of_ratio.is_enough for of_ratio in self._precision(row, metric).values())

    def _precision(self, row: RowProgress, metric: str) -> stopping.RowPrecision:
        effort, paired = self.planned.effort, self.planned.config.paired
        return stopping.precision_of(row.ratios, metric, paired, effort, self.record.minimal_effect)

    def _measure_block(self, row: RowProgress, cases: list[Case], index: int) -> list[Trial]:
        number = 1 + max((trial.block for trial in self.record.trials), default=0)
        session = session_of(self.record, time.time(), psutil.boot_time())  # it may have slept since the last block
        cpu_ns = time.process_time_ns()
        trials, is_interrupted = self.launcher.measure(row, cases, index, number)
        self.record.parent_cpu_ns += time.process_time_ns() - cpu_ns
        trials = [replace(trial, session=session) for trial in trials]
        self._keep(row, trials)
        for trial in trials:
            self._end_series(trial)
        if is_interrupted:
            raise KeyboardInterrupt
        return trials

    def _mismatches(self, row: RowProgress, index: int) -> list[Trial]:
        return [trial_record(case, index, Outcome([], 0, failure=failure)) for case, failure in row.find_mismatches()]

    def _keep(self, row: RowProgress, trials: Sequence[Trial]) -> None:
        self.record.trials += trials
        self.store.add(trials)
        for trial in trials:
            row.take(trial)
            self.on_event(events.TrialEnded(self._cases[trial.case], trial))

    def _end_series(self, trial: Trial) -> None:
        """Where a case of a sweep has run out of memory, give up the larger ones that have not been measured yet."""
        size, failure = trial.options.size, trial.failure
        if size is None or failure is None or failure.code is not Code.OOM or trial.crowded:
            return
        failure = Failure(Code.OOM, f"not tried: out of memory at {size.label.replace('=', ' ')}", failure.remedy)
        tried = {trial.case for trial in self.record.trials if trial.round}
        for row in self.rows:
            series = [case for case in row.alive if replace(case.key, size=size) == trial.case]
            larger = [case for case in series if case.options.size and case.options.size.exceeds(size)]
            outcome = Outcome([], 0, failure=failure)
            self._keep(row, [trial_record(case, trial.round, outcome) for case in larger if case.key not in tried])
