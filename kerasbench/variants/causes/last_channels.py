"""Images with their channels last, as models are written, are brought into another order on torch."""

from typing import TYPE_CHECKING, Any

from kerasbench.protocol.columns import CPU, FIRST, LAST
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.causes.cause import Cause, ancestors
from kerasbench.variants.causes.pooling_copy import POOLS
from kerasbench.variants.layout import Layout
from kerasbench.variants.variant import CaseFacts, ScriptFacts, Written

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed

LAYOUT = Layout()
SPATIAL = {"BaseConv", "BaseDepthwiseConv", "BaseConvTranspose", "BaseSeparableConv", *POOLS}


class LastChannels(Cause):
    name = "without_last_channels"
    files = (*Cause.files, LAYOUT.file)
    backends = ("torch",)
    says = "Keras brings images whose channels come last into another order"
    upstream = "Keras issue 21889 asks for a way to convert models"
    today = LAYOUT.changes.removesuffix(".")

    def is_there(self, facts: CaseFacts) -> bool:
        return super().is_there(facts) and facts.device.kind == CPU and LAYOUT.name not in facts.options

    def concerns(self, model: Any) -> bool:
        layers = [layer for layer in model._flatten_layers() if SPATIAL & ancestors(layer)]
        return any(layer.data_format == LAST for layer in layers)

    def written(self, value: bool, script: ScriptFacts) -> Written:
        return LAYOUT.written(FIRST, script)

    def remade(self, value: bool, model: Any, feed: "Feed") -> "tuple[Any, Feed]":
        return LAYOUT.remade(FIRST, model, feed)

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return LAYOUT.ran_as(FIRST, resolved, usage)
