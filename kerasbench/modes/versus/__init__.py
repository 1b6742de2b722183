"""The mode ``versus``: versions side by side, and the search for the version that made a step slower."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from kerasbench.modes.command import Command
from kerasbench.modes.mode import Mode
from kerasbench.settings import CROSSED, ELSEWHERE, EVERY, ROUNDS, SHOW, Argument, Settings, option


@dataclass(frozen=True)
class VersusSettings(Settings):
    takes: ClassVar[tuple[str, ...]] = (*EVERY, *ROUNDS, *ELSEWHERE, CROSSED, "scenarios", "suite", "batch_size")

    # fmt: off
    threshold: str | float = option("3%", "--threshold PERCENT", SHOW,
        "The smallest difference that counts as faster or slower. At least 3%, the default.")
    # fmt: on
    base: str = ""
    head: Sequence[str] = ()  # each is compared with the base

    @property
    def arguments(self) -> list[str]:
        return [*filter(None, (self.base, *self.head))]


@dataclass(frozen=True)
class BisectSettings(VersusSettings):
    """What ``bisect`` takes: each probe is a comparison, on this machine."""

    takes = (*EVERY, *ROUNDS, CROSSED, "scenarios", "batch_size")


@dataclass(frozen=True)
class VersusConfig:
    base: str  # its label, as those of the heads: each is compared with it
    heads: list[str]
    threshold: Annotated[float, Meta(ge=0, lt=1)]  # the smallest difference that counts, as a share


FORMS = "A label, an interpreter, a checkout or its commit (./keras@v3.14.0), or requirements: 'keras==3.14.*'."
BETWEEN = "As for versus. With two, all versions between them are candidates."
COMMAND = Command(
    "versus",
    VersusSettings,
    [
        Argument("base", "BASE", FORMS),
        Argument("head", "HEAD...", "What to compare with BASE, one or more; same forms."),
    ],
    more="All take turns, on every backend that has all. Requirements are installed into an environment on top of "
    "the backend's interpreter, which is made anew each time.",
    examples=[
        "kerasbench versus 'keras==3.14.*' 'keras==3.15.*'  # what became faster or slower?",
        "kerasbench versus old ./keras --backend torch --fail-on regression  # a label and a checkout, for a script",
    ],
    compares=True,
)
BISECT = Command(
    "bisect",
    BisectSettings,
    [Argument("versions", "GOOD [BETWEEN]... BAD", BETWEEN)],
    more="Each probe measures a version side by side with GOOD. The search stops if GOOD, measured twice, differs from "
    "itself.",
    examples=[
        "kerasbench bisect 'keras==3.12.0' 'keras==3.15.0' --scenario mnist_dense --backend torch  # which release?",
        "kerasbench bisect ./keras@v3.14.0 ./keras@master --scenario mine.py --backend jax  # which commit?",
    ],
)
MODE = Mode("versus", VersusConfig, (COMMAND, BISECT), paired=True, ranks=False)
