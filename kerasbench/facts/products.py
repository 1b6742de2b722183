"""In which numbers products are computed, and whether this processor has instructions for them."""

import ctypes
import sys
from pathlib import Path

from kerasbench.facts.fact import NOT_KNOWN, Evidence, Fact
from kerasbench.protocol.columns import CPU

# How Linux calls instructions that multiply these, on x86 and on ARM; and macOS.
FLAGS = {
    "bfloat16": {"avx512_bf16", "amx_bf16", "bf16"},
    "float16": {"avx512_fp16", "amx_fp16", "asimdhp"},
}
SYSCTL = {"bfloat16": "hw.optional.arm.FEAT_BF16", "float16": "hw.optional.arm.FEAT_FP16"}
EMULATED = "emulated on this processor"
CPUINFO = Path("/proc/cpuinfo")


class Products(Fact):
    name = "products"
    title = "numbers in products"
    says = "Products were computed in"

    def read(self, evidence: Evidence) -> str:
        on_cpu = evidence.runner.request.device.platform == CPU
        texts = []
        for dtype in sorted(evidence.runner.compute_dtypes):
            how = [] if dtype != "float32" or on_cpu else [f"rounded as {evidence.resolved.fp32}"]
            if on_cpu and dtype in FLAGS:
                is_native = has_instructions(dtype)
                how = [] if is_native else [EMULATED if is_native is not None else f"{EMULATED}: {NOT_KNOWN}"]
            texts.append(", ".join([dtype, *how]))
        return " and ".join(texts) or NOT_KNOWN

    def explains(self, value: str) -> bool:
        return EMULATED in value


def has_instructions(dtype: str, cpuinfo: Path = CPUINFO, system: str = sys.platform) -> bool | None:
    """Tell whether this processor multiplies such numbers itself; None: the system does not say."""
    if system == "darwin":
        value, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        ask = ctypes.CDLL(None).sysctlbyname
        failed = ask(SYSCTL[dtype].encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
        return None if failed else bool(value.value)
    try:
        lines = cpuinfo.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    flags = [line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))]
    return bool(FLAGS[dtype].intersection(flags[0])) if flags else None
