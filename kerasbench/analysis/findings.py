"""What is said of a run beyond its summary: each statement computed once, and handed to every section that tells it."""

from dataclasses import dataclass
from functools import cached_property

from kerasbench.analysis.anatomy import Anatomy, anatomies
from kerasbench.analysis.payoff import BreakEven, SpeedUp, break_evens, speed_ups
from kerasbench.analysis.prices import Price, of_busy_cores, of_keras
from kerasbench.analysis.series import Swept, swept
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.versus import Versus, versus
from kerasbench.results.record import Record


@dataclass(frozen=True)
class Findings:
    """A summary with what follows from it, computed when it is first asked for.

    ``plain`` is what was measured at its published size, ``sized`` what was at the sizes of a sweep.
    """

    summary: Summary

    @cached_property
    def plain(self) -> Summary:
        return self.summary.plain

    @cached_property
    def sized(self) -> Summary:
        return self.summary.swept

    @cached_property
    def versus(self) -> list[Versus]:
        """Versions that were compared side by side."""
        return versus(self.summary)

    @property
    def is_versus(self) -> bool:
        """Whether it is of a comparison of versions, and of nothing else."""
        return bool(self.summary.record.asked.versus)

    @cached_property
    def sweeps(self) -> list[Swept]:
        """Every regime and axis along which it was measured at several sizes, with who overtakes whom."""
        return swept(self.summary)

    @cached_property
    def speed_ups(self) -> list[SpeedUp]:
        """GPU against CPU."""
        return speed_ups(self.plain.rows, self.effect)

    @cached_property
    def prices(self) -> list[Price]:
        """Keras against its native twins."""
        return of_keras(self.plain.rows, self.effect)

    @cached_property
    def busy_cores(self) -> list[Price]:
        """Columns beside busy processors against the same without."""
        return of_busy_cores(self.summary.rows, self.effect)

    @cached_property
    def break_evens(self) -> list[BreakEven]:
        """Where a longer first step has paid."""
        return break_evens(self.plain.rows, self.effect)

    @cached_property
    def anatomies(self) -> list[Anatomy]:
        """What the steps of explained cells are made of."""
        return anatomies(self.summary, self.break_evens)

    @property
    def record(self) -> Record:
        return self.summary.record

    @property
    def effect(self) -> float:
        """The smallest difference that is called one."""
        return self.summary.record.minimal_effect


def findings(record: Record) -> Findings:
    """Return what is found in a run."""
    return Findings(summarize(record))
