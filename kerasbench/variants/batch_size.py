"""A batch size that ``fastest`` tries: a column of its own, where a sweep makes a row of it."""

from kerasbench.protocol.requests import counts_epochs
from kerasbench.variants.variant import FIT, CaseFacts, ScriptFacts, Variant, Written

TIMES = (4, 16)  # the workload's


class BatchSize(Variant[int]):
    name = "batch_size"
    tried, trains, batches = False, True, True

    def describe(self, value: int, backend: str) -> str:
        return f"batch {value:,}"

    def candidates(self, facts: CaseFacts) -> list[int]:
        """Return larger ones; none is larger than an epoch."""
        steps, batch = facts.workload.steps, facts.workload.batch
        return [] if counts_epochs(steps) else [times * batch for times in TIMES if times <= steps]

    def caution(self, value: int) -> str:
        return "A larger batch changes how the model learns: compare accuracy after as many epochs first."

    def written(self, value: int, script: ScriptFacts) -> Written:
        return FIT, f"model.fit(..., batch_size={value})"
