"""Progress on stderr: a bar with an ETA on a terminal, plain lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.verdicts import half_width, visible_difference
from kerasbench.exchange.measurement import step_ns
from kerasbench.plan import duration
from kerasbench.plan.cells import Cell, CellKey, Plan
from kerasbench.plan.duration import History, scatter_of
from kerasbench.report import training
from kerasbench.report.number import percent, plain, seconds
from kerasbench.results.record import Record, TrialRecord

TYPICAL_SCATTER = 0.05  # of trials on a small cloud machine, paired by rounds (docs/method.md); quiet ones do better


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


class Eta:
    """How long a run will take: what a cell's trials have taken, else a guess, corrected by how others were guessed."""

    def __init__(self, planned: Plan, known_s: Mapping[CellKey, float] | None = None) -> None:
        self._cells = planned.cells
        self._max_rounds = planned.effort.max_rounds
        self._guess_s = {
            cell.key: (known_s or {}).get(cell.key) or duration.typical_trial_s(cell, planned.effort.protocol)
            for cell in planned.cells
        }
        self._spent_s: dict[CellKey, list[float]] = {}
        self._rounds: Counter[CellKey] = Counter()
        self._failed: set[CellKey] = set()

    def ended(self, cell: Cell, round_index: int, wall_s: float, failed: bool) -> None:
        self._spent_s.setdefault(cell.key, []).append(wall_s)
        self._rounds[cell.key] = round_index
        if failed:
            self._failed.add(cell.key)

    @property
    def trials(self) -> int:
        """Trials that the whole run comes to, at most, if no further one is disturbed and repeated."""
        lost = sum(self._max_rounds - self._rounds[key] for key in self._failed)
        repeated = sum(len(spent) - self._rounds[key] for key, spent in self._spent_s.items())
        return len(self._cells) * self._max_rounds - lost + repeated

    @property
    def remaining_s(self) -> float:
        guessed_s = sum(self._guess_s[key] * len(spent) for key, spent in self._spent_s.items())
        correction = sum(map(sum, self._spent_s.values())) / guessed_s if guessed_s else 1.0
        total_s = 0.0
        for cell in self._cells:
            spent = self._spent_s.get(cell.key, [])
            if cell.key not in self._failed:
                each_s = sum(spent) / len(spent) if spent else self._guess_s[cell.key] * correction
                total_s += each_s * (self._max_rounds - self._rounds[cell.key])
        return total_s


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
        self._done = self._count_carried(planned, record)
        for line in announce(planned, record.minimal_effect, self._eta.remaining_s, self._history):
            self._say(line)
        for signal in record.noise:
            self._say(f"noise: {signal.reason}")
        self._bar.update(self._task, total=self._eta.trials, completed=self._done, description="")
        if self._console.is_terminal:
            self._bar.start()

    def _count_carried(self, planned: Plan, record: Record) -> int:
        """Count the trials that a run begins with, because it goes on with another one; return how many there are."""
        cells = {cell.key: cell for cell in planned.cells}
        carried = [(cells[trial.cell], trial) for trial in record.trials if trial.round and trial.cell in cells]
        for cell, trial in carried:
            self._eta.ended(cell, trial.round, trial.wall_ns / 1e9, trial.failure is not None)
        return len(carried)

    def trial_began(self, cell: Cell, round_index: int) -> None:
        self._now = cell.label
        self._draw("starting")

    def gate_closed(self, cell: Cell, reason: str) -> None:
        self._now = cell.label
        self._draw(f"waiting for a quiet machine ({reason})")

    def phase_began(self, phase: str) -> None:
        self._phase = phase

    def tick(self) -> None:
        if time.monotonic() - self._drawn_s >= self.REDRAW_S:
            self._draw(self._phase)

    def trial_ended(self, cell: Cell, trial: TrialRecord) -> None:
        wall_s = trial.wall_ns / 1e9
        self._done += 1
        self._eta.ended(cell, trial.round, wall_s, trial.failure is not None)
        self._bar.update(self._task, completed=self._done, total=self._eta.trials)
        left = seconds(self._eta.remaining_s)
        what = _said(trial)
        self._say(f"[{self._done}/{self._eta.trials}] {cell.label}: {what} ({wall_s:.1f} s; about {left} left)")

    def round_ended(self, record: Record) -> None:
        """Show the table as it stands, where another round will sharpen it."""
        if not record.stopped_because:
            self._say(f"after round {record.rounds_completed}:\n{training.table_so_far(summarize(record))}")
            self._say_sight(record)

    def _say_sight(self, record: Record) -> None:
        scatter = scatter_of(record)
        if scatter is not None:
            rounds = self._planned.effort.max_rounds
            difference = percent(visible_difference(rounds, scatter, record.minimal_effect))
            self._say(f"trials scatter by {percent(scatter)}: differences from about {difference} on will be called")

    def run_ended(self) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def _draw(self, phase: str) -> None:
        self._drawn_s = time.monotonic()
        self._phase = phase
        if self._console.is_terminal:
            left = seconds(self._eta.remaining_s)
            self._bar.update(self._task, description=f"{self._now}: {phase}, about {left} left")
            self._bar.refresh()

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def announce(planned: Plan, effect: float, about_s: float, history: History) -> list[str]:
    """Return what a run says before it starts: how long it will take, and which differences it will be able to see."""
    most, least, cells = planned.effort.max_rounds, planned.effort.min_rounds, len(planned.cells)
    rounds = f"{most} round{'s' * (most > 1)}" if least == most else f"{least} to {most} rounds"
    lines = [
        *planned.warnings,
        f"{cells} cell{'s' * (cells != 1)}, {rounds}, at most about {seconds(about_s)} if nothing disturbs it",
    ]
    if planned.effort.budget_s is not None:
        lines.append(
            f"no further round once {seconds(planned.effort.budget_s)} would not hold it; the first is completed"
        )
    if most < MIN_TRIALS_FOR_INTERVAL:
        return [*lines, f"no verdicts: fewer than {MIN_TRIALS_FOR_INTERVAL} rounds have no interval"]
    scatter = TYPICAL_SCATTER if history.scatter is None else history.scatter
    basis = f"as in {history.source}" if history.scatter is not None else "a guess: no earlier results of this machine"
    sight = " and ".join(
        f"{percent(visible_difference(count, scatter, effect))} after {count} rounds (a ratio's interval: "
        f"±{percent(half_width(count, scatter))})"
        for count in dict.fromkeys((least, most))
    )
    return [
        *lines,
        f"differences that will be called in nine of ten cases: {sight}; trials scatter by {percent(scatter)}, {basis}",
    ]


def _said(trial: TrialRecord) -> str:
    if trial.measurement is None:
        assert trial.failure is not None
        return f"{trial.failure.code}: {trial.failure.cause}"
    step = f"{plain(step_ns(trial.measurement) / NS_PER_MS)} ms/step"
    reasons = "; ".join(signal.reason for signal in trial.noise)
    return step + (f", {'invalid' if trial.disturbed else 'noisy'}: {reasons}" if reasons else "")
