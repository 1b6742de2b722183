"""``--malloc keep``: freed memory stays with the process."""

from typing import ClassVar

from kerasbench.backends import Backend
from kerasbench.protocol.columns import CPU, has_glibc
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import SHELL, CaseFacts, Refusal, ScriptFacts, Variant, Written

KEEP = "keep"
# How glibc's malloc keeps what a program has freed. By itself it maps large blocks one by one, gives the end of its
# heap back to the system, and whole heaps of threads.
KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(16 << 30), "MALLOC_ARENA_MAX": "1"}


class Malloc(Variant[str]):
    name = "malloc"
    metavar = "default|keep"
    help = "Freed memory on a CPU: default (returned to the system) or keep (kept by the process; Linux with glibc)."
    words: ClassVar = {"default": None, KEEP: KEEP}
    tried, repeats, keeps_memory = True, True, True

    def describe(self, value: str, backend: str) -> str:
        return "freed memory kept"

    def refusal(self, value: str, facts: CaseFacts) -> Refusal:
        if facts.device.platform == CPU and has_glibc():
            return None
        return "--malloc keep works on a CPU only, on Linux with glibc", "leave out --malloc for this device"

    def candidates(self, facts: CaseFacts) -> list[str]:
        return [KEEP] if facts.backend.RETURNS_MEMORY and self.refusal(KEEP, facts) is None else []

    def written(self, value: str, script: ScriptFacts) -> Written:
        return SHELL, f"export {' '.join(f'{name}={text}' for name, text in KEEPS_MEMORY.items())}"

    def variables(self, value: str, backend: Backend, folder: str) -> dict[str, str]:
        return KEEPS_MEMORY

    def ran_as(self, value: str, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.malloc == value else "memory that is returned to the system"
