"""torch.compile ends a graph where it meets Python that it cannot follow, as at the attention of Keras 3.15."""

from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.text import count
from kerasbench.variants.causes.cause import Cause


class GraphBreaks(Cause):
    name = "without_graph_breaks"
    backends = ("torch",)
    says = "torch.compile does not compile the step as a whole"
    upstream = "Those at attention layers are gone after Keras 3.15.1, by PR 23327"

    def noticed(self, device: Device, measurement: Measurement, epoch_cost: float) -> str:
        breaks = measurement.compiler.breaks if measurement.compiler else {}
        if not breaks:
            return ""
        return f"It met {count(sum(breaks.values()), 'graph break')}, most often: {max(breaks, key=breaks.__getitem__)}"
