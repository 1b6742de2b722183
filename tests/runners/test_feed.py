"""Rows that are drawn for a trial, and at a size of a sweep."""

import dataclasses
import itertools
import re
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench import datasets
from kerasbench.protocol.columns import Size
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners.feed import MAX_BYTES, Feed, Rows, pool_samples, prepare, prepare_sized, steps_at, weights_of
from kerasbench.runners.inputs import LEAST_STEPS, POOL_BYTES
from kerasbench.scenario import Scenario, ScenarioError, Workload

IMAGES = datasets.images((8, 8), classes=3)


def scenario(workload: Workload, data: Any = IMAGES, **different: Any) -> Scenario:
    build: Any = len
    return Scenario(build=build, data=data, workloads=(workload,), **different)


Batches = list[tuple[object, ...]]


def in_batches(x: np.ndarray, y: np.ndarray, batch: int) -> Batches:
    return [(x[start : start + batch], y[start : start + batch]) for start in range(0, len(x), batch)]


def made(workload: Workload, data: Any = IMAGES, whole: bool = False) -> Feed:
    return prepare(scenario(workload, data), workload, seed=0, whole=whole)


def test_a_pool_holds_whole_batches_within_its_bound_or_a_small_set_or_a_full_batch() -> None:
    workload = Workload(train=50_000, batch=32)
    row_bytes = 32 * 32 * 3 * 4
    samples = pool_samples(workload, row_bytes)
    assert samples % 32 == 0
    assert POOL_BYTES - 32 * row_bytes < samples * row_bytes <= POOL_BYTES
    assert pool_samples(Workload(train=1000, batch=32), 100) == 1000
    assert pool_samples(Workload(train=52_500), 784 * 4 * 10) == 52_500


def test_learning_is_judged_by_unseen_rows_a_whole_batch_at_least_and_fewer_large_ones() -> None:
    feed = made(Workload(train=100, batch=10, test=20))
    assert (len(feed.train), len(feed.test), len(feed.validation), len(feed.evaluated)) == (100, 20, 0, 20)
    assert not any((row == feed.train.x).all(axis=(1, 2)).any() for row in feed.test.x)
    assert len(made(Workload(train=100, batch=10)).evaluated) == 100
    feed = made(Workload(train=8192, batch=2048, test=10_000, feed=in_batches))
    assert (len(feed.test), len(feed.evaluated)) == (2048, 2048)
    assert len(made(Workload(train=8192, batch=2048, feed=in_batches)).evaluated) == 2048
    assert len(made(Workload(train=8192, batch=2048, test=10_000)).evaluated) == 1000
    rows = Rows(np.broadcast_to(np.float32(0), (400, 1 << 20)), np.zeros(400, np.int32))
    assert len(Feed(Workload(train=400), rows, rows[:0], rows[:0]).evaluated) == POOL_BYTES >> 22


def test_validation_has_the_published_number_of_rows_and_the_published_protocol_all() -> None:
    feed = made(Workload(train=64, batch=32, validation=200, test=5000))
    assert (len(feed.validation), len(feed.test)) == (200, 1000)
    assert np.array_equal(feed.validation.x[64:128], feed.train.x)
    assert len(made(Workload(train=64, batch=32, test=5000, test_each_epoch=True)).test) == 5000
    feed = made(Workload(train=1000, validation=200, test=300, batch=32), whole=True)
    parts = (feed.train, feed.validation, feed.test)
    assert [len(rows) for rows in parts] == [1000, 200, 300]
    assert len(np.unique(np.concatenate([rows.x for rows in parts]), axis=0)) == 1500


@pytest.mark.parametrize("batch", [16, None])
@pytest.mark.parametrize("pipeline", [None, in_batches])
def test_one_row_is_drawn_to_learn_its_size_and_then_those_that_are_needed(batch: int | None, pipeline: Any) -> None:
    data = Mock(side_effect=lambda samples, rng: (np.zeros((samples, 3), np.float32), np.zeros(samples, np.int32)))
    made(Workload(train=64, batch=batch, test=20, feed=pipeline), data)
    assert [call.args[0] for call in data.call_args_list] == [1, 84]


