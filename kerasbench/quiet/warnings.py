"""Every warning of kerasbench: what it means, and what to do about it. The only place that words them."""

from enum import StrEnum
from typing import NamedTuple

from kerasbench.quiet.signals import SCATTER_WARN


class Warned(StrEnum):
    """What can be wrong with a cell or a row; the values of signals of noise are their names."""

    IDLE = "idle"
    DISTURBED = "disturbed"
    UNJUDGED = "unjudged"
    SCATTERED = "scattered"
    DEVIATES = "deviates"
    FALLBACK = "fallback"
    WAITED = "waited"
    SLICES = "slices"
    FEW = "few"
    CONTROL = "control"
    UNDECIDED = "undecided"
    SITTINGS = "sittings"
    APART = "apart"
    VERSIONS = "versions"
    POWER = "power"
    GOVERNOR = "governor"
    QUOTA = "quota"
    LOAD = "load"
    HEAT = "heat"
    GATE = "gate"
    OTHERS = "others"
    STEAL = "steal"
    BLOCKS = "blocks"
    SHARE = "share"
    GPU = "gpu"
    GPU_HEAT = "gpu heat"
    GPU_CLOCK = "gpu clock"


class Words(NamedTuple):
    """What a warning means and what to do; ``is_command``: the remedy can be typed as it stands."""

    meaning: str
    remedy: str
    is_command: bool = False


WORDS: dict[Warned, Words] = {
    Warned.IDLE: Words(
        "does not learn: training did not change the loss",
        "check the model, its loss and its data; learnable=False in a scenario that has nothing to learn",
    ),
    Warned.DISTURBED: Words("other load disturbed at least one round", "close other programs and run again"),
    Warned.UNJUDGED: Words(
        "the losses were not compared with those of the other backends", "make the model and its feed deterministic"
    ),
    Warned.SCATTERED: Words(f"trials scatter by {SCATTER_WARN:.0%} or more", "run more rounds on a quieter machine"),
    Warned.WAITED: Words(
        "processors were idle while it trained", "a median shows little of it, a long fit has it (docs/method.md)"
    ),
    Warned.DEVIATES: Words(
        "the losses differ between the columns", "compare what the model learns on each backend, before its speed"
    ),
    Warned.FALLBACK: Words(
        "the CPU ran operations that the GPU does not support", "avoid these operations in the model"
    ),
    Warned.SLICES: Words("interval from the slices of fewer than 3 rounds, widened", "run 3 rounds or more"),
    Warned.FEW: Words("fewer than 3 rounds: no interval and no verdict", "run 3 rounds or more"),
    Warned.CONTROL: Words("no verdict: a column measured twice differs from itself", "run again on a quiet machine"),
    Warned.UNDECIDED: Words("not decided: other processes used the processors", "close other programs and run again"),
    Warned.SITTINGS: Words(
        "two sittings differ by more than their intervals allow", "measure a third one, on a quiet machine: run again"
    ),
    Warned.APART: Words("not measured side by side, for lack of memory", "free memory, or measure fewer columns"),
    Warned.VERSIONS: Words("versions differ between columns", "install the same version for all backends"),
    Warned.POWER: Words("the machine saves power", "plug it in and switch the low-power mode off"),
    Warned.GOVERNOR: Words(
        "the processor's frequency is limited", "sudo cpupower frequency-set --governor performance", is_command=True
    ),
    Warned.QUOTA: Words(
        "a control group limits the processors", "give the container all processors, or report that it had fewer"
    ),
    Warned.LOAD: Words("the machine was busy before the run", "close other programs"),
    Warned.HEAT: Words("the processor was too hot", "let the machine cool down"),
    Warned.GATE: Words("the machine did not become quiet in time", "close other programs"),
    Warned.OTHERS: Words("other processes used the processors", "close other programs"),
    Warned.STEAL: Words("the hypervisor gave processors to other machines", "use a machine that is not shared"),
    Warned.BLOCKS: Words("times within the trial vary widely", "run more rounds on a quieter machine"),
    Warned.SHARE: Words("fewer processors were busy than in other trials", "close other programs"),
    Warned.GPU: Words("the GPU was shared or could not be observed", "end other processes on the GPU"),
    Warned.GPU_HEAT: Words("the GPU slowed down from heat or a power limit", "let the GPU cool down"),
    Warned.GPU_CLOCK: Words("the GPU ran at a lower clock than in other trials", "let the GPU cool down"),
}
