"""The mode ``versus``: two versions side by side, and the search for the version that made a step slower."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from kerasbench.modes.mode import Mode
from kerasbench.names import SHOW
from kerasbench.settings import ELSEWHERE, EVERY, ROUNDS, Settings, option


@dataclass(frozen=True)
class VersusSettings(Settings):
    takes: ClassVar[tuple[str, ...]] = (*EVERY, *ROUNDS, *ELSEWHERE, "scenarios", "batch_size")

    # fmt: off
    threshold: str | float = option("3%", "--threshold PERCENT", SHOW,
        "The smallest difference that counts as faster or slower. At least 3%, the default.")
    # fmt: on
    base: str = ""
    head: str = ""

    @property
    def arguments(self) -> list[str]:
        return [*filter(None, (self.base, self.head))]


@dataclass(frozen=True)
class BisectSettings(VersusSettings):
    """What ``bisect`` takes: each probe is a comparison, on this machine."""

    takes = (*EVERY, *ROUNDS, "scenarios", "batch_size")


@dataclass(frozen=True)
class VersusConfig:
    base: str  # its label, as that of head: the two are compared alone
    head: str
    threshold: Annotated[float, Meta(ge=0, lt=1)]  # the smallest difference that counts, as a share


MODE = Mode("versus", VersusConfig, paired=True, ranks=False)
