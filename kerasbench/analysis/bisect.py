"""Which version made a step slower: a binary search in which every probe is measured side by side with the first."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.analysis.estimates import MINIMAL_EFFECT, LogEstimate, Verdict
from kerasbench.analysis.versus import Difference, Versus

Case = tuple[str, str]  # the row and the column of a probe


class Outcome(StrEnum):
    FOUND = "found"
    NONE = "none"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Probe:
    """One version beside GOOD. ``why``: what keeps it from saying anything, such as a control that is off."""

    index: int  # of the version
    ratio: LogEstimate | None = None  # its training step over that of GOOD, or a prediction
    control: LogEstimate | None = None  # GOOD over itself
    verdict: Verdict = Verdict.INCONCLUSIVE
    why: str = ""
    effect: float = MINIMAL_EFFECT  # the smallest difference that counts
    predicts: bool = False  # its model is not trained: the ratio is of predictions


@dataclass(frozen=True)
class Bisection:
    """How a search ended: the first slow version is ``slow``, unless it is ``undecided`` between that and ``fast``."""

    outcome: Outcome
    probes: list[Probe]
    fast: int = 0  # the newest version that is known to be as fast as GOOD
    slow: int = 0  # the oldest that is known to be slow

    def probe(self, index: int) -> Probe | None:
        return next((one for one in self.probes if one.index == index), None)

    @property
    def change(self) -> LogEstimate | None:
        """The step of the first slow version over that of the one before it, by what both were beside GOOD."""
        before, after = self.probe(self.fast), self.probe(self.slow)
        if after is None or after.ratio is None or before is None or before.ratio is None:
            return after.ratio if after is not None and self.fast == 0 else None
        return after.ratio.and_then(before.ratio.inverse)


def bisect(versions: int, measure: Callable[[int], Probe]) -> Bisection:
    """Find the first slow one of so many versions. ``measure`` measures one beside version 0.

    The last version is probed first. If it is not significantly slower, the search ends. Else half of its logarithm is
    what a version must be beyond to count as slow, with its whole 95 % interval. So the version before the one that is
    found is on the other side, and a change lies between them, also where there were several. The search stops at a
    probe whose interval holds that middle, or whose control is off.
    """
    last = measure(versions - 1)
    probes, fast, slow = [last], 0, versions - 1
    if last.why or last.ratio is None or last.ratio.high is None:
        return Bisection(Outcome.UNDECIDED, probes, fast, slow)
    if last.verdict is not Verdict.SLOWER:
        # Not shown to be slower, and shown not to be much slower.
        none = last.verdict is not Verdict.INCONCLUSIVE or last.ratio.high <= 1 + 2 * last.effect
        return Bisection(Outcome.NONE if none else Outcome.UNDECIDED, probes, fast, slow)
    middle = math.exp(last.ratio.log_centre / 2)
    while slow - fast > 1:
        probes.append(probe := measure((fast + slow) // 2))
        ratio = probe.ratio
        if probe.why or ratio is None or ratio.low is None or ratio.high is None or ratio.low <= middle <= ratio.high:
            return Bisection(Outcome.UNDECIDED, probes, fast, slow)
        if ratio.value < middle:
            fast = probe.index
        else:
            slow = probe.index
    return Bisection(Outcome.FOUND, probes, fast, slow)


def most(versions: int) -> int:
    """Return how many probes a search among so many versions takes at most, GOOD among them."""
    return 1 + math.ceil(math.log2(versions - 1))


def followed(found: Versus, case: Case | None) -> Difference | None:
    """Return the training step, or prediction, that a search follows: that of its first probe slowest with HEAD.

    One that is significantly slower comes before any that is not, however wide the interval of that is.
    """
    steps = [one for one in found.headlines if case in (None, case_of(one))]
    return max(steps, key=lambda one: (one.verdict is Verdict.SLOWER, one.ratio.value), default=None)


def case_of(one: Difference) -> Case:
    return one.pair.row.label, one.pair.name


def probe_of(index: int, found: Versus, case: Case | None) -> Probe:
    """Return what a comparison with GOOD says of a version."""
    one = followed(found, case)
    if one is None:
        failures = [failure.cause for pair in found.pairs for failure in (pair.broken, pair.baseless) if failure]
        return Probe(index, why=next(iter(failures), "nothing was timed with both versions"))
    control = one.control.ratio if one.control else None
    why = ""
    if one.withheld:
        why = f"{found.base} differs from itself"
    elif one.ratio.disturbed:
        why = "other programs disturbed it"
    return Probe(index, one.ratio, control, one.verdict, why, found.effect, one.pair.row.workload.predicts_only)
