"""At what a trial is stopped: how long it may take, and how much memory it may hold."""

from dataclasses import dataclass

from kerasbench.exchange.requests import ProtocolKind

DEFAULT_TIMEOUT_S: dict[ProtocolKind, float] = {"steady": 300.0, "published": 7200.0, "sweep": 300.0}
# A cell's later trials do what its first did, with up to half as much warm-up again: one that takes ten times as long
# hangs, even on a machine that has become busy. What takes seconds may still meet a cold disk.
TIMES_THE_FIRST = 10.0
LEAST_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Limits:
    """What one child may take. ``memory_bytes`` None: no limit.

    ``timeout`` is how a message names the limit of time, ``remedy`` what it advises where that was too short.
    """

    timeout_s: float
    timeout: str
    memory_bytes: int | None = None
    remedy: str = "a longer --timeout, in seconds"


def of_trial(
    timeout_s: float | None, memory_bytes: int | None, kind: ProtocolKind, first_trial_s: float | None
) -> Limits:
    """Return a trial's limits: what was asked for, and where no time was, what the cell's first trial suggests.

    ``first_trial_s`` is how long the cell's first trial took, None before there is one.
    """
    if timeout_s is not None:
        return Limits(timeout_s, f"--timeout {timeout_s:g} s", memory_bytes)
    standard_s = DEFAULT_TIMEOUT_S[kind]
    follows_s = standard_s if first_trial_s is None else max(LEAST_TIMEOUT_S, TIMES_THE_FIRST * first_trial_s)
    if first_trial_s is None or follows_s >= standard_s:
        return Limits(standard_s, f"--timeout {standard_s:g} s, the default", memory_bytes)
    said = f"--timeout {follows_s:.0f} s, the default after a first trial of {first_trial_s:.1f} s"
    return Limits(follows_s, said, memory_bytes)
