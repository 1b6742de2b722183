"""The mode ``sweep``: one workload at many sizes, and where one series overtakes another."""

from dataclasses import dataclass

from kerasbench.modes.command import Command
from kerasbench.modes.mode import Mode
from kerasbench.settings import CROSSED, ELSEWHERE, EVERY, EXPORTED, ROUNDS, WHAT, Argument, Settings, options


@dataclass(frozen=True)
class SweepSettings(Settings):
    takes = (*EVERY, *ROUNDS, *ELSEWHERE, CROSSED, EXPORTED, "control")

    batch_sizes: list[str] = options("--batch-size A..B|LIST", WHAT, "1..4096 (doubled each time; default) or 1,8,64.")
    widths: list[str] = options("--width LIST", WHAT, "Factors for the width of hidden layers: 0.5,1,2,4. Default: 1.")


@dataclass(frozen=True)
class SweepConfig:
    refine: bool = False  # measure more sizes where one series overtakes another


COMMAND = Command(
    "sweep",
    SweepSettings,
    [Argument("scenarios", "SCENARIO", "One scenario: name or file.")],
    more="`kerasbench run --resume` continues a sweep that was interrupted.",
    examples=[
        "kerasbench sweep mnist_dense --batch-size 1..4096  # where does one backend overtake another?",
        "kerasbench sweep mnist_mlp/minibatch --width 0.5,1,2 --quick  # narrower and wider layers",
    ],
)
MODE = Mode("sweep", SweepConfig, (COMMAND,), general=True)
