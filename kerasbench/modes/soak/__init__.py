"""The mode ``soak``: does memory grow, and do steps become slower, while a model runs for minutes?"""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from msgspec import Meta

from kerasbench.modes.command import Command
from kerasbench.modes.mode import Mode
from kerasbench.settings import EVERY, EXPERTS, LONG, SCENARIOS, WHAT, Settings, option

Purpose = Literal["train", "predict", "build", "build-cleared", "build-fit"]
# While allocators and caches fill, memory grows without a leak. A clean model was called clean after so long, and a
# planted leak found (validation/studies/soaks.md).
JUDGED_MINUTES = 1.0


@dataclass(frozen=True)
class SoakSettings(Settings):
    takes = (*EVERY, "batch_size")

    # fmt: off
    purpose: str = option("train", "--for PURPOSE", WHAT,
        "train (default), predict (a batch, by predict), build (build it again and again), build-cleared (the same, "
        "with clear_session() each time) or build-fit (clear, build and fit one epoch each time).", get_args(Purpose))
    minutes: float = option(5.0, "--minutes N", LONG,
        f"Minutes that each configuration runs. Default: 5. Below {JUDGED_MINUTES:g}, no trend is judged.")
    timeout: str | float | None = option(None, "--timeout TIME", EXPERTS,
        "Stop a soak after this time: 20m, 2h. Default: 300 s and ten times its minutes.")
    # fmt: on


@dataclass(frozen=True)
class SoakConfig:
    purpose: Purpose = "train"  # what is done over and over again
    minutes: Annotated[float, Meta(ge=0, le=1e6)] = 5.0


COMMAND = Command(
    "soak",
    SoakSettings,
    [SCENARIOS],
    more="A second process of each configuration rests beside it and takes a turn now and then. It shows whether the "
    "machine became slower, and not the model.",
    examples=[
        "kerasbench soak my_model.py --minutes 10  # does memory grow, does a step become slower?",
        "kerasbench soak mnist_dense --for predict --backend torch  # the same of predictions",
    ],
)
MODE = Mode("soak", SoakConfig, (COMMAND,), paired=True, ranks=False)
