"""glibc returns the memory that a step frees to the system, which gives it back page by page in the next step."""

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.malloc import KEEP, Malloc
from kerasbench.variants.variant import CaseFacts, ScriptFacts, Written

MALLOC = Malloc()


class ReturnedMemory(Cause):
    name = "without_returned_memory"
    files = (*Cause.files, MALLOC.file)
    backends = ("jax", "torch")
    repeats, keeps_memory = True, True
    says = "each step returns memory to the system and asks for it again"

    def is_there(self, facts: CaseFacts) -> bool:
        return super().is_there(facts) and bool(MALLOC.candidates(facts)) and MALLOC.name not in facts.options

    def concerns(self, model: object) -> bool:
        return True

    def written(self, value: bool, script: ScriptFacts) -> Written:
        return MALLOC.written(KEEP, script)

    def variables(self, value: bool, backend: Backend, folder: str) -> dict[str, str]:
        return MALLOC.variables(KEEP, backend, folder)

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return MALLOC.ran_as(KEEP, resolved, usage)
