"""How texts grow: the line through the times until there were so many new tokens, and who wrote something else."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Generation, Measurement

Tokens = list[list[int]]  # of each text
Writer = tuple[Column, str]  # a column, and the way by which it wrote


@dataclass(frozen=True)
class Growth:
    """The least-squares line t(k) = a + TPOT k through the times until k new tokens were there."""

    ttft_ns: float  # t(1)
    tpot_ns: float  # the slope
    residual: float  # the largest distance of a t(k) from the line, as a share of what it rises by


def growth(counts: Sequence[int], times_ns: Sequence[float]) -> Growth | None:
    """Return the line through times, in ns, until there were so many tokens; None where they do not rise.

    Tokens that all take as long lie on it. Where each takes longer than the one before, in proportion to its place, the
    residual is about 1/6.
    """
    slope, intercept = statistics.linear_regression(counts, times_ns)
    if slope <= 0:
        return None
    off = max(abs(ns - intercept - slope * count) for count, ns in zip(counts, times_ns, strict=True))
    return Growth(times_ns[0], slope, off / (slope * (counts[-1] - counts[0])))


def typical(found: Generation) -> Growth | None:
    """Return the line through a trial's times, each the median over slices."""
    return growth(found.counts, [statistics.median(times) for times in zip(*found.times_ns, strict=True)])


def by_cycle(found: Generation) -> dict[int, Growth]:
    """Return the line of each cycle that has one."""
    lines = {
        cycle: growth(found.counts, times_ns)
        for cycle, times_ns in zip(found.slices.cycle or (), found.times_ns, strict=False)
        if cycle is not None
    }
    return {cycle: line for cycle, line in lines.items() if line is not None}


def written(trials: Mapping[Column, Iterable[Measurement]]) -> dict[Writer, Tokens]:
    """Return what each column wrote by each way, in the first of its trials that has it."""
    tokens: dict[Writer, Tokens] = {}
    for column, measurements in trials.items():
        for one in (one for measurement in measurements for one in measurement.generations):
            tokens.setdefault((column, one.way), one.tokens)
    return tokens


@dataclass(frozen=True)
class Divergence:
    """Who wrote something else than most, and where first; both from 1 on."""

    writer: Writer
    reference: Writer
    token: int
    text: int


def divergences(tokens: dict[Writer, Tokens]) -> list[Divergence]:
    """Return who wrote something else than most did, or than the first where no two agree."""
    if not tokens:
        return []
    most = Counter(map(repr, tokens.values())).most_common(1)[0][0]
    reference = next(writer for writer, own in tokens.items() if repr(own) == most)
    places = {writer: _first_difference(own, tokens[reference]) for writer, own in tokens.items()}
    return [Divergence(writer, reference, *place) for writer, place in places.items() if place is not None]


def _first_difference(a: Tokens, b: Tokens) -> tuple[int, int] | None:
    """Return the first token that differs, and in which text; None where those that both have are the same."""
    differing = [
        (token, text)
        for text, (ours, theirs) in enumerate(zip(a, b, strict=False), start=1)
        for token, (one, other) in enumerate(zip(ours, theirs, strict=False), start=1)
        if one != other
    ]
    return min(differing, default=None)
