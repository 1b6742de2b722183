"""TensorFlow runs the steps of one execution in a loop, of which each round costs something."""

from typing import Any

from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.unrolled_steps import UNROLLED, UnrolledSteps
from kerasbench.variants.variant import Refusal, ScriptFacts, Written

STEPS = UnrolledSteps()


class RolledSteps(Cause):
    name = "without_rolled_steps"
    files = (*Cause.files, STEPS.file)
    backends = ("tensorflow",)
    says = "TensorFlow runs the steps of one execution in a loop that is not unrolled"

    def concerns(self, model: Any) -> bool:
        is_whole = model.steps_per_execution % UNROLLED == 0  # else the last copies would be steps too many
        return is_whole and getattr(model, "unrolled_steps_per_execution", None) == 1

    def written(self, value: bool, script: ScriptFacts) -> Written:
        return STEPS.written(UNROLLED, script)

    def take_away(self, model: Any) -> Refusal:
        return STEPS.on_model(UNROLLED, model, self.backends[0])

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return STEPS.ran_as(UNROLLED, resolved, usage)
