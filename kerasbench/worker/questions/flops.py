"""How many floating-point operations a training step takes, by the backend that can count, whichever is measured."""

from pathlib import Path

from kerasbench import backends
from kerasbench.exchange.requests import CountRequest
from kerasbench.scenario import require_unchanged
from kerasbench.worker.isolation import refuse_other_frameworks
from kerasbench.worker.sources.resolve import resolve
from kerasbench.worker.trial.feed import Feed, draw

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
    require_unchanged(file, request.file_hash, request.given)
    scenario = resolve(file, request.given).scenario
    regime = scenario.regime(request.regime)
    model = scenario.build(regime)
    rows = draw(scenario.dataset(regime), SAMPLES, 0, "synthetic")
    batch = Feed(regime, rows, rows[:0], rows[:0], scenario.class_weight).step(rows)
    model.train_on_batch(*batch)  # the first step builds the model, symbolically too, and would be counted three times
    return count_operations(lambda: model.train_on_batch(*batch)) / SAMPLES
