"""Of arrays Keras gathers each batch on TensorFlow anew, sample by sample, which a small model waits for."""

from typing import TYPE_CHECKING, Any

from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.feed import CACHED, TENSORFLOW, Feed
from kerasbench.variants.variant import CaseFacts, ScriptFacts, Written

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed as Rows

FEED = Feed()
SMALL = 1_000_000  # weights: a step of more takes far longer than its batch


class ArrayFeed(Cause):
    name = "without_array_feed"
    files = (*Cause.files, FEED.file)
    backends = (TENSORFLOW,)
    says = "Keras gathers each batch from the arrays anew"
    upstream = "Keras issues 18873 and 21029 report it"
    today = "Batches that are made once keep their samples from epoch to epoch"

    def is_there(self, facts: CaseFacts) -> bool:
        return super().is_there(facts) and FEED.name not in facts.options and not facts.workload.streams

    def concerns(self, model: Any) -> bool:
        return bool(model.count_params() < SMALL)

    def written(self, value: bool, script: ScriptFacts) -> Written:
        return FEED.written(CACHED, script)

    def feeder(self, value: bool) -> str:
        return CACHED

    def remade(self, value: bool, model: Any, feed: "Rows") -> "tuple[Any, Rows]":
        return FEED.remade(CACHED, model, feed)

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return FEED.ran_as(CACHED, resolved, usage)
