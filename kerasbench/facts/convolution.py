"""How images lie in memory where they are convolved or pooled, and how often they are copied for that."""

from kerasbench.backends import Operation
from kerasbench.facts.fact import NOT_KNOWN, NOTHING, Evidence, Fact
from kerasbench.protocol.columns import FIRST, LAST
from kerasbench.runners.layers import class_names
from kerasbench.text import count

CONVOLUTIONS = {"BaseConv", "BaseDepthwiseConv", "BaseConvTranspose", "BaseSeparableConv"}
LAYERS = {*CONVOLUTIONS, "BasePooling", "BaseAdaptivePooling"}
# Operations of torch whose first tensor is an image.
OF_IMAGES = {"aten::convolution", *(f"aten::{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3))}
COPY, A_STEP = "aten::clone", "in a step"


class Convolution(Fact):
    name = "convolution"
    title = "memory of images"
    says = "Images lay in memory as"

    def read(self, evidence: Evidence) -> str:
        layers = [layer for layer in evidence.runner.layers if LAYERS & class_names([layer])]
        if not layers:
            return NOTHING
        images = [operation for operation in evidence.operations or () if operation.name in OF_IMAGES]
        if not images:
            formats = sorted({str(layer.data_format) for layer in layers})
            return f"{' and '.join(formats)} as Keras asks for it, copies {NOT_KNOWN}"
        shapes = {image.sizes for image in images}
        copies = sum(operation.name == COPY and operation.sizes in shapes for operation in evidence.operations or ())
        orders = sorted({order for image in images if (order := order_of(image))})
        return f"{' and '.join(orders) or NOT_KNOWN}, copied {count(copies, 'time')} {A_STEP}"

    def explains(self, value: str) -> bool:
        return value.endswith(A_STEP) and "copied 0 times" not in value


def order_of(image: Operation) -> str:
    """Return where its channels lie, which torch always counts second; empty where it has a single one or pixel."""
    if len(image.sizes) < 3 or image.sizes[1] == 1 or max(image.sizes[2:]) == 1:
        return ""
    return LAST if image.strides[1] == 1 else FIRST
