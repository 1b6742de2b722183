"""``--unrolled-steps``: of the training steps in one execution, how many stand in the program one after another."""

from typing import Any

from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import COMPILED, CaseFacts, Refusal, ScriptFacts, Variant, Written

UNROLLED, OF_STEPS = 8, 32
# Of a step. With the 51 million of mnist_dense, which take 1.5 ms, nothing was gained.
FEW_OPERATIONS = 20_000_000


def has_short_steps(workload: WorkloadDescription) -> bool:
    """By its operations. Those of a saved model are not known, but each weight takes part in six of each sample."""
    operations = workload.operations or 6 * (workload.parameters or FEW_OPERATIONS) * workload.batch
    return operations <= FEW_OPERATIONS


class UnrolledSteps(Variant[int]):
    name = "unrolled_steps"
    metavar, help = "N", "How many steps of one execution TensorFlow unrolls. Default: 1, which is a loop."
    tried, crossed, trains = True, True, True

    def describe(self, value: int, backend: str) -> str:
        return f"{value} unrolled"

    def refusal(self, value: int, facts: CaseFacts) -> Refusal:
        if not facts.backend.UNROLLS:
            return f"Keras unrolls no steps on {facts.name}", "leave out --unrolled-steps for this backend"
        executed = int(facts.options.get("steps_per_execution", 1))
        if executed % value == 0:
            return None
        cause = f"{executed} steps in one execution are not a multiple of {value} unrolled ones"
        return cause, f"add --steps-per-execution {4 * value}"

    def candidates(self, facts: CaseFacts) -> list[int]:
        # XLA compiles a step by itself: unrolled, that was slower.
        loops = facts.options.get("steps_per_execution") == OF_STEPS and "jit" not in facts.options
        return [UNROLLED] if facts.backend.UNROLLS and loops and has_short_steps(facts.workload) else []

    def written(self, value: int, script: ScriptFacts) -> Written:
        return COMPILED, f"model.unrolled_steps_per_execution = {value}"

    def on_model(self, value: int, model: Any, backend: str) -> Refusal:
        model.unrolled_steps_per_execution = value
        return None

    def ran_as(self, value: int, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.unrolled_steps == value else str(resolved.unrolled_steps)