@pytest.mark.parametrize(
    ("pipeline", "complaint"),
    [
        (lambda x, y, batch: in_batches(x, y, 8), "feed() must make 2 batches of 32 rows, not 4: use its batch"),
        (lambda x, y, batch: [(x[:8], y[:8])] * 2, "batches of 16 rows, as its batch says, not x of shape (8, 8, 8)"),
        (lambda x, y, batch: [(x[:16], y[:8])] * 2, "not y of shape (8,)"),
        (
            lambda x, y, batch: iter(in_batches(x, y, batch)),
            "made a list_iterator. It must make a keras.utils.PyDataset",
        ),
        (lambda x, y, batch: in_batches(x.astype(np.float64), y, batch), "not float64: x is"),
        (lambda x, y, batch: [x[:16], x[16:]], "must be (x, y) or (x, y, sample_weight), not ndarray"),
        (lambda x, y, batch: [(x[:16],)] * 2, "must be (x, y) or (x, y, sample_weight), not tuple"),
    ],
)
def test_a_pipeline_that_makes_other_batches_than_announced_is_refused(pipeline: Any, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(complaint)):
        made(Workload(train=64, batch=16, feed=pipeline))


def test_processes_of_a_pipeline_must_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool(Batches):
        use_multiprocessing = True

    workload = Workload(train=64, batch=16, feed=lambda x, y, batch: Pool(in_batches(x, y, batch)))
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "fork")
    made(workload)
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "spawn")
    with pytest.raises(ScenarioError, match="use_multiprocessing"):
        made(workload)


def moved(x: Any, y: Any, batch: int) -> Batches:
    return in_batches(x + np.random.default_rng().random(dtype=np.float32), y, batch)


class Distorted(Batches):
    """Moves each batch by the next number of a generator that always begins alike."""

    def __init__(self, x: Any, y: Any, batch: int) -> None:
        super().__init__(in_batches(x, y, batch))
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index: Any) -> Any:
        x, y = super().__getitem__(index)
        return x + self.rng.random(dtype=np.float32), y


@pytest.mark.parametrize(("pipeline", "draws"), [(None, False), (in_batches, False), (moved, True), (Distorted, True)])
def test_a_pipeline_that_draws_random_numbers_is_known(pipeline: Any, draws: bool) -> None:
    workload = Workload(train=64, batch=16, feed=pipeline)
    assert [made(workload, whole=whole).draws for whole in (True, False)] == [draws, draws]


