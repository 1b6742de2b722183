"""Families of ratios: what two columns have in common says how their ratio scatters (docs/how-it-works.md)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kerasbench.analysis.estimates import Prior
from kerasbench.analysis.metrics import A_CALL
from kerasbench.protocol.columns import Column


class Family(IntEnum):
    """What the two columns of a ratio have in common: the more, the less it scatters."""

    REPEATED = 1  # the same thing twice: a control, two versions
    OPTIONS = 2  # one backend on one device with other options, or without Keras
    BACKENDS = 3  # two backends, or two devices

    @classmethod
    def of(cls, a: Column, b: Column) -> "Family":
        if (a.backend, a.device) != (b.backend, b.device):
            return cls.BACKENDS
        return cls.REPEATED if a.paired == b.paired else cls.OPTIONS


# How the ratios of one run scatter, by their metric and family. None for too few of them.
PriorOf = Callable[[str, Family], Prior | None]


@dataclass(frozen=True)
class Assumption:
    """What is taken of a family until its ratios show it themselves: standard deviations of the logarithm."""

    between_sessions: float  # beyond what blocks show
    blocks: float  # beyond what slices explain
    of_backend: Mapping[str, float] = field(default_factory=dict)  # ``blocks`` of some backends
    of_metric: Mapping[str, float] = field(default_factory=dict)  # and of some metrics

    def between_blocks(self, backend: str, metric: str) -> float:
        return self.of_metric.get(metric, self.of_backend.get(backend, self.blocks))


# Between two backends one block's interval holds with 7 % what the others found in 95 % of cases or more: of training
# steps it does on each of two days on a small cloud machine; with 5 % it did in 90 % on one of them
# (validation/studies/one-block.md).
TYPICAL_SCATTER = 0.07
ASSUMED = {
    # Two processes of one case, each by 3 % (JAX 1 %, TensorFlow 1.5 %), which a block's slices cannot know
    # (validation/same_twice.py). What a session does to one, it does to the other.
    Family.REPEATED: Assumption(
        between_sessions=0.0,
        blocks=0.03 * math.sqrt(2),
        of_backend={"jax": 0.01 * math.sqrt(2), "tensorflow": 0.015 * math.sqrt(2)},
    ),
    Family.OPTIONS: Assumption(between_sessions=0.02, blocks=0.05),
    Family.BACKENDS: Assumption(
        between_sessions=0.02,  # validation/studies/sessions-of-one-night.md
        blocks=TYPICAL_SCATTER,
        of_metric={**dict.fromkeys(A_CALL, 0.08), "predict_samples_per_s": 0.06},
    ),
}
