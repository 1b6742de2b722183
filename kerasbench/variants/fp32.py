"""``--fp32``: whether a GPU may round the factors of float32 products to TF32's ten bits."""

from typing import ClassVar

from kerasbench.backends import Backend
from kerasbench.protocol.columns import CPU, CUDA, IEEE, Device
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import CaseFacts, Refusal, Variant

TF32, AS_THE_FRAMEWORK = "tf32", "framework-default"


class Fp32(Variant[str]):
    name = "fp32"
    metavar = "MODE"
    help = "Precision of float32 matrix multiplications on a GPU: ieee (default), tf32 or framework-default."
    words: ClassVar = {IEEE: None, TF32: TF32, AS_THE_FRAMEWORK: AS_THE_FRAMEWORK}

    def describe(self, value: str, backend: str) -> str:
        return f"fp32 {value}"

    def refusal(self, value: str, facts: CaseFacts) -> Refusal:
        if value == TF32 and facts.device.platform != CUDA:
            cause = f"TF32 is a mode of NVIDIA GPUs, not of {facts.device.platform}"
            return cause, "leave out --fp32 tf32 for this device"
        return None

    def apply(self, value: str, backend: Backend, device: Device) -> None:
        if device.platform != CPU:
            backend.round_products(value)

    def ran_as(self, value: str, resolved: Resolved, usage: Usage) -> str:
        return resolved.fp32 if value == TF32 != resolved.fp32 else ""
