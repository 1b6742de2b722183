"""Have a scenario's real rows on disk, and in the right shape, before anything is measured."""

from pathlib import Path

from kerasbench.exchange.requests import FetchRequest
from kerasbench.scenario import load
from kerasbench.worker.trial.feed import draw


def fetch(request: FetchRequest) -> str:
    """Load the regime's real rows and return their data set's title.

    Raises:
        DataError: they cannot be downloaded or read. ScenarioError: the file is no usable scenario.
    """
    scenario, _ = load(Path(request.file))
    regime = scenario.regime(request.regime)
    dataset = scenario.dataset(regime)
    draw(dataset, regime.train + regime.validation + regime.test, 0, "real")
    return dataset.title
