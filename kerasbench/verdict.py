"""Is A faster than B? Decided round by round on logarithms, so that drift which hits both cancels."""

from collections.abc import Mapping
from enum import StrEnum

from kerasbench.stats import MIN_TRIALS_FOR_INTERVAL, Estimate, estimate

MINIMAL_EFFECT = 0.03  # smaller differences do not survive a change of kernel, compiler or room temperature


UNCHANGED = 1e-4  # of the loss: after one step a model that learns has moved a thousand times as far


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


def ratio(a: Mapping[int, float], b: Mapping[int, float]) -> Estimate | None:
    """Return the ratio A/B of times, paired by round; None where no round has both."""
    common = sorted(a.keys() & b.keys())
    return estimate([a[index] / b[index] for index in common]) if common else None


def learned(batch_loss_before: float, batch_loss_after: float) -> bool:
    """Tell whether training changed the loss of one and the same batch."""
    return abs(batch_loss_after - batch_loss_before) > UNCHANGED * abs(batch_loss_before)


def judge(a_over_b: Estimate | None, effect: float = MINIMAL_EFFECT) -> Verdict:
    """Say what a ratio of times means for A: its whole interval must lie beyond the minimal effect, or within it."""
    if a_over_b is None or a_over_b.trials < MIN_TRIALS_FOR_INTERVAL:
        return Verdict.INCONCLUSIVE
    assert a_over_b.low is not None and a_over_b.high is not None
    if a_over_b.high < 1 / (1 + effect):
        return Verdict.FASTER
    if a_over_b.low > 1 + effect:
        return Verdict.SLOWER
    if a_over_b.low > 1 / (1 + effect) and a_over_b.high < 1 + effect:
        return Verdict.SAME
    return Verdict.INCONCLUSIVE
