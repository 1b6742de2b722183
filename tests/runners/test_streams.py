"""What a script gives to ``fit``, looked at without a framework."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kerasbench.protocol.columns import Size
from kerasbench.runners import streams
from kerasbench.runners.batches import AUTOTUNE_BATCHES
from kerasbench.runners.inputs import UNKNOWN_STEPS
from kerasbench.runners.streams import digest, feed_of, is_stream, resized, stream_of
from kerasbench.scenario import ScenarioError
from tests import made

DEFAULTS: dict[str, Any] = {
    "x": None,
    "y": None,
    "batch_size": None,
    "epochs": 1,
    "validation_split": 0.0,
    "validation_data": None,
    "shuffle": True,
    "class_weight": None,
    "sample_weight": None,
    "steps_per_epoch": None,
}


class PyDataset:
    """As Keras has it."""

    max_queue_size, use_multiprocessing = 10, False

    def __init__(self, batches: int, workers: int = 1) -> None:
        self.num_batches, self.workers = batches, workers

    def __getitem__(self, index: int) -> Any:
        return np.full((4, 2), index, "float32"), np.zeros(4, "int64")


class Endless(PyDataset):
    def __init__(self) -> None:
        super().__init__(0)
        self.num_batches = None  # type: ignore[assignment]


class PrefetchDataset:
    _buffer_size = 3

    def __iter__(self) -> Iterator[Any]:
        return iter([(np.zeros((2, 2)), np.zeros(2))] * 20)

    def _inputs(self) -> list[Any]:
        return [ParallelMapDataset(), ShuffleDataset()]


class ParallelMapDataset:
    _num_parallel_calls = -1  # AUTOTUNE


class ShuffleDataset:
    _buffer_size = 1_000  # rows are mixed in it: it puts no batch by


class DataLoader:
    num_workers, prefetch_factor = 2, 4


def generated() -> Iterator[Any]:
    while True:
        yield np.ones((8, 3), "float32"), np.ones((8, 1), "float32")


def given(batches: int) -> Iterator[Any]:
    yield from itertools.islice(generated(), batches)


def iter_of_none() -> Iterator[Any]:
    yield from ()


ARRAY = np.zeros((10, 3))


@pytest.mark.parametrize("x", [ARRAY, [1.0, 2.0], [ARRAY, ARRAY], {"a": ARRAY}, "text", [[1, 2], [3, 4]]])
def test_arrays_and_what_holds_them_are_no_streams(x: Any) -> None:
    assert not is_stream(x)


@pytest.mark.parametrize("x", [generated(), PyDataset(3), PrefetchDataset()])
def test_what_gives_batches_by_itself_is_a_stream(x: Any) -> None:
    assert is_stream(x)


@pytest.mark.parametrize(
    ("source", "queue"),
    [
        (PyDataset(9), 0),  # one worker makes a batch when it is asked
        (PyDataset(9, workers=2), 12),
        (PrefetchDataset(), 3 + AUTOTUNE_BATCHES),
        (DataLoader(), 8),
        (generated(), 0),
    ],
)
def test_how_many_batches_a_stream_puts_by(source: Any, queue: int) -> None:
    assert stream_of(source, None).queue == queue


def test_arrays_are_fed_as_the_script_gives_them() -> None:
    feed = feed_of({**DEFAULTS, "x": ARRAY, "y": list(range(10)), "validation_split": 0.2, "shuffle": False}, "w")
    assert (feed.workload.train, feed.workload.batch, feed.workload.validation, feed.shuffle) == (8, 8, 2, False)
    assert feed.train.x.dtype == "float64" and feed.train.y.tolist() == list(range(8)) and feed.stream is None
    held = feed_of({**DEFAULTS, "x": ARRAY, "validation_data": (ARRAY[:3], None), "batch_size": 4}, "w")
    assert (held.workload.steps, held.workload.validation) == (3, 3)
    fewer = feed_of({**DEFAULTS, "x": ARRAY, "batch_size": 2, "steps_per_epoch": 4}, "w")
    assert fewer.workload.train == 8


def test_a_stream_is_fed_as_it_is_and_its_first_batches_are_looked_at() -> None:
    feed = feed_of({**DEFAULTS, "x": (source := PyDataset(30)), "class_weight": {0: 2.0}}, "w")
    assert feed.stream == {"x": source, "class_weight": {0: 2.0}}
    assert (feed.workload.steps, feed.workload.batch_size, len(feed.train)) == (30, 4, 4 * streams.BATCHES)
    assert feed.train.x[:, 0].tolist() == [number for number in range(streams.BATCHES) for _ in range(4)]
    assert feed_of({**DEFAULTS, "x": PyDataset(3)}, "w").workload.steps == 3
    assert feed_of({**DEFAULTS, "x": Endless(), "steps_per_epoch": 50}, "w").workload.steps == 50
    assert feed_of({**DEFAULTS, "x": generated()}, "w").workload.steps == UNKNOWN_STEPS


def test_batches_of_several_shapes_are_looked_at_as_far_as_they_are_alike() -> None:
    batches = [(np.zeros((4, 5)),), (np.zeros((4, 5)),), (np.zeros((4, 7)),)]
    feed = feed_of({**DEFAULTS, "x": (batch for batch in itertools.cycle(batches))}, "w")
    assert feed.train.x.shape == (8, 5)


def test_equal_batches_have_one_digest() -> None:
    batch = (ARRAY, {"a": np.array(["text", None], object)})
    assert digest([batch]) == digest([(ARRAY.copy(), {"a": batch[1]["a"].copy()})])
    others = [(ARRAY + 1, batch[1]), (ARRAY.astype("float32"), batch[1]), (ARRAY.reshape(3, 10), batch[1])]
    assert len({digest([batch]), *(digest([other]) for other in others)}) == 4


def test_only_arrays_have_another_batch() -> None:
    feed = feed_of({**DEFAULTS, "x": ARRAY}, "w")
    assert resized(feed, Size()) is feed
    larger = resized(feed, Size(batch=64))
    assert larger.workload.batch_size == 64 and len(larger.train) == larger.workload.train > 8 * 64
    with pytest.raises(ScenarioError, match="by a PyDataset, which decides the batch size"):
        resized(feed_of({**DEFAULTS, "x": PyDataset(30)}, "w"), Size(batch=64))


def test_a_stream_without_a_batch_is_refused() -> None:
    with pytest.raises(ScenarioError, match="a generator gave fit\\(\\) no batch"):
        feed_of({**DEFAULTS, "x": iter_of_none()}, "w")


@pytest.mark.parametrize("batches", [9, 30])
def test_a_generator_that_ends_says_so_in_place_of_an_epoch_without_steps(batches: int) -> None:
    stream = made.known(feed_of({**DEFAULTS, "x": given(batches)}, "w").stream)
    with pytest.raises(ScenarioError, match=f"ended after {batches} batches.*while True"):
        list(stream["x"])
