import numpy as np
import pytest

from kerasbench import datasets
from kerasbench.protocol.columns import Size
from kerasbench.protocol.messages import Code
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.feed import ENOUGH_STEPS, MAX_BYTES, POOL_BYTES, Feed, prepare_sized, steps_at

FULL = Workload(train=100, validation=20, test=30, test_each_epoch=True)


def at(size: Size, workload: Workload = FULL, scalable: bool = True) -> Feed:
    data = datasets.images((8, 8), classes=3)
    scenario = Scenario(build=lambda workload: None, data=data, workloads=(workload,), scalable=scalable)
    return prepare_sized(scenario, workload, size, seed=0, kind="synthetic")


@pytest.mark.parametrize("batch", [1, 7, 64, 4096])
def test_an_epoch_has_whole_steps_of_any_batch(batch: int) -> None:
    feed = at(Size(batch=batch))
    assert feed.batch == batch
    assert len(feed.train) == feed.workload.train == batch * feed.workload.full_steps
    assert feed.workload.steps == feed.workload.full_steps >= ENOUGH_STEPS


def test_rows_come_over_again_and_no_more_are_drawn_than_there_are() -> None:
    feed = at(Size(batch=64))
    assert np.array_equal(feed.train.x[:100], feed.train.x[100:200])
    assert np.array_equal(feed.train.y[:100], feed.train.y[100:200])
    assert not np.array_equal(feed.train.x[:50], feed.train.x[50:100])


def test_steps_alone_are_measured_without_validation_and_test() -> None:
    feed = at(Size(batch=8))
    assert (len(feed.validation), len(feed.test), feed.workload.test_each_epoch) == (0, 0, False)
    assert (feed.workload.validation, feed.workload.test) == (0, 0)


def test_the_batch_is_the_workload_s_own_where_the_width_alone_is_varied() -> None:
    feed = at(Size(width=2.0))
    assert (feed.batch, feed.workload.width) == (100, 2.0)
    assert at(Size(batch=8)).workload.width == 1.0


def test_a_scenario_that_does_not_scale_says_what_to_do() -> None:
    with pytest.raises(ScenarioError, match=r"use workload.scaled\(units\)"):
        at(Size(width=2.0), scalable=False)


def test_what_a_run_refuses_of_a_pipeline_a_sweep_does_too() -> None:
    def data(samples: int, rng: np.random.Generator) -> tuple[object, ...]:
        return tuple(np.zeros(samples, np.float32) for _ in ("x", "y", "weights"))

    fed = Workload(train=100, feed=lambda x, y, batch: [(x[:batch], y[:batch])] * (len(x) // batch))
    assert len(at(Size(batch=8), fed).train) > 0
    uncut = Workload(train=100, feed=lambda x, y, batch: [(x, y)])
    for scenario in (
        Scenario(build=lambda workload: None, data=data, workloads=(fed,)),
        Scenario(build=lambda workload: None, data=datasets.iris(), workloads=(uncut,)),
    ):
        with pytest.raises(ScenarioError, match=r"feed\(\)"):
            prepare_sized(scenario, scenario.workloads[0], Size(batch=8), seed=0, kind="synthetic")


def test_small_batches_fill_a_pool_and_large_ones_make_enough_steps_within_a_bound() -> None:
    assert steps_at(1, 1024) == POOL_BYTES // 1024
    assert steps_at(4096, 3136) == ENOUGH_STEPS
    assert 8 <= steps_at(MAX_BYTES // 3136 // 10, 3136) < ENOUGH_STEPS


def test_a_batch_of_which_too_few_steps_can_be_held_is_unsupported() -> None:
    with pytest.raises(TrialFailure) as raised:
        steps_at(1 << 20, 3136)
    assert raised.value.failure.code is Code.UNSUPPORTED
    assert raised.value.failure.cause == "the rows of 8 steps of batch 1,048,576 take 24.5 GiB, more than 1 GiB"
