"""A regime at a size of a sweep: its batch, its width, and rows for enough whole steps of them."""

import dataclasses

from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.options import Size
from kerasbench.exchange.requests import MIN_STEPS_FOR_BLOCKS
from kerasbench.scenario import Regime, Scenario, ScenarioError
from kerasbench.text import size as in_words
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.trial.feed import POOL_BYTES, Feed, check_pipeline, draw

ENOUGH_STEPS = 16  # of an epoch, whose first step is in no block: blocks of eight fit
MAX_BYTES = 1 << 30  # of rows; TensorFlow holds them twice


def prepare(scenario: Scenario, regime: Regime, size: Size, seed: int, kind: str) -> Feed:
    """Return the regime at that size: steps alone, without validation and test, on its rows over and over again.

    Raises:
        TrialFailure: too few steps of the batch fit into MAX_BYTES (unsupported).
        ScenarioError: the scenario does not scale, or its rows cannot be used. DataError: real rows cannot be had.
    """
    if size.width is not None and not scenario.scalable:
        raise ScenarioError("no layer follows regime.width: use regime.scaled(units), and say Scenario(scalable=True)")
    dataset = scenario.dataset(regime)
    batch = size.batch or regime.batch_size
    samples = batch * steps(batch, draw(dataset, 1, seed, "synthetic").row_bytes)
    at_size = dataclasses.replace(
        regime,
        batch=batch,
        width=size.width or regime.width,
        train=samples,
        validation=0,
        test=0,
        test_each_epoch=False,
    )
    rows = draw(dataset, min(samples, regime.train), seed, kind).repeated(samples)
    return Feed(at_size, rows, rows[:0], rows[:0], scenario.class_weight, check_pipeline(at_size, rows))


def steps(batch: int, row_bytes: int) -> int:
    """Return how many steps of a batch an epoch has: as many as a pool of rows holds, or at least enough of them.

    Raises:
        TrialFailure: fewer than blocks can be made of fit into MAX_BYTES.
    """
    batch_bytes = batch * row_bytes
    count = min(max(ENOUGH_STEPS, POOL_BYTES // batch_bytes), MAX_BYTES // batch_bytes)
    if count < MIN_STEPS_FOR_BLOCKS:
        needed, allowed = in_words(MIN_STEPS_FOR_BLOCKS * batch_bytes), in_words(MAX_BYTES)
        cause = f"the rows of {MIN_STEPS_FOR_BLOCKS} steps of batch {batch:,} take {needed}, more than {allowed}"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "sweep smaller batches", "data"))
    return count
