"""What was compiled as a whole: asked for and done, where graphs end early, and what was compiled while measured."""

from kerasbench.facts.fact import Evidence, Fact
from kerasbench.protocol.measurement import Compiler
from kerasbench.text import count


class Compiled(Fact):
    name = "compiled"
    title = "compiled as a whole"
    says = "Compiled as a whole"

    def read(self, evidence: Evidence) -> str:
        compiler = evidence.compiler or Compiler()
        parts = ["asked and done" if evidence.resolved.jit else "not asked"]
        if evidence.resolved.jit and compiler.eager:
            parts = [f"asked and not done: {compiler.eager}"]
        if compiler.breaks:
            parts.append(count(sum(compiler.breaks.values()), "graph break"))
        if compiler.given_up:
            parts.append(f"{count(compiler.given_up, 'piece')} given up")
        if compiler.while_measured:
            parts.append("again while it was measured")
        return ", ".join(parts)
