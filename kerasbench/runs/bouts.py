"""One bout from a run's side: what its columns are asked for, by which rules they take turns, what surrounded it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol as Interface

from kerasbench.children import limits
from kerasbench.children.bout import Ear, Entrant, Rules
from kerasbench.children.trial import Outcome
from kerasbench.plan.cells import Cell, Plan
from kerasbench.results.record import Record, TrialRecord
from kerasbench.runs import begun, cycles, memory, orders
from kerasbench.runs.rows import Known, Row
from kerasbench.runs.surroundings import Judge, Watcher

SAVED_SHARE = 0.75  # of the machine's memory for a saved model, so that a hostile one does not bring the machine down


class Launch(Interface):
    """Measures one bout and tells how it goes meanwhile, as children.bout.measure does. None: it did not fit."""

    def __call__(
        self, entrants: Sequence[Entrant], rules: Rules, ear: Ear, alone: bool, /
    ) -> Sequence[Outcome | None]: ...


class Observer(Interface):
    """Who is told how a run goes."""

    def run_began(self, planned: Plan, record: Record) -> None: ...
    def gate_closed(self, row: str, reason: str) -> None: ...
    def trial_began(self, cell: Cell, round_index: int) -> None: ...
    def phase_began(self, cell: Cell, phase: str) -> None: ...
    def tick(self) -> None: ...
    def trial_ended(self, cell: Cell, trial: TrialRecord) -> None: ...
    def row_ended(self, cells: Sequence[Cell], why: str) -> None: ...
    def round_ended(self, record: Record) -> None: ...
    def run_ended(self) -> None: ...


@dataclass(frozen=True)
class _Told:
    """Tells an observer of a bout, whose columns are numbered there."""

    observer: Observer
    cells: Sequence[Cell]
    round_index: int

    def began(self, index: int, /) -> None:
        self.observer.trial_began(self.cells[index], self.round_index)

    def phase(self, index: int, name: str, /) -> None:
        self.observer.phase_began(self.cells[index], name)

    def tick(self) -> None:
        self.observer.tick()


def _allowed_bytes(cell: Cell, planned: Plan) -> int | None:
    """Return what a trial may hold where nobody said so: of a saved model, which may be anybody's, not everything."""
    saved = cell.selected.entry.is_saved and not cell.selected.entry.given.trust
    return int(SAVED_SHARE * planned.machine.memory_bytes) if saved else None


@dataclass(frozen=True)
class Bouts:
    """Measures the bouts of a run. ``rest_s``: nobody runs for so long before each turn."""

    planned: Plan
    launch: Launch
    watch: Watcher
    observer: Observer
    interpreter: Callable[[str], str]
    rest_s: float = 0.0
    judge: Judge = field(default_factory=Judge)

    def measure(self, row: Row, cells: Sequence[Cell], index: int, number: int) -> list[tuple[Cell, TrialRecord]]:
        """Measure cells of a row side by side in this round, and return the trials of those that were started."""
        ear, known = _Told(self.observer, cells, index), [row.known[cell.key] for cell in cells]
        entrants = [self._entrant(cell, one) for cell, one in zip(cells, known, strict=True)]

        room = self._room(cells, known)

        def launched() -> Sequence[Outcome | None]:
            return self.launch(entrants, self._rules(cells, room, number), ear, row.starts_alone)

        outcomes, seen = self.watch(
            [cell.device for cell in cells], launched, partial(self.observer.gate_closed, cells[0].row_label)
        )
        if row.starts_alone:  # else several have started meanwhile
            for place, held_bytes in room.seen_on_cards().items():
                known[place].saw_on_card(held_bytes)
        several = sum(outcome is not None for outcome in outcomes) > 1
        trials: list[tuple[Cell, TrialRecord]] = []
        for cell, outcome, around in zip(cells, outcomes, seen, strict=True):
            if outcome is not None:
                before = [one for one in row.trials if one.cell == cell.key and not one.disturbed]
                earlier = [one.measurement for one in before if one.measurement]
                found = begun.record_of(cell, index, outcome, number, several)
                trials.append((cell, self.judge(found, around, earlier)))
        return trials

    def _entrant(self, cell: Cell, known: Known) -> Entrant:
        asked = self.planned.asked
        allowed = asked.memory_limit_bytes or _allowed_bytes(cell, self.planned)
        limited = limits.of_trial(asked.timeout_s, allowed, asked.effort.protocol.kind, known.first_s)
        request = begun.request_of(cell, known.protocol, self.planned)
        return Entrant(self.interpreter(cell.subject), request, limited)

    def _room(self, cells: Sequence[Cell], known: Sequence[Known]) -> memory.Room:
        return memory.room(
            [cell.device for cell in cells], [one.peak_bytes for one in known], [one.on_card_bytes for one in known]
        )

    def _rules(self, cells: Sequence[Cell], room: memory.Room, number: int) -> Rules:
        """Return by what a bout goes; its number draws the order, so that no two have the same."""
        protocol, regime = cells[0].protocol, cells[0].selected.regime
        return Rules(
            orders.drawn(f"{self.planned.asked.seed}/{number}"),
            partial(cycles.enough, protocol, cycles.shares(protocol, regime)),
            room,
            self.rest_s,
        )
