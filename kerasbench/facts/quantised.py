"""Which share of the parameters lies in memory as numbers of eight bits or fewer."""

import math

from kerasbench.facts.fact import NOTHING, Evidence, Fact
from kerasbench.text import percent

DTYPES = ("int8", "uint8", "int4", "float8")  # what dtypes begin with; those of four bits lie in pairs


class Quantised(Fact):
    name = "quantised"
    title = "quantised parameters"
    says = "Quantised parameters"

    def read(self, evidence: Evidence) -> str:
        total, by_dtype = 0, dict[str, int]()
        for weight in evidence.runner.model.weights:
            size, dtype = math.prod(weight.shape), str(weight.dtype)
            total += size
            if dtype.startswith(DTYPES):
                by_dtype[dtype] = by_dtype.get(dtype, 0) + size
        return ", ".join(f"{percent(size / total)} {dtype}" for dtype, size in sorted(by_dtype.items())) or NOTHING

    def explains(self, value: str) -> bool:
        return value != NOTHING
