"""The mode ``fastest``: many settings race, and the slow ones leave round by round."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from msgspec import Meta

from kerasbench import variants
from kerasbench.modes.command import Command
from kerasbench.modes.mode import Mode
from kerasbench.settings import ELSEWHERE, EVERY, EXPORTED, LONG, SCENARIOS, WHAT, Settings, option, options

Purpose = Literal["train", "predict", "predict-one"]

_tried = {variant.flag: variant.tried for variant in variants.ALL if variant.tried is not None}
DEFAULT_TRIES = ("backend", "device", *(name for name, by_default in _tried.items() if by_default))
TRIES = (*DEFAULT_TRIES, *(name for name, by_default in _tried.items() if not by_default))
MOST_ROUNDS = 4  # by default


@dataclass(frozen=True)
class FastestSettings(Settings):
    takes = (*EVERY, *ELSEWHERE, EXPORTED, "rounds", "budget", "batch_size")

    # fmt: off
    rounds: int | None = option(None, "--rounds N", LONG, f"N rounds at most. Default: {MOST_ROUNDS}.")
    purpose: str = option("train", "--for PURPOSE", WHAT,
        "train (default), predict (a batch) or predict-one (one sample).", get_args(Purpose))
    tries: list[str] = options("--try SETTING", WHAT,
        f"Settings to try: {', '.join(DEFAULT_TRIES)} (default: these), {', '.join(TRIES[len(DEFAULT_TRIES):])}.",
        TRIES)
    margin: str | float = option("5%", "--within PERCENT", WHAT,
        "A setting that takes at most this much longer counts as equally fast. Default: 5%.")
    # fmt: on


@dataclass(frozen=True)
class RaceConfig:
    purpose: Purpose = "train"  # what is to be fast
    margin: Annotated[float, Meta(gt=0, lt=1)] = 0.05  # what may be so much slower than the fastest is as good
    tries: list[str] = field(default_factory=list)  # the settings that are tried
    baseline: str = ""  # the backend that Keras takes without settings


COMMAND = Command(
    "fastest",
    FastestSettings,
    [SCENARIOS],
    more="Settings race side by side; a setting that is too slow is dropped. The settings tried by default change "
    "results by rounding at most. With several steps per execution, Keras calls per-batch callbacks less often.",
    examples=[
        "kerasbench fastest my_model.py  # which backend and settings train it fastest?",
        "kerasbench fastest mnist_dense --for predict-one  # what predicts one sample fastest?",
    ],
    takes_model=True,
)
MODE = Mode("fastest", RaceConfig, (COMMAND,), ranks=False)