def test_a_pipeline_of_few_rows_makes_one_batch() -> None:
    for (batch, test), whole in itertools.product(((16, 0), (None, 0), (None, 8)), (True, False)):
        assert len(made(Workload(train=20, batch=batch, test=test, feed=in_batches), whole=whole).train) == 20


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (lambda samples, rng: ([1] * samples, np.zeros(samples, np.int32)), r"x\[0\] is int"),
        (lambda samples, rng: ([], np.zeros(samples, np.int32)), "there is none in x or y"),
        (lambda samples, rng: ({"a": np.zeros(samples)}, np.zeros(samples)), r"x\['a'\] is an array of float64"),
        (lambda samples, rng: (np.zeros(samples, np.int32),) * 2 + (np.ones(9, np.float32),), "sample_weight has 9"),
        (lambda samples, rng: (np.zeros(9, np.float32), np.zeros(9, np.int32)), "x has 9"),
    ],
)
def test_a_recipe_that_returns_something_else_is_refused(data: object, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        made(Workload(train=64, batch=32), data)


def several(samples: int, rng: np.random.Generator) -> tuple[object, ...]:
    x = {"b": np.zeros((samples, 3), np.float32), "a": [np.arange(samples, dtype=np.int32)]}
    return x, (np.arange(samples, dtype=np.int32), np.ones((samples, 2), np.float32)), np.ones(samples, np.float32)


def test_structures_of_arrays_are_cut_and_repeated_together_as_fit_and_a_step_take_them() -> None:
    feed = made(Workload(train=64, batch=16, test=10, validation=8), several)
    assert [len(rows) for rows in (feed.train, feed.validation, feed.test)] == [64, 8, 10]
    assert feed.train.row_bytes == 16
    assert Rows(np.zeros((2, 4), np.float32), np.zeros((2, 50), np.float32)).row_bytes == 200  # targets may be larger
    assert feed.train[3:5].x["a"][0].tolist() == [3, 4]
    assert feed.train[:2].repeated(5).y[0].tolist() == [0, 1, 0, 1, 0]
    assert feed.train[:2].repeated(5).weights.shape == (5,)
    rows = feed.train[:4]
    x, y, weights = feed.step(rows)
    assert isinstance(x["a"], tuple) and isinstance(y, tuple)
    assert weights is rows.weights
    with pytest.raises(ScenarioError, match="let the batches that it makes be"):  # a pipeline makes its own weights
        made(Workload(train=64, batch=16, feed=in_batches), several)


def test_weights_of_classes_are_for_training_alone_in_whichever_form_classes_come() -> None:
    feed = dataclasses.replace(made(Workload(train=64, batch=16)), class_weight={0: 2.0})
    rows = feed.train[:16]
    assert feed.step(rows)[2].tolist() == [2.0 if label == 0 else 1.0 for label in rows.y]
    for targets in (np.array([2, 0, 1]), np.array([[2], [0], [1]]), np.eye(3)[[2, 0, 1]]):
        assert weights_of(targets, {2: 5.0, 1: 0.5}).tolist() == [5.0, 1.0, 0.5]
    with pytest.raises(ScenarioError, match="there are several targets: return sample_weight"):
        weights_of([np.zeros(2)], {0: 1.0})


FULL = Workload(train=100, validation=20, test=30, test_each_epoch=True)


def at(size: Size, workload: Workload = FULL, scalable: bool = True) -> Feed:
    return prepare_sized(scenario(workload, scalable=scalable), workload, size, seed=0, kind="synthetic")


@pytest.mark.parametrize("batch", [1, 7, 64, 4096])
def test_an_epoch_has_whole_steps_of_any_batch_for_which_rows_come_over_again(batch: int) -> None:
    feed = at(Size(batch=batch))
    assert feed.batch == batch
    assert len(feed.train) == feed.workload.train == batch * feed.workload.full_steps
    assert feed.workload.steps == feed.workload.full_steps >= LEAST_STEPS
    assert np.array_equal(feed.train.x[:100], feed.train.x[100:200])
    assert np.array_equal(feed.train.y[:100], feed.train.y[100:200])
    assert not np.array_equal(feed.train.x[:50], feed.train.x[50:100])
    assert (len(feed.validation), len(feed.test), feed.workload.test_each_epoch) == (0, 0, False)
    assert (feed.workload.validation, feed.workload.test) == (0, 0)


def test_a_width_is_for_scenarios_that_scale_and_a_pipeline_is_looked_at_in_a_sweep_too() -> None:
    feed = at(Size(width=2.0))
    assert (feed.batch, feed.workload.width) == (100, 2.0)
    assert at(Size(batch=8)).workload.width == 1.0
    with pytest.raises(ScenarioError, match=r"use workload.scaled\(units\)"):
        at(Size(width=2.0), scalable=False)
    assert len(at(Size(batch=8), Workload(train=100, feed=in_batches)).train) > 0
    with pytest.raises(ScenarioError, match=r"feed\(\) must make 2 batches"):
        at(Size(batch=8), Workload(train=100, feed=lambda x, y, batch: [(x, y)]))


def test_small_batches_fill_a_pool_and_large_ones_make_enough_steps_within_a_bound() -> None:
    assert steps_at(1, 1024) == POOL_BYTES // 1024
    assert steps_at(4096, 3136) == LEAST_STEPS
    assert 8 <= steps_at(MAX_BYTES // 3136 // 10, 3136) < LEAST_STEPS
    with pytest.raises(TrialFailure, match=r"of 8 steps of batch 1,048,576 take 24\.5 GiB, more than 1 GiB") as raised:
        steps_at(1 << 20, 3136)
    assert raised.value.failure.code is Code.UNSUPPORTED


def test_inputs_alone_are_what_fit_and_a_step_get_where_data_returns_no_targets() -> None:
    workload = Workload(train=64, batch=16)
    feed = made(workload, lambda samples, rng: rng.random((samples, 3), dtype="float32"))
    assert feed.train.y is None and len(feed.one_batch(feed.first_batch)) == 1
    assert feed.stepped(feed.first_batch).shape == (16, 3)
    several = made(workload, lambda samples, rng: {"a": rng.random((samples, 3), dtype="float32")})
    assert several.stepped(several.first_batch)[0]["a"].shape == (16, 3)


@pytest.mark.parametrize("values", [["a", "b"], [b"a", b"b"], np.array(["a", "b"], object)])
def test_text_is_refused_with_what_to_return_instead(values: Any) -> None:
    with pytest.raises(ScenarioError, match="must return numbers; x holds text"):
        made(
            Workload(train=2), lambda samples, rng: (np.resize(np.asarray(values), samples), np.zeros(samples, "int32"))
        )


def test_classes_have_no_weights_without_targets() -> None:
    workload = Workload(train=64, batch=16)
    alone = scenario(workload, lambda samples, rng: np.zeros((samples, 3), np.float32), class_weight={0: 1.0})
    with pytest.raises(ScenarioError, match="class_weight is for classes"):
        prepare(alone, workload, seed=0)


def test_a_pipeline_that_needs_a_framework_is_told_what_to_make() -> None:
    def loader(x: Any, y: Any, batch: int) -> Any:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    with pytest.raises(TrialFailure) as raised:
        made(Workload(train=64, batch=16, feed=loader))
    failure = raised.value.failure
    assert failure.code is Code.UNSUPPORTED and "It must make a keras.utils.PyDataset" in failure.cause
    assert "import it" not in failure.remedy and "__getitem__" in failure.remedy
