"""Have a scenario's real rows on disk, and in the right shape, before anything is measured."""

from pathlib import Path

from kerasbench.exchange.given import NOTHING
from kerasbench.exchange.requests import FetchRequest
from kerasbench.worker.sources.resolve import resolve
from kerasbench.worker.trial.feed import draw


def fetch(request: FetchRequest) -> str:
    """Load the regime's real rows and return their data set's title.

    Raises:
        DataError: they cannot be downloaded or read. ScenarioError: the file is no usable scenario.
    """
    scenario = resolve(Path(request.file), NOTHING).scenario
    regime = scenario.regime(request.regime)
    dataset = scenario.dataset(regime)
    draw(dataset, regime.train + regime.validation + regime.test, 0, "real")
    return dataset.title
