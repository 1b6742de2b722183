"""``--jit``: whether a step, or a call, is compiled as a whole."""

from typing import Any, ClassVar

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import COMPILE, CaseFacts, Refusal, ScriptFacts, Variant, Written


class Jit(Variant[bool]):
    name = "jit"
    metavar = "default|on|off"
    help = "Compile the step: on, off, or default (what each backend does)."
    words: ClassVar = {"default": None, "on": True, "off": False}
    tried, crossed = True, True

    def describe(self, value: bool, backend: str) -> str:
        compiler = backends.get(backend).COMPILER
        return compiler if value else f"no {compiler}"

    def refusal(self, value: bool, facts: CaseFacts) -> Refusal:
        return facts.backend.NO_JIT.get(facts.device.platform) if value else None

    def candidates(self, facts: CaseFacts) -> list[bool]:
        return [True] if facts.backend.OTHER_JIT else []

    def written(self, value: bool, script: ScriptFacts) -> Written:
        return COMPILE, f"jit_compile={value}"

    def first_steps(self, value: bool, backend: Backend) -> int:
        return 2 if value and backend.COMPILES_AGAIN else 1

    def on_model(self, value: bool, model: Any, backend: str) -> Refusal:
        model.jit_compile = value
        if value and not model.jit_compile:  # where tensorflow-metal is installed it does not, even for the CPU
            return f"Keras does not compile this model on {backend} here", "leave out --jit, or say --jit off"
        return None

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.jit == value else self.word(resolved.jit)
