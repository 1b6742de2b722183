"""The mode ``run``: which backend is fastest on each workload."""

from dataclasses import dataclass

from kerasbench.modes.mode import Mode
from kerasbench.names import WHAT
from kerasbench.protocol.requests import ProtocolKind
from kerasbench.settings import ELSEWHERE, EVERY, ROUNDS, Settings, option

PROTOCOLS: tuple[ProtocolKind, ...] = ("steady", "published", "calls", "predictions")


@dataclass(frozen=True)
class RunSettings(Settings):
    takes = (*EVERY, *ROUNDS, *ELSEWHERE, "scenarios", "suite", "batch_size", "resume", "control")

    # fmt: off
    protocol: str = option("steady", "--protocol KIND", WHAT,
        "steady (default): seconds per trial. published: every published epoch, one round. calls: no training, but "
        "model(x) eager and compiled, predict_on_batch, predict, and tokens that language models generate. "
        "predictions: predict_on_batch and predict alone.",
        PROTOCOLS)
    # fmt: on


MODE = Mode("run", dict[str, object], general=True)
