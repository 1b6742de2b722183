"""``--dtype``: the numbers that layers compute with, and that weights are kept in."""

from typing import ClassVar

from kerasbench.backends import Backend
from kerasbench.protocol.columns import APPLE, CPU, Device
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import SCRIPT, CaseFacts, Refusal, ScriptFacts, Variant, Written

WIDE = "float64"
POLICIES = ("float32", "float16", "bfloat16", WIDE, "mixed_float16", "mixed_bfloat16")


class Dtype(Variant[str]):
    name = "dtype"
    metavar = "POLICY"
    help = "float32 (default), mixed_float16, mixed_bfloat16, ..."
    words: ClassVar = {name: name for name in POLICIES}
    tried, crossed = False, True

    def refusal(self, value: str, facts: CaseFacts) -> Refusal:
        if value == WIDE and facts.device.platform in APPLE:
            return "the Apple GPU has no float64", "measure float64 with --device cpu"
        return None

    def candidates(self, facts: CaseFacts) -> list[str]:
        return ["mixed_bfloat16" if facts.device.kind == CPU else "mixed_float16"]

    def caution(self, value: str) -> str:
        return "A dtype of fewer digits changes the results: compare accuracy before you take it."

    def written(self, value: str, script: ScriptFacts) -> Written:
        return SCRIPT, f'keras.config.set_dtype_policy("{value}")'

    def variables(self, value: str, backend: Backend, folder: str) -> dict[str, str]:
        return backend.WIDE if value == WIDE else {}

    def apply(self, value: str, backend: Backend, device: Device) -> None:
        import keras

        keras.config.set_dtype_policy(value)

    def ran_as(self, value: str, resolved: Resolved, usage: Usage) -> str:
        """Look at layers, which have the policy, and at real weights: JAX makes float32 of float64 with a warning."""
        computed = value.removeprefix("mixed_")
        stored = "float32" if value != computed else computed
        if resolved.dtype_policy == value and computed in resolved.compute_dtypes and stored in resolved.weight_dtypes:
            return ""
        layers, weights = " and ".join(resolved.compute_dtypes), " and ".join(resolved.weight_dtypes)
        return f"{resolved.dtype_policy}, layers in {layers}, weights in {weights}"
