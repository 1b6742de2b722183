"""A file whose types are right and whose values cannot be is refused, whatever was done to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerasbench.errors import ResultsError
from kerasbench.results.store import Store, load
from tests import made

Edit = Callable[[Any], None]


def written(folder: Path) -> tuple[Path, Any]:
    store = Store.create(folder, "2026-01-02T03:04:05Z")
    trials = [made.trial(index, backend=backend) for backend in ("jax", "torch") for index in (1, 2, 3)]
    store.finish(made.record(*trials, rounds=3))
    return store.data, msgspec.json.decode(store.data.read_bytes())


def edited(folder: Path, edit: Edit) -> Path:
    file, content = written(folder)
    edit(content)
    file.write_bytes(msgspec.json.encode(content))
    return file


def of_first(name: str, value: Any, *path: str | int) -> Edit:
    def edit(content: Any) -> None:
        part = content["trials"][0]
        for step in path:
            part = part[step]
        part[name] = value

    return edit


def published(**different: Any) -> dict[str, Any]:
    return {"total_ns": 2, "epochs_ns": [1, 1], "history": {}, "predict_samples": 1, "predict_ns": [1]} | different


def slice_(**different: Any) -> dict[str, Any]:
    return {"count": 1, "ns": 5} | different


def parts(**different: Any) -> dict[str, Any]:
    return {"arrays": [slice_()], "ready": [slice_()], "bare": [slice_()], "peak_flops": 1e9} | different


def flops(operations: float) -> dict[str, Any]:
    return {"scenario": "dense", "workload": "default", "operations": operations}


def workload(content: Any) -> Any:
    return content["scenarios"][0]["description"]["workloads"][0]


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (of_first("slices", [], "measurement", "training"), "a list is empty"),
        (of_first("epochs", [], "measurement", "training"), "a list is empty"),
        (of_first("parts", parts(bare=[]), "measurement", "training"), "a list is empty"),
        (of_first("passes_ns", [], "measurement", "throughput"), "a list is empty"),
        (of_first("published", published(history={"loss": []}), "measurement"), "a list is empty"),
        (of_first("published", published(epochs_ns=[]), "measurement"), "a list is empty"),
        (of_first("slices", [{"count": 0, "ns": 5}], "measurement", "training"), "count is out of range"),
        (of_first("epochs", [{"count": 1, "ns": -5}], "measurement", "training"), "ns is out of range"),
        (of_first("slices", [slice_(count=0)], "measurement", "prediction", 0), "count is out of range"),
        (of_first("slices", [slice_(), slice_(ns=0)], "measurement", "throughput"), "ns is out of range"),
        (of_first("parts", parts(ready=[slice_(ns=-1)]), "measurement", "training"), "ns is out of range"),
        (of_first("parts", parts(peak_flops=0.0), "measurement", "training"), "peak_flops is out of range"),
        (of_first("parts", parts(peak_flops=1e308), "measurement", "training"), "peak_flops is out of range"),
        (of_first("calls_ns", [5, 0, 7], "measurement", "prediction", 0), "calls_ns is out of range"),
        (of_first("again_ns", [0], "measurement", "training"), "again_ns is out of range"),
        (of_first("epoch_steps", 10**18 + 1, "measurement", "training"), "epoch_steps is out of range"),
        (of_first("accuracy", 1e308, "measurement", "learning"), "accuracy is out of range"),
        (of_first("published", published(history={"loss": [1e308]}), "measurement"), "history is out of range"),
        (of_first("peak_rss_bytes", -1, "measurement"), "peak_rss_bytes is out of range"),
        (of_first("steps_per_epoch", 0, "measurement"), "steps_per_epoch is out of range"),
        (of_first("full_steps_per_epoch", -1, "measurement"), "full_steps_per_epoch is out of range"),
        (of_first("full_steps_per_epoch", 10**6, "measurement"), "more full steps than steps"),
        (of_first("wall_ns", 0, "measurement", "usage"), "its steps took no time"),
        (lambda content: content.update(flops=[flops(1e308)]), "operations is out of range"),
        (lambda content: content["machine"].update(memory_bytes=-1), "memory_bytes is out of range"),
        (lambda content: workload(content).update(steps=0), "steps is out of range"),
        (of_first("measurement", None), "either a measurement or a failure"),
        (of_first("scenario", "other"), "trials of other, which is none of its scenarios"),
        (lambda content: content.update(minimal_effect=0), "minimal_effect is out of range"),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path: Path, edit: Edit, complaint: str) -> None:
    with pytest.raises(ResultsError, match=complaint):
        load(edited(tmp_path, edit))


def test_a_trial_without_training_has_predictions(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    store.finish(made.record(made.trial(found=made.predicting())))
    assert load(store.data).trials[0].measurement == made.predicting()
    content = msgspec.json.decode(store.data.read_bytes())
    of_first("prediction", [], "measurement")(content)
    store.data.write_bytes(msgspec.json.encode(content))
    with pytest.raises(ResultsError, match="a list is empty"):
        load(store.data)
    content = msgspec.json.decode(msgspec.json.encode(made.record(made.trial(found=made.predicting()))))
    of_first("count", 0, "measurement", "prediction", 1, "slices", 0)(content)
    store.data.write_bytes(msgspec.json.encode(content))
    with pytest.raises(ResultsError, match="count is out of range"):
        load(store.data)


@pytest.mark.parametrize(
    "edit",
    [
        of_first("slices", [slice_()], "measurement", "prediction", 0),
        of_first("parts", parts(), "measurement", "training"),
        lambda content: content.update(flops=[flops(1e9)]),
    ],
)
def test_what_can_be_is_read(tmp_path: Path, edit: Edit) -> None:
    assert len(load(edited(tmp_path, edit)).trials) == 6


def test_what_was_written_is_valid(tmp_path: Path) -> None:
    assert len(load(written(tmp_path)[0]).trials) == 6


@pytest.mark.parametrize(
    ("protocol", "batch", "valid"),
    [("sweep", 64, True), ("sweep", None, True), ("steady", 64, False), (None, 64, True), (None, None, False)],
)
def test_what_a_trial_measured_is_told_by_its_protocol_and_by_its_size_where_the_file_is_older(
    tmp_path: Path, protocol: str | None, batch: int | None, valid: bool
) -> None:
    def edit(content: Any) -> None:
        of_first("epochs", [], "measurement", "training")(content)
        of_first("batch", batch, "options")(content)
        of_first("protocol", protocol)(content)

    file = edited(tmp_path, edit)
    if valid:
        assert load(file).trials[0].protocol == protocol
    else:
        with pytest.raises(ResultsError, match="a list is empty"):
            load(file)
