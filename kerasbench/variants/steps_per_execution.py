"""``--steps-per-execution``: training steps between two looks of ``fit``."""

from itertools import pairwise
from typing import Any

from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.protocol.requests import too_few_executions
from kerasbench.variants.variant import COMPILE, CaseFacts, Refusal, ScriptFacts, Variant, Written

TRIED = (8, 32)


class StepsPerExecution(Variant[int]):
    name = "steps_per_execution"
    metavar, help = "N", "Training steps in one execution, as in compile(). Default: the model's own."
    tried, crossed, trains = True, True, True
    changes = (
        "With several steps per execution, Keras calls per-batch callbacks less often. "
        "What the model learns stays the same."
    )

    def describe(self, value: int, backend: str) -> str:
        return f"{self.name}={value}"

    def refusal(self, value: int, facts: CaseFacts) -> Refusal:
        if facts.workload.loops:
            return "a script's own loop makes single steps", "leave out --steps-per-execution"
        cause = too_few_executions(facts.workload.steps, value)
        return (cause, "leave out --steps-per-execution for this workload, or lower it") if cause else None

    def candidates(self, facts: CaseFacts) -> list[int]:
        """Return those tried; the largest is the first that holds a whole epoch."""
        if not facts.backend.SEVERAL_STEPS:
            return []
        return [size for fewer, size in pairwise((1, *TRIED)) if fewer < facts.workload.steps]

    def written(self, value: int, script: ScriptFacts) -> Written:
        return COMPILE, f"{self.name}={value}"

    def on_model(self, value: int, model: Any, backend: str) -> Refusal:
        model.steps_per_execution = value
        return None

    def ran_as(self, value: int, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.steps_per_execution == value else str(resolved.steps_per_execution)
