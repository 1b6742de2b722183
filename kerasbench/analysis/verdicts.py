"""Is A faster than B? What a ratio of their times lets one claim."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.analysis.estimates import (
    CONFIDENCE,
    MIN_TRIALS_FOR_INTERVAL,
    LogEstimate,
    t_quantile,
    t_upper_tail,
)

MINIMAL_EFFECT = 0.03  # smaller differences do not survive a change of kernel, compiler or room temperature
MINIMAL_EFFECT_ON_BATTERY = 0.05
MAX_ROUNDS_CONSIDERED = 1000
UNCHANGED = 1e-4  # of the loss: after one step a model that learns has moved a thousand times as far


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Claim:
    """What a ratio speaks for, and how probable it would be if it were not so (one-sided; None: no interval)."""

    verdict: Verdict
    p: float | None


def minimal_effect(on_battery: bool) -> float:
    """Return the smallest difference that is called one."""
    return MINIMAL_EFFECT_ON_BATTERY if on_battery else MINIMAL_EFFECT


def learned(batch_loss_before: float, batch_loss_after: float) -> bool:
    """Tell whether training changed the loss of one and the same batch."""
    return abs(batch_loss_after - batch_loss_before) > UNCHANGED * abs(batch_loss_before)


def judge(a_over_b: LogEstimate | None, effect: float = MINIMAL_EFFECT) -> Verdict:
    """Say what a ratio of times means for A: its whole interval must lie beyond the minimal effect, or within it."""
    return judge_all([a_over_b], effect)[0]


def judge_all(ratios: Sequence[LogEstimate | None], effect: float = MINIMAL_EFFECT) -> list[Verdict]:
    """Judge the ratios of one table together, corrected for their number."""
    claims = [claim(one, effect) for one in ratios]
    return [
        one.verdict if sure else Verdict.INCONCLUSIVE for one, sure in zip(claims, significant(claims), strict=True)
    ]


def significant(claims: Sequence[Claim]) -> list[bool]:
    """Tell which claims of one kind on a page are significant: at most one page in twenty shall hold a false one.

    Corrected for their number: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
    of Statistics 6 (1979). Each is one-sided, so half of the errors are left to the other side.
    """
    found = [False] * len(claims)
    order = sorted((one.p, index) for index, one in enumerate(claims) if one.p is not None)
    for rank, (p, index) in enumerate(order):
        if p > (1 - CONFIDENCE) / 2 / (len(order) - rank):
            break
        found[index] = True
    return found


def claim(a_over_b: LogEstimate | None, effect: float) -> Claim:
    """Return what a ratio speaks for: a difference beyond the minimal effect, or none of that size.

    A t test against the nearer edge of the effect; p at most 0.025 is the same as a 95 % interval wholly beyond it, or
    wholly within (two one-sided tests).
    """
    if a_over_b is None or a_over_b.log_error is None or a_over_b.disturbed:
        return Claim(Verdict.INCONCLUSIVE, None)
    edge, centre, error = math.log1p(effect), a_over_b.log_centre, a_over_b.log_error
    verdict = Verdict.SAME if abs(centre) < edge else (Verdict.SLOWER if centre > 0 else Verdict.FASTER)
    distance = abs(abs(centre) - edge)
    if error == 0:
        return Claim(verdict, 0.0)
    return Claim(verdict, t_upper_tail(distance / error, a_over_b.degrees))


def rounds_to_decide(a_over_b: LogEstimate, effect: float) -> int | None:
    """Return about how many rounds in all would decide, if the ratio and its scatter stayed.

    None: no number would, or the scatter is not known.
    """
    if a_over_b.log_error is None:
        return None
    deviation = a_over_b.log_error * math.sqrt(a_over_b.trials)
    distance = abs(abs(a_over_b.log_centre) - math.log1p(effect))
    for rounds in range(MIN_TRIALS_FOR_INTERVAL, MAX_ROUNDS_CONSIDERED + 1):
        if t_quantile(rounds - 1) * deviation / math.sqrt(rounds) <= distance:
            return rounds
    return None
