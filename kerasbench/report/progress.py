"""Progress of a run on stderr."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO, cast

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from kerasbench import events, variants
from kerasbench.analysis.cases import STEADY, Measured, headline_of
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import Eta, History, RunScatter, detectable, family_of, run_scatter
from kerasbench.protocol.columns import CaseKey
from kerasbench.protocol.measurement import Slice
from kerasbench.report.live import LiveBlock, LogRatios
from kerasbench.report.words import duration, names, percent, seconds, three_digits
from kerasbench.results.run import Run, Trial
from kerasbench.text import blanked, count, wrapped

LONG_S, AT_EASE_S = 120.0, 60.0  # what is told how it would take about so long


class SafeStream:
    """A stream that drops what it cannot write: a terminal that was closed is no reason to end a run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def to_stderr() -> Console:
    # FORCE_COLOR, which Jupyter sets, would have the bar drawn again and again into a pipe.
    interactive = None if sys.stderr.isatty() else False
    return Console(file=cast("TextIO", SafeStream(sys.stderr)), highlight=False, force_interactive=interactive)


class ConsoleProgress(Progress):
    """Draw the events of a run: on a terminal the columns of the block above a bar, elsewhere plain lines."""

    # By no thread of its own, which would run beside the measured child; between cycles, when none runs, more often.
    REDRAW_S, REDRAW_CYCLE_S = 1.0, 0.5
    _above: Sequence[Text] = ()  # lines above the bar

    def __init__(self, console: Console, sentences: Callable[[Summary], list[str]] = lambda summary: []) -> None:
        cropped = Column(no_wrap=True, overflow="crop")  # for "…" is a character that not every terminal has
        done = TextColumn("{task.completed:.0f}/{task.total:.0f}", table_column=cropped)
        columns = (done, BarColumn(24), TextColumn("{task.description}", markup=False, table_column=cropped))
        is_plain = not console.is_interactive
        super().__init__(*columns, console=console, auto_refresh=False, transient=True, disable=is_plain)
        self._sentences = sentences
        self._task = self.add_task("")  # one, whatever happens: a run may be interrupted before it has begun
        self._step: Progress | None = None
        self._drawn_s = self._cycle_s = 0.0
        self._block: LiveBlock | None = None
        self._ratios: dict[str, list[LogRatios]] = {}  # of each row's blocks that are over

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from self._above
        yield from super().get_renderables()

    def __call__(self, event: events.Event) -> None:  # noqa: C901, PLR0912 - a case for each event
        match event:
            case events.Notice(text):
                self._say(text)
            case events.StepStarted(text):
                self._start_step(text)
            case events.StepEnded():
                if self._step is not None:
                    self._step.stop()
            case events.RunStarted(plan, record, history):
                self._start_run(plan, record, history)
            case events.Waiting(row, reason):
                self._draw(f"{row}: waiting for the machine to cool down ({reason})")
            case events.BlockStarted(cases, is_first, stage, left):
                earlier = self._ratios.setdefault(cases[0].row_label, [])
                self._block = LiveBlock(cases, is_first, self._effect, earlier, stage)
                self._eta.decided(left)
                self._draw()
            case events.StepsKnown(steps_ns, spent_s, left_s):
                self._eta.foreseen([stepped for stepped, _ in steps_ns], spent_s + left_s)
                self._say(foresight(steps_ns, spent_s, left_s))
            case events.TrialEnded(case, trial):
                self._end_trial(case, trial)
            case events.RowEnded(cases, reason):
                self._end_row(cases, reason)
            case events.RoundEnded(record, measured):
                self._end_round(record, measured)
            case events.RunEnded(interrupted):
                self.stop()
                for line in self._block.interrupted() if interrupted and self._block else ():
                    self._say(line)
            case _:
                if self._block is not None:
                    self._go_on(event, self._block)

    def _go_on(self, event: events.Event, block: LiveBlock) -> None:
        """Take in what happens in a block. A log has lines of a row's first block alone: later ones tell little."""
        match event:
            case events.TrialStarted(label):
                self._log(block, block.begin(label, "starting"))
                self._draw()
            case events.PhaseStarted(label, phase):
                block.begin(label, phase)
            case events.PhaseEnded(label, phase):
                self._log(block, block.end_phase(label, phase))
            case events.CycleEnded(stage, slices, is_last):
                self._end_cycle(block, stage, slices, is_last)
            case events.Tick():
                if time.monotonic() - self._drawn_s >= self.REDRAW_S:
                    self._draw()

    def _end_cycle(self, block: LiveBlock, stage: str, slices: Mapping[str, Sequence[Slice]], is_last: bool) -> None:
        now_s = time.monotonic()
        if not is_last and now_s - self._cycle_s < self.REDRAW_CYCLE_S:
            return
        self._cycle_s, before = now_s, block.answer()
        block.end_cycle(stage, slices)
        if is_last:
            self._log(block, block.stage(stage))
        if (is_last or not before) and block.answer() != before:
            self._log(block, block.answer())
        self._draw()

    def _log(self, block: LiveBlock, line: str) -> None:
        if line and block.is_first and self.disable:
            self._say(line)

    def _start_step(self, text: str) -> None:
        """Show for how long a step takes already; nothing is being measured yet, so that this may move by itself."""
        if self.disable:
            self._say(text)
            return
        spinner = SpinnerColumn("line" if self.console.options.ascii_only else "dots")
        columns = (spinner, TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._step = Progress(*columns, console=self.console, transient=True)
        self._step.add_task(text, total=None)
        self._step.start()

    def _start_run(self, planned: Plan, record: Run, history: History) -> None:
        self._planned, self._effect = planned, record.minimal_effect
        self._called = names(
            dict.fromkeys(case.column for case in (*planned.cases, *(case for case, _ in planned.absent)))
        )
        self._eta = Eta(planned, history.trial_s)
        self._began_s = time.monotonic() - sum(trial.own_ns for trial in record.trials) / 1e9
        self._done = self._eta.carried(record)
        most, least = planned.effort.max_rounds, planned.effort.min_rounds
        rounds = count(most, "round") if least == most else f"{least} to {most} rounds"
        lines = [*planned.warnings, f"{count(len(planned.cases), 'case')}, {rounds}: {self._left}"]
        if planned.effort.budget_s is not None:
            limit = seconds(planned.effort.budget_s)
            lines.append(f"no round will start that would exceed {limit} in all; the first always completes")
        announcements = planned.announcements
        if announcements is None:
            announcements = [_sight(detectable(planned, record.minimal_effect, history.scatter), history.scatter)]
        for line in (*lines, *announcements, *(f"before the run: {signal.reason}" for signal in record.noise)):
            self._say(line)
        self.update(self._task, total=self._eta.trials, completed=self._done, description="")
        self.start()

    def _end_trial(self, case: Case, trial: Trial) -> None:
        if self._block is not None:
            self._ratios[self._block.row] += [self._block.ratios] if self._block.ratios else []
            self._block, self._above = None, ()
        self._done += 1
        self._eta.ended(case, trial)
        # Refreshed, for what is said is written above it, as it was drawn last.
        self.update(self._task, completed=self._done, total=self._eta.trials, refresh=True)
        took = f"measured in {trial.own_ns / 1e9:.1f} s; {self._left} left"
        self._say(f"[{self._done}/{self._eta.trials}] {self._name(case)}: {_outcome(trial)} ({took})")

    def _name(self, case: Case) -> str:
        size = f" {case.options.size.label}" if case.options.size else ""
        return blanked(f"{case.selected.label}{size} on {self._called[case.column]}")

    def _end_row(self, cases: Sequence[Case], reason: str) -> None:
        before = self._eta.trials
        self._eta.decided(cases)
        if self._eta.trials < before:
            self.update(self._task, total=self._eta.trials)
            self._say(f"{cases[0].row_label}: done, because {reason}")  # though it could have had further blocks

    def _end_round(self, record: Run, measured: Mapping[CaseKey, Measured]) -> None:
        if record.stopped_because:
            return
        summary = summarize(record, measured)
        for line in (f"after round {record.rounds_completed}:", *(f"  {line}" for line in self._sentences(summary))):
            self._say(line)
        scatter = run_scatter(summary, family_of(self._planned))
        if scatter and (effects := detectable(self._planned, record.minimal_effect, scatter)):
            difference = percent(min(effects.values()))
            self._say(f"This run can detect differences of about {difference}, judging by its rounds so far.")

    @property
    def _left(self) -> str:
        """How long the run goes on: it depends on how soon its rows are decided."""
        least_s, most_s = self._eta.left_within(time.monotonic() - self._began_s)
        least, most = seconds(least_s), seconds(most_s)
        return f"about {most}" if least == most or not least_s else f"about {least} to {most}"

    def _draw(self, now: str = "") -> None:
        self._drawn_s = time.monotonic()
        if not self.disable:
            lines = self._block.lines() if self._block is not None and not now else []
            self._above = [Text(self._fit(line), no_wrap=True, overflow="crop") for line in lines]
            description = ", ".join(filter(None, [now, f"{self._left} left"]))
            self.update(self._task, description=description, refresh=True)

    def _say(self, line: str) -> None:
        text = self._fit(line)
        if self.console.is_terminal:  # in a log each is one line
            text = wrapped(text, self.console.width)
        self.console.print(Text(text), soft_wrap=True)

    def _fit(self, line: str) -> str:
        if self.console.options.ascii_only:
            return line.replace("×", "x").replace("±", "+/-").replace("–", "-")
        return line


class MachinesProgress(Progress):
    """A line for each machine. On a terminal the newest of each, redrawn; elsewhere all of them, one by one."""

    def __init__(self, console: Console) -> None:
        line = TextColumn("{task.fields[host]}: {task.description}", markup=False, table_column=Column(no_wrap=True))
        super().__init__(line, console=console, auto_refresh=False, disable=not console.is_interactive)
        self._lines: dict[str, TaskID] = {}

    def __call__(self, host: str, line: str) -> None:
        if self.disable:
            self.console.print(Text(f"{host}: {line}"), soft_wrap=True)
            return
        if host not in self._lines:
            self._lines[host] = self.add_task("", total=None, host=host)
        self.update(self._lines[host], description=line, refresh=True)


def foresight(steps_ns: Sequence[tuple[Case, int]], spent_s: float, left_s: float) -> str:
    """Say how long a block of these takes, by their first steps; with a batch that would not take minutes."""
    case, slowest_ns = max(steps_ns, key=lambda step: step[1])
    workload, block_s = case.selected.workload, spent_s + left_s
    samples = variants.batch(case.options) or workload.batch
    unit = "prediction" if workload.predicts_only else "step"
    which = f" on {names([case.column])[case.column]}" if len(steps_ns) > 1 else ""
    step, round_takes = duration(slowest_ns), seconds(block_s)
    line = f"{case.row_label}: one of the first {unit}s{which} took {step}, so a round takes about {round_takes}"
    if block_s <= LONG_S or "batch" not in case.selected.entry.source.takes or samples == 1 or case.options.size:
        return line
    # What has been spent is the start of all columns; the rest is steps, which a smaller batch makes shorter.
    wanted = samples * max(AT_EASE_S - spent_s, AT_EASE_S / 2) / left_s
    batch = 1 << max(0, int(math.log2(max(1.0, wanted))))
    smaller_s = spent_s + left_s * batch / samples
    return f"{line}; --batch-size {batch} takes about {seconds(smaller_s)}"


def _sight(found_after: Mapping[int, float], scatter: RunScatter) -> str:
    if not found_after:
        return f"fewer than {MIN_TRIALS_FOR_INTERVAL} rounds: intervals come from the turns of each round and are wider"
    source = scatter.source or "other machines, because there are no earlier results of this one"
    effects = " and ".join(f"{percent(effect)} after {rounds} rounds" for rounds, effect in found_after.items())
    return f"This run can detect differences of about {effects}, judging by {source}."


def _outcome(trial: Trial) -> str:
    if trial.measurement is None:
        assert trial.failure is not None
        company = " beside other configurations, so from now on it runs by itself" if trial.crowded else ""
        return f"{trial.failure.code}{company}: {trial.failure.cause}"
    unit = "step" if trial.measurement.training else "prediction"
    shown = BY_NAME[headline_of([trial])]  # what the table has, too
    value = shown.read(trial, trial.measurement)
    if value is None:  # it has left out what an epoch costs once
        value = BY_NAME[STEADY].read(trial, trial.measurement)
    step = "measured" if value is None else f"{three_digits(value)} {shown.unit}/{unit}"
    if not trial.noise:
        return step
    reasons = "; ".join(signal.reason for signal in trial.noise)
    return f"{step}, {'undecided, because ' if trial.disturbed else 'though '}{reasons}"
