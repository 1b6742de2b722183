"""TensorFlow runs the steps of one execution in a loop, of which each round costs something."""

from typing import Any

from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.variant import SCRIPT, Refusal, Written

UNROLLED = 8  # copies of a step in the graph: more make tracing longer


class RolledSteps(Cause):
    name = "without_rolled_steps"
    backends = ("tensorflow",)
    says = "TensorFlow runs the steps of one execution in a loop that is not unrolled"

    def concerns(self, model: Any) -> bool:
        is_whole = model.steps_per_execution % UNROLLED == 0  # else the last copies would be steps too many
        return is_whole and getattr(model, "unrolled_steps_per_execution", None) == 1

    def written(self, value: bool, backend: str, processors: str) -> Written:
        return SCRIPT, f"model.unrolled_steps_per_execution = {UNROLLED}"

    def take_away(self, model: Any) -> Refusal:
        model.unrolled_steps_per_execution = UNROLLED
        return None
