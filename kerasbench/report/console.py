"""Progress on stderr: a bar with an ETA on a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from kerasbench import plan
from kerasbench.metrics import NS_PER_MS, epoch_ns
from kerasbench.plan import Cell, Plan
from kerasbench.report.number import plain, seconds
from kerasbench.trial import Outcome


class Eta:
    """How long a run will take: what a cell's trials have taken, else a guess, corrected by how others were guessed."""

    def __init__(self, planned: Plan) -> None:
        self._cells = planned.cells
        self._max_rounds = planned.effort.max_rounds
        self._guess_s = {cell.key: plan.typical_trial_s(cell, planned.effort.protocol) for cell in planned.cells}
        self._spent_s: dict[tuple[str, str, str, str], list[float]] = {}
        self._failed: set[tuple[str, str, str, str]] = set()

    def ended(self, cell: Cell, wall_s: float, failed: bool) -> None:
        self._spent_s.setdefault(cell.key, []).append(wall_s)
        if failed:
            self._failed.add(cell.key)

    @property
    def trials(self) -> int:
        """Trials that the whole run comes to, at most."""
        lost = sum(self._max_rounds - len(self._spent_s[key]) for key in self._failed)
        return len(self._cells) * self._max_rounds - lost

    @property
    def remaining_s(self) -> float:
        guessed_s = sum(self._guess_s[key] * len(spent) for key, spent in self._spent_s.items())
        correction = sum(map(sum, self._spent_s.values())) / guessed_s if guessed_s else 1.0
        total_s = 0.0
        for cell in self._cells:
            spent = self._spent_s.get(cell.key, [])
            if cell.key not in self._failed:
                each_s = sum(spent) / len(spent) if spent else self._guess_s[cell.key] * correction
                total_s += each_s * (self._max_rounds - len(spent))
        return total_s


class ConsoleProgress:
    """Tell on a console how a run goes. The display is redrawn at most once a second, and by no thread of its own."""

    REDRAW_S = 1.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            BarColumn(24),
            TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=False,  # a refreshing thread would run beside the measured child
            transient=True,
        )
        self._drawn_s = 0.0
        self._now = ""

    def run_began(self, planned: Plan) -> None:
        self._eta = Eta(planned)
        self._done = 0
        rounds = planned.effort.max_rounds
        few = planned.effort.min_rounds
        count = f"{rounds} round{'s' * (rounds > 1)}" if few == rounds else f"{few} to {rounds} rounds"
        cells = len(planned.cells)
        self._say(f"{cells} cell{'s' * (cells > 1)}, {count}, at most about {seconds(self._eta.remaining_s)}")
        self._task = self._bar.add_task("", total=self._eta.trials)
        if self._console.is_terminal:
            self._bar.start()

    def trial_began(self, cell: Cell, round_index: int) -> None:
        self._now = cell.label
        self._draw("starting")

    def phase_began(self, phase: str) -> None:
        self._phase = phase

    def tick(self) -> None:
        if time.monotonic() - self._drawn_s >= self.REDRAW_S:
            self._draw(self._phase)

    def trial_ended(self, cell: Cell, outcome: Outcome) -> None:
        wall_s = outcome.wall_ns / 1e9
        self._done += 1
        self._eta.ended(cell, wall_s, outcome.failure is not None)
        self._bar.update(self._task, completed=self._done, total=self._eta.trials)
        left = seconds(self._eta.remaining_s)
        what = _said(outcome)
        self._say(f"[{self._done}/{self._eta.trials}] {cell.label}: {what} ({wall_s:.1f} s; about {left} left)")

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


def _said(outcome: Outcome) -> str:
    if outcome.measurement is None:
        assert outcome.failure is not None
        return f"{outcome.failure.code}: {outcome.failure.cause}"
    return f"{plain(epoch_ns(outcome.measurement) / outcome.measurement.steps_per_epoch / NS_PER_MS)} ms/step"
