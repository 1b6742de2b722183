"""``--tf-data``: TensorFlow is fed batches that a tf.data pipeline has made once, in place of arrays."""

from typing import TYPE_CHECKING, Any, ClassVar

from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.variants.unrolled_steps import OF_STEPS, has_short_steps
from kerasbench.variants.variant import FIT, CaseFacts, Refusal, Variant, Written

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed

TENSORFLOW = "tensorflow"


class TfData(Variant[bool]):
    name = "tf_data"
    metavar = "off|on"
    help = "What `fit` gets on TensorFlow: arrays (off, the default) or batches that tf.data makes once (on)."
    words: ClassVar = {"off": None, "on": True}
    tried, crossed, trains = True, True, True
    changes = "With batches that are made once, the same samples stay in a batch in all epochs."

    def said(self, value: bool, backend: str) -> str:
        return "tf.data"

    def refusal(self, value: bool, facts: CaseFacts) -> Refusal:
        if facts.name != TENSORFLOW:
            return f"--tf-data on feeds TensorFlow alone, not {facts.name}", "leave out --tf-data for this backend"
        if facts.plan.agenda.only_predicts or facts.workload.predicts_only:
            return "--tf-data on is about training, and this model only predicts here", "leave out --tf-data"
        return None

    def candidates(self, facts: CaseFacts) -> list[bool]:
        # Without XLA, by which such steps are not faster: each candidate makes a race longer.
        loops = facts.options.get("steps_per_execution") == OF_STEPS and "jit" not in facts.options
        return [True] if facts.name == TENSORFLOW and loops and has_short_steps(facts.workload) else []

    def written(self, value: bool, backend: str, processors: str) -> Written:
        batches = (
            "import tensorflow as tf; batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size).cache()"
        )
        return FIT, f"{batches}; model.fit(batches.shuffle(len(batches)).prefetch(tf.data.AUTOTUNE))"

    def remade(self, value: bool, model: Any, feed: "Feed") -> "tuple[Any, Feed]":
        if feed.workload.feed is not None:
            remedy = "leave out --tf-data for this workload"
            raise TrialFailure(Failure(Code.UNSUPPORTED, "its batches come from a pipeline of its own", remedy))
        return model, feed

    def on_model(self, value: bool, model: Any, backend: str) -> Refusal:
        from kerasbench.runners.batches import feed_batches

        feed_batches(model)
        return None

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.batches_once else "arrays"
