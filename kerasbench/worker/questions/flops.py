"""How many floating-point operations a training step takes, counted by torch, whatever the backend that is measured.

torch counts the products, convolutions and attention that really run, loops of recurrent layers included; XLA's cost
analysis counts a loop's body once, and TensorFlow's profiler likewise. Elementwise operations are left out by all.
"""

from pathlib import Path

from kerasbench.exchange.requests import CountRequest
from kerasbench.scenario import load, require_unchanged
from kerasbench.worker.isolation import refuse_other_frameworks
from kerasbench.worker.trial.feed import draw

SAMPLES = 8  # in the batch that is counted: products grow in proportion to it, and eight are quick


def count(request: CountRequest) -> float:
    """Return the operations that a training step takes for each sample (a multiplication and an addition are two).

    Raises:
        ScenarioError: the scenario cannot be used.
    """
    refuse_other_frameworks("torch")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    file = Path(request.file)
    require_unchanged(file, request.file_hash)
    scenario, _ = load(file)
    regime = scenario.regime(request.regime)
    model = scenario.build(regime)
    rows = draw(scenario.dataset(regime), SAMPLES, 0, "synthetic")
    x, y = (rows.x, rows.y) if regime.feed is None else regime.feed(rows.x, rows.y, SAMPLES)[0]
    model.train_on_batch(x, y)  # the first step builds the model, symbolically too, and would be counted three times
    # The flash kernel of the CPU is not counted; the plain one does the same products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model.train_on_batch(x, y)
    return float(counter.get_total_flops()) / SAMPLES
