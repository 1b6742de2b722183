"""The mode ``fastest``: many settings race, and the slow ones leave round by round."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from kerasbench.modes.mode import Mode

MOST_ROUNDS = 4  # by default

Purpose = Literal["train", "predict", "predict-one"]


@dataclass(frozen=True)
class RaceConfig:
    purpose: Purpose = "train"  # what is to be fast
    margin: Annotated[float, Meta(gt=0, lt=1)] = 0.05  # what may be so much slower than the fastest is as good
    tries: list[str] = field(default_factory=list)  # the settings that are tried
    baseline: str = ""  # the backend that Keras takes without settings


MODE = Mode("fastest", RaceConfig, ranks=False)
