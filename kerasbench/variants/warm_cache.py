"""``--warm-cache``: the column finds what earlier processes of the run have compiled."""

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import CaseFacts, Refusal, Variant, VariantTable


class WarmCache(Variant[bool]):
    name = "warm_cache"
    help = "Also measure with a warm compilation cache: how much earlier does the first step end?"
    added, repeats, prepares = True, True, True
    drops = ("runtime",)
    beside = VariantTable(
        "What does a warm cache save?",
        ("first_step_ms",),
        ("compiled_call_first_ms",),
        "cold",
        "warm takes",
        "Warm: a new process that finds what an earlier one has compiled. JAX keeps all that it compiles; PyTorch and "
        "TensorFlow keep what --jit on compiles.",
        read="files read",
        field="cached",
    )

    def describe(self, value: bool, backend: str) -> str:
        return "warm cache"

    def refusal(self, value: bool, facts: CaseFacts) -> Refusal:
        jit = facts.options.get("jit")
        is_compiled = facts.backend.jit_default(facts.device) if jit is None else jit
        return None if is_compiled else facts.backend.UNCACHED

    def variables(self, value: bool, backend: Backend, folder: str) -> dict[str, str]:
        return {name: text.format(caches=folder) for name, text in backend.KEEPING.items()}

    def ran_as(self, value: bool, resolved: Resolved, usage: Usage) -> str:
        return "nothing that an earlier process had compiled" if resolved.cached == 0 else ""
