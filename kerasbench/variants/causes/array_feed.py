"""Of arrays Keras gathers each batch on TensorFlow anew, sample by sample, which a small model waits for."""

from typing import TYPE_CHECKING, Any

from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.tf_data import TENSORFLOW, TfData
from kerasbench.variants.variant import CaseFacts, Refusal, Written

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed

TF_DATA = TfData()
SMALL = 1_000_000  # weights: a step of more takes far longer than its batch


class ArrayFeed(Cause):
    name = "without_array_feed"
    files = (*Cause.files, TF_DATA.file)
    backends = (TENSORFLOW,)
    says = "Keras gathers each batch from the arrays anew"
    upstream = "Keras issues 18873 and 21029 report it"
    today = "Batches that are made once keep their samples from epoch to epoch"

    def is_there(self, facts: CaseFacts) -> bool:
        return super().is_there(facts) and TF_DATA.name not in facts.options

    def concerns(self, model: Any) -> bool:
        return bool(model.count_params() < SMALL)

    def written(self, value: bool, backend: str, processors: str) -> Written:
        return TF_DATA.written(value, backend, processors)

    def remade(self, value: bool, model: Any, feed: "Feed") -> "tuple[Any, Feed]":
        return TF_DATA.remade(value, model, feed)

    def take_away(self, model: Any) -> Refusal:
        return TF_DATA.on_model(True, model, TENSORFLOW)

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return TF_DATA.ran_as(value, resolved, usage)
