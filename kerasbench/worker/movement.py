"""How far training moves each trainable matrix: what a loss cannot show where learning rates, or losses, are small."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kerasbench.protocol.measurement import Movement
from kerasbench.runners.trainer import Trainer

SAMPLED = 1_024  # numbers of a weight: enough for a root mean square to within a few percent, few enough to be kept
DIGITS = 4  # that are kept of a distance


class MovementMeter:
    """Keeps a few numbers of each trainable weight, to tell later how far they have moved."""

    def __init__(self, runner: Trainer) -> None:
        self._runner = runner
        self._origin = _sampled(runner)
        self._middle = self._origin
        self._updates: int | None = None

    def begin_slices(self) -> None:
        """Note where the weights are once all columns have trained the same number of steps."""
        self._middle = _sampled(self._runner)
        self._updates = self._runner.updates()

    def movement(self, steps: int) -> Movement | None:
        """Return how far they moved; ``steps``: that `fit` has made since ``begin_slices``. None: it has no weights."""
        trained = compared_weights(self._runner)
        if not trained:
            return None
        updates = self._runner.updates()
        return Movement(
            weights=[path for path, _ in trained],
            sizes=[math.prod(value.shape) for _, value in trained],
            first=_distances(self._origin, self._middle),
            later=_distances(self._middle, _sampled(self._runner)),
            steps=steps,
            updates=None if updates is None or self._updates is None else updates - self._updates,
        )


def compared_weights(runner: Trainer) -> list[tuple[str, Any]]:
    """Return the weights of which it is compared how far they move: matrices, or what there is where there is none.

    A bias in front of a batch normalisation has no gradient but rounding errors, and Adam makes full steps of these.
    """
    weights = list(runner.trained_weights())
    return [(path, value) for path, value in weights if len(value.shape) > 1] or weights


def _sampled(runner: Trainer) -> list[Any]:
    """Return some numbers of each weight. One is read after the other, so that no copy of the model is in memory."""
    samples = []
    for _, value in compared_weights(runner):
        flat = np.asarray(runner.to_numpy(value)).reshape(-1)
        samples.append(flat[:: stride(len(flat))].astype(np.float64))
    return samples


def stride(size: int) -> int:
    """Return the step by which some SAMPLED of so many numbers are taken.

    It has no factor in common with their number, so that it meets every column of a matrix.
    """
    return next(step for step in itertools.count(max(1, size // SAMPLED)) if math.gcd(step, size) == 1)


def _distances(before: Sequence[Any], after: Sequence[Any]) -> list[float]:
    """Return the root mean square of what has changed in each weight; 0 where it is not finite, which losses tell."""
    distances = (float(np.sqrt(np.mean((b - a) ** 2))) for a, b in zip(before, after, strict=True))
    return [float(f"{distance:.{DIGITS}g}") if math.isfinite(distance) else 0.0 for distance in distances]
