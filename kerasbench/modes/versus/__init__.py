"""The mode ``versus``: two versions side by side, and the search for the version that made a step slower."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from kerasbench.modes.mode import Mode


@dataclass(frozen=True)
class VersusConfig:
    base: str  # its label, as that of head: the two are compared alone
    head: str
    threshold: Annotated[float, Meta(ge=0, lt=1)]  # the smallest difference that counts, as a share


MODE = Mode("versus", VersusConfig, paired=True, ranks=False)
