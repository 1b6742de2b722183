"""How texts grow: the line through the times until there were so many new tokens, and who wrote something else."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement, Samples, Texts
from kerasbench.protocol.stages import STAGES

Tokens = list[list[int]]  # of each text
Writer = tuple[Column, str]  # a column, and the way by which it wrote


@dataclass(frozen=True)
class Growth:
    """The least-squares line t(k) = a + TPOT k through the times until k new tokens were there."""

    ttft_ns: float  # t(1)
    tpot_ns: float  # the slope
    residual: float  # the largest distance of a t(k) from the line, as a share of what it rises by


def growth(counts: Sequence[int], times_ns: Sequence[float]) -> Growth | None:
    """Return the line; None where times do not rise. If tokens take longer by their place, the residual is near 1/6."""
    slope, intercept = statistics.linear_regression(counts, times_ns)
    if slope <= 0:
        return None
    off = max(abs(ns - intercept - slope * count) for count, ns in zip(counts, times_ns, strict=True))
    return Growth(times_ns[0], slope, off / (slope * (counts[-1] - counts[0])))


def typical(texts: Texts) -> Growth | None:
    """Return the line through a trial's times, each the median over slices."""
    return growth(texts.counts, [statistics.median(times) for times in zip(*texts.times_ns, strict=True)])


def by_cycle(texts: Texts, slices: Samples) -> dict[int, Growth]:
    cycles = zip(slices.cycle or (), texts.times_ns, strict=False)
    lines = {cycle: growth(texts.counts, times_ns) for cycle, times_ns in cycles if cycle is not None}
    return {cycle: line for cycle, line in lines.items() if line is not None}


def written(trials: Mapping[Column, Iterable[Measurement]]) -> dict[Writer, Tokens]:
    """Return what each column wrote by each way, in the first of its trials that has it."""
    tokens: dict[Writer, Tokens] = {}
    for column, measurements in trials.items():
        for stage, texts in chain.from_iterable(measurement.texts.items() for measurement in measurements):
            tokens.setdefault((column, STAGES[stage].way), texts.tokens)
    return tokens


def divergences(tokens: dict[Writer, Tokens]) -> list[tuple[Writer, Writer, int, int]]:
    """Return who wrote else than most (or than the first), who these are, the first such token and text, from 1 on."""
    if not tokens:
        return []
    most = Counter(map(repr, tokens.values())).most_common(1)[0][0]
    reference = next(writer for writer, texts in tokens.items() if repr(texts) == most)
    divergent = []
    for writer, texts in tokens.items():
        differing = [
            (token, text)
            for text, (ours, theirs) in enumerate(zip(texts, tokens[reference], strict=False), start=1)
            for token, (mine, usual) in enumerate(zip(ours, theirs, strict=False), start=1)
            if mine != usual
        ]
        divergent += [(writer, reference, *min(differing))] if differing else []
    return divergent
