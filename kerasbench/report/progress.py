"""What is said on stderr before a run's first trial, while backends are asked and data are downloaded.

Progress on stderr: a bar with an ETA on a terminal, plain lines elsewhere.

A whole run on a console: what is prepared, then each trial.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from kerasbench.analysis.cases import headline_of
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.findings import findings
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import Eta, History, PowerEstimate, outlook, scatter_of
from kerasbench.report import answer, comparisons
from kerasbench.report.figures import percent, seconds, significant
from kerasbench.results.record import Record, TrialRecord
from kerasbench.text import count


class Preparation:
    """Tell on a console what is going on. Nothing is being measured yet, so that a display may move by itself."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def asking(self, names: Sequence[str]) -> AbstractContextManager[None]:
        """Say meanwhile that backends are asked which devices they see."""
        return self.step(f"asking {', '.join(names)} what {'they see' if len(names) > 1 else 'it sees'}")

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Say what goes on meanwhile: for how long already on a terminal, where it leaves nothing; elsewhere a line."""
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            self.say(what)
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as display:
            display.add_task(what, total=None)
            yield


class Unbroken:
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

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:
        return self._stream.encoding


def to_stderr() -> Console:
    """Return the console that progress goes to."""
    return Console(file=cast("TextIO", Unbroken(sys.stderr)), highlight=False)


class ConsoleProgress:
    """Tell on a console how a run goes. The display is redrawn at most once a second, and by no thread of its own."""

    REDRAW_S = 1.0

    def __init__(self, console: Console, history: History | None = None) -> None:
        self._console = console
        self._history = history or History()
        self._bar = Progress(
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            BarColumn(24),
            TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=False,  # a refreshing thread would run beside the measured child
            transient=True,
        )
        self._task = self._bar.add_task("")  # one, whatever happens: a run may be interrupted before it has begun
        self._drawn_s = 0.0
        self._now = ""

    def run_began(self, planned: Plan, record: Record) -> None:
        self._planned = planned
        self._eta = Eta(planned, self._history.trial_s)
        self._done = self._eta.carried(record)
        ahead = outlook(planned, record.minimal_effect, self._history)
        for line in announce(planned, self._left, ahead):
            self._say(line)
        for signal in record.noise:
            self._say(f"noise: {signal.reason}")
        self._bar.update(self._task, total=self._eta.trials, completed=self._done, description="")
        if self._console.is_terminal:
            self._bar.start()

    def trial_began(self, case: Case, round_index: int) -> None:
        self._now = case.label
        self._draw("starting")

    def gate_closed(self, row: str, reason: str) -> None:
        self._now = row
        self._draw(f"waiting for the machine to cool down ({reason})")

    def phase_began(self, case: Case, phase: str) -> None:
        self._now, self._phase = case.label, phase

    def tick(self) -> None:
        if time.monotonic() - self._drawn_s >= self.REDRAW_S:
            self._draw(self._phase)

    def trial_ended(self, case: Case, trial: TrialRecord) -> None:
        self._done += 1
        self._eta.ended(case, trial)
        self._bar.update(self._task, completed=self._done, total=self._eta.trials)
        what = _said(trial)
        self._say(
            f"[{self._done}/{self._eta.trials}] {case.label}: {what} (measured in {trial.own_ns / 1e9:.1f} s; "
            f"{self._left} left)"
        )

    def row_ended(self, cases: Sequence[Case], why: str) -> None:
        """Say why a row takes no further block, where it could have had one."""
        before = self._eta.trials
        self._eta.decided(cases)
        if self._eta.trials < before:
            self._bar.update(self._task, total=self._eta.trials)
            self._say(f"{cases[0].row_label}: decided, because {why}")

    def round_ended(self, record: Record) -> None:
        """Show the table as it stands, where another round will sharpen it."""
        if not record.stopped_because:
            found = findings(record)
            self._say(f"after round {record.rounds_completed}:")
            for line in [one for each in found.versus for one in comparisons.sentences(each)] or answer.sentences(
                found
            ):
                self._say(f"  {line}")
            self._say_sight(found.summary)

    def _say_sight(self, summary: Summary) -> None:
        scatter = scatter_of(summary)
        if scatter is None:
            return
        ahead = outlook(self._planned, summary.record.minimal_effect, History(scatter=scatter))
        if ahead.sights:
            difference = percent(ahead.sights[-1].difference)
            self._say(f"ratios scatter by {percent(scatter)}: this run can detect differences of about {difference}")

    @property
    def _left(self) -> str:
        """How long the run goes on: it depends on how soon its rows are decided."""
        least, most = seconds(self._eta.least_s), seconds(self._eta.most_s)
        return f"about {most}" if least == most or not self._eta.least_s else f"about {least} to {most}"

    def run_ended(self) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def _draw(self, phase: str) -> None:
        self._drawn_s = time.monotonic()
        self._phase = phase
        if self._console.is_terminal:
            self._bar.update(self._task, description=f"{self._now}: {phase}, {self._left} left")
            self._bar.refresh()

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def announce(planned: Plan, left: str, ahead: PowerEstimate) -> list[str]:
    """Return what a run says before it starts: how long it will take, and which differences it will be able to see."""
    most, least = planned.effort.max_rounds, planned.effort.min_rounds
    rounds = count(most, "round") if least == most else f"{least} to {most} rounds"
    cases = count(len(planned.cases), "case")
    lines = [*planned.warnings, f"{cases}, {rounds}: {left}"]
    if planned.effort.budget_s is not None:
        limit = seconds(planned.effort.budget_s)
        lines.append(f"no round will start that would exceed {limit} in all; the first always completes")
    return [*lines, _sight(ahead)]


def _sight(ahead: PowerEstimate) -> str:
    if not ahead.sights:
        return f"fewer than {MIN_TRIALS_FOR_INTERVAL} rounds: intervals come from each round's slices and are wider"
    basis = f"as in {ahead.source}" if ahead.source else "a guess: no earlier results of this machine"
    seen = " and ".join(
        f"{percent(one.difference)} after {one.rounds} rounds (a ratio's interval: ±{percent(one.half_width)})"
        for one in ahead.sights
    )
    of = f" in each of {ahead.comparisons} comparisons" if ahead.comparisons > 1 else ""
    return (
        f"smallest difference detected with 90 % probability{of}: {seen}; ratios scatter by {percent(ahead.scatter)}, "
        f"{basis}"
    )


def _said(trial: TrialRecord) -> str:
    if trial.measurement is None:
        assert trial.failure is not None
        company = " beside others, so from now on it is measured by itself" if trial.crowded else ""
        return f"{trial.failure.code}{company}: {trial.failure.cause}"
    unit = "step" if trial.measurement.training else "prediction"
    shown = BY_NAME[headline_of([trial])]  # what the table has, too
    found = shown.read(trial, trial.measurement)
    step = f"{significant(found)} {shown.unit}/{unit}" if found is not None else "measured"
    reasons = "; ".join(signal.reason for signal in trial.noise)
    return step + (f", {'badly disturbed' if trial.disturbed else 'noisy'}: {reasons}" if reasons else "")


class ConsoleAudience(Preparation):
    """Tell on a console what a run prepares, and then how its trials go."""

    def observer(self, known: History) -> ConsoleProgress:
        return ConsoleProgress(self._console, known)
