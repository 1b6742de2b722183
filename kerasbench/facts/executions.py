"""How many training steps one execution really has: several may be one program, or a loop in Python."""

from kerasbench.facts.fact import NOT_KNOWN, Evidence, Fact


class Executions(Fact):
    name = "executions"
    title = "steps in an execution"
    says = "Steps in an execution"

    def read(self, evidence: Evidence) -> str:
        steps, unrolled = evidence.resolved.steps_per_execution, evidence.resolved.unrolled_steps
        if steps == 1:
            return "1"
        if evidence.python_steps is None:
            return f"{steps}, fused: {NOT_KNOWN}"
        if evidence.python_steps:
            return f"{steps} one by one, in a loop of Python"
        return f"{steps} in one program" + (f", {unrolled} of them unrolled" if unrolled > 1 else "")

    def explains(self, value: str) -> bool:
        return "one by one" in value
