"""The mode ``soak``: does memory grow, and do steps become slower, while a model runs for minutes?"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from kerasbench.modes.mode import Mode

Purpose = Literal["train", "predict", "build", "build-cleared"]


@dataclass(frozen=True)
class SoakConfig:
    purpose: Purpose = "train"  # what is done over and over again
    minutes: Annotated[float, Meta(ge=0, le=1e6)] = 5.0


MODE = Mode("soak", SoakConfig, paired=True, ranks=False)
