"""How many floating-point operations a training step takes, by the backend that can count, whichever is measured."""

from pathlib import Path

from kerasbench import backends
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
    refuse_other_frameworks(backends.counting())
    count_operations = backends.get(backends.counting()).count_operations
    assert count_operations is not None  # by this it was chosen
    file = Path(request.file)
    require_unchanged(file, request.file_hash)
    scenario, _ = load(file)
    regime = scenario.regime(request.regime)
    model = scenario.build(regime)
    rows = draw(scenario.dataset(regime), SAMPLES, 0, "synthetic")
    x, y = (rows.x, rows.y) if regime.feed is None else regime.feed(rows.x, rows.y, SAMPLES)[0]
    model.train_on_batch(x, y)  # the first step builds the model, symbolically too, and would be counted three times
    return count_operations(lambda: model.train_on_batch(x, y)) / SAMPLES
