"""``--runtime``: what predicts, Keras or a runtime that has loaded what Keras has exported."""

from collections.abc import Collection
from typing import ClassVar

from kerasbench import runtimes
from kerasbench.protocol.columns import CPU
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.runners import Predictor
from kerasbench.variants.variant import FIT, CaseFacts, Refusal, ScriptFacts, Variant, Written

KERAS = "keras"
PRECISE = "float32"


class Exports(Variant[str]):
    name = "runtime"
    metavar = "NAME"
    help = f"What predicts: keras (default), {', '.join(runtimes.names())}: exported models, which are not trained."
    words: ClassVar = {KERAS: None, **{name: name for name in runtimes.names()}}
    exports = True
    tried = False
    files = tuple(f"runtimes/{name}.py" for name in ("__init__", *runtimes.names()))

    def describe(self, value: str, backend: str) -> str:
        return runtimes.get(value).title

    def backends_of(self, value: str) -> Collection[str]:
        return runtimes.get(value).exporters

    def refusal(self, value: str, facts: CaseFacts) -> Refusal:
        if facts.device.kind != CPU:
            return "exported models are measured on the CPU alone", "leave out --runtime, or say --device cpu"
        if not facts.plan.agenda.only_predicts:
            return "an exported model only predicts", "leave out --runtime"
        if facts.options.get("dtype", PRECISE) != PRECISE or {"jit", "layout"} & facts.options.keys():
            cause = "an exported model computes in float32, as it was written, and is compiled as its runtime does"
            return cause, "leave out --dtype, --jit and --layout with --runtime"
        return None

    def candidates(self, facts: CaseFacts) -> list[str]:
        # Those that need no package besides.
        exported = [name for name in runtimes.names() if runtimes.get(name).exporters.get(facts.name) == ()]
        return [name for name in exported if self.refusal(name, facts) is None]

    def caution(self, value: str) -> str:
        return "An exported model takes one size of batch, and only predicts."

    def written(self, value: str, script: ScriptFacts) -> Written:
        return FIT, "\n".join(runtimes.get(value).lines)

    def interpreter(self, value: str) -> str:
        return value if runtimes.get(value).bare else ""

    def runner(self, value: str) -> type[Predictor]:
        return runtimes.get(value)

    def ran_as(self, value: str, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.compute_dtypes == [PRECISE] else " and ".join(resolved.compute_dtypes)
