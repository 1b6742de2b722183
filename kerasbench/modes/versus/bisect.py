"""Which version made a step slower: a binary search in which every probe is measured side by side with the first."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import MINIMAL_EFFECT, LogEstimate, Verdict
from kerasbench.modes.versus.pairs import Versus

Case = tuple[str, str]  # the row and the column of a probe


class SearchOutcome(StrEnum):
    FOUND = "found"
    NONE = "none"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Probe:
    """One version beside GOOD. ``why``: what keeps it from saying anything, such as a control that is off."""

    index: int  # of the version
    contrast: Contrast | None = None  # its training step over that of GOOD, or a prediction
    why: str = ""
    effect: float = MINIMAL_EFFECT  # the smallest difference that counts

    @property
    def ratio(self) -> LogEstimate | None:
        return self.contrast.ratio if self.contrast else None


@dataclass(frozen=True)
class Bisection:
    """How a search ended: the first slow version is ``slow``, unless it is ``undecided`` between that and ``fast``."""

    outcome: SearchOutcome
    probes: list[Probe]
    fast: int = 0  # the newest version that is known to be as fast as GOOD
    slow: int = 0  # the oldest that is known to be slow

    @property
    def followed(self) -> Contrast | None:
        """The first ratio of the case that all probes are about."""
        return self.probes[0].contrast

    @property
    def change(self) -> LogEstimate | None:
        """The step of the first slow version over that of the one before it, by what both were beside GOOD."""
        ratios = {probe.index: probe.ratio for probe in self.probes}
        before, after = ratios.get(self.fast), ratios[self.slow]
        return after.and_then(before.inverse) if after and before else after


def bisect(versions: int, measure: Callable[[int, Case | None], Probe]) -> Bisection:
    """Find the first slow one of so many versions. ``measure`` measures a case with one of them beside version 0.

    The first probe, of the last version, has the case that is followed from then on.

    Half of the last one's logarithm is what a version must be beyond to count as slow, with its whole 95 % interval: so
    a change lies before the one that is found, also where there were several.
    """
    last = measure(versions - 1, None)
    probes, fast, slow = [last], 0, versions - 1
    if last.why or last.contrast is None or last.contrast.ratio.high is None:
        return Bisection(SearchOutcome.UNDECIDED, probes, fast, slow)
    if last.contrast.verdict is not Verdict.SLOWER:
        # Not shown to be slower, and shown not to be much slower.
        none = last.contrast.verdict is not Verdict.INCONCLUSIVE or last.contrast.ratio.high <= 1 + 2 * last.effect
        return Bisection(SearchOutcome.NONE if none else SearchOutcome.UNDECIDED, probes, fast, slow)
    case, middle = case_of(last.contrast), math.exp(last.contrast.ratio.log_centre / 2)
    while slow - fast > 1:
        probes.append(probe := measure((fast + slow) // 2, case))
        ratio = probe.ratio
        if probe.why or ratio is None or ratio.low is None or ratio.high is None or ratio.low <= middle <= ratio.high:
            return Bisection(SearchOutcome.UNDECIDED, probes, fast, slow)
        if ratio.value < middle:
            fast = probe.index
        else:
            slow = probe.index
    return Bisection(SearchOutcome.FOUND, probes, fast, slow)


def most(versions: int) -> int:
    return 1 + math.ceil(math.log2(versions - 1))


def case_of(contrast: Contrast) -> Case:
    return contrast.over.row.label, contrast.under.column.paired.label


def probe_of(index: int, compared: Versus, case: Case | None) -> Probe:
    """Return the probe of the step, or prediction, that is followed: at first the slowest that is significant."""
    steps, why = [contrast for contrast in compared.headlines if case in (None, case_of(contrast))], ""
    step = max(steps, key=lambda step: (step.verdict is Verdict.SLOWER, step.ratio.value), default=None)
    if step is None:
        failures = (failure for pair in compared.pairs for failure in (pair.broken, pair.baseless) if failure)
        why = next((failure.cause for failure in failures), "nothing was timed with both versions")
    elif step.withheld:
        why = f"{compared.base} differs from itself"
    elif step.ratio.disturbed:
        why = "other programs used the CPU"
    return Probe(index, step, why, compared.effect)
