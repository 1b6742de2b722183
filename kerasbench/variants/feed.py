"""``--feed``: what ``fit`` gets, arrays or a pipeline that makes the same batches of the same rows."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners.feeders import FEEDERS, to_paste
from kerasbench.variants.unrolled_steps import OF_STEPS, has_short_steps
from kerasbench.variants.variant import FIT, CaseFacts, Refusal, ScriptFacts, Variant, Written

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed as Rows  # which imports NumPy

TENSORFLOW, TF_DATA, CACHED = "tensorflow", "tf.data", "tf.data-cached"
WORKERS = "workers"


class Feed(Variant[str]):
    name = "feed"
    metavar = "NAME"
    help = (
        f"What `fit` gets: arrays (default), {', '.join(FEEDERS)}. All feeds give the same rows in batches of as many, "
        "shuffled and prefetched. tf.data-cached makes its batches once."
    )
    words: ClassVar = {"arrays": None, **{name: name for name in FEEDERS}}
    tried, crossed, last, trains = True, True, True, True

    def describe(self, value: str, backend: str) -> str:
        return value

    def refusal(self, value: str, facts: CaseFacts) -> Refusal:
        if facts.plan.agenda.only_predicts or facts.workload.predicts_only:
            return "--feed is about training, and this model only predicts here", "leave out --feed"
        if facts.workload.streams:
            return "the script gives fit() batches of its own", "take a script that gives arrays to fit()"
        return None

    def candidates(self, facts: CaseFacts) -> list[str]:
        if facts.workload.on_disk:  # by themselves: each candidate makes a race longer
            return [name for name in FEEDERS if name != CACHED and not facts.options.choices]
        # Without XLA, by which such steps are not faster: each candidate makes a race longer.
        loops = facts.options.get("steps_per_execution") == OF_STEPS and "jit" not in facts.options
        return [CACHED] if facts.name == TENSORFLOW and loops and has_short_steps(facts.workload) else []

    def caution(self, value: str) -> str:
        once = "With batches that are made once, the same samples stay in a batch in all epochs."
        return once if value == CACHED else ""

    def written(self, value: str, script: ScriptFacts) -> Written:
        workers = int(script.options.get(WORKERS, 0))
        lines = [*to_paste(value, workers, script.on_disk), "model.fit(batches)"]
        return FIT, ("\n" if script.on_disk or any("\n" in line for line in lines) else "; ").join(lines)

    def feeder(self, value: str) -> str:
        return value

    def remade(self, value: str, model: Any, feed: "Rows") -> "tuple[Any, Rows]":
        if not (feed.workload.feed is None and feed.stream is None and feed.loop is None):
            remedy = "leave out --feed for this workload"
            raise TrialFailure(Failure(Code.UNSUPPORTED, "its batches come from a pipeline of its own", remedy))
        return model, dataclasses.replace(feed, feeder=FEEDERS[value])

    def ran_as(self, value: str, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.feed == FEEDERS[value].kind else resolved.feed
