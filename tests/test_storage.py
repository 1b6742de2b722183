"""Samples on disk: each store reads what it wrote, and rows keep what each is read by."""

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerasbench import datasets, storage
from kerasbench.datasets import DataError
from kerasbench.runners.feed import draw, store_rows
from kerasbench.runners.feeders import Samples

Write = Callable[[Path, Any], storage.Store]
PICTURES: Any = np.random.default_rng(0).integers(0, 256, (5, 8, 6, 3)).astype("uint8")
TEXTS: Any = np.random.default_rng(0).integers(0, 50, (5, 7)).astype("int32")


@pytest.mark.parametrize(
    ("write", "x"),
    [(storage.png, PICTURES), (storage.memory_map, PICTURES), (storage.memory_map, TEXTS), (storage.texts, TEXTS)],
)
def test_a_store_reads_each_sample_as_it_was(
    write: Callable[[Path, Any], storage.Store], x: Any, tmp_path: Path
) -> None:
    if write is storage.png:
        pytest.importorskip("PIL")
    store = write(tmp_path, x)
    read = np.stack([store.read(item) for item in store.items])
    assert read.dtype == x.dtype and (read == x).all()
    assert read.flags.writeable  # torch warns of a tensor that is not


def test_an_augmented_picture_is_mirrored_and_moved_the_same_way_each_time(tmp_path: Path) -> None:
    store = storage.augmented(storage.memory_map)(tmp_path, wide := PICTURES.repeat(2, axis=2))
    pickle.dumps(store)  # as workers that are not forked get it
    for number, item in enumerate(store.items):
        mirrored = wide[number][:, ::-1]
        moved = np.concatenate([mirrored[:, -1:], mirrored[:, :-1]], axis=1)  # by 1 of 12 columns
        assert (store.read(item) == moved).all() and (store.read(item) == moved).all()


def test_a_jpeg_is_read_as_it_was_written_and_not_as_it_was_drawn(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    smooth = np.broadcast_to(np.arange(8, dtype="uint8")[None, :, None, None] * 20, (2, 8, 8, 3))
    store = storage.jpeg(tmp_path, smooth)
    read = np.stack([store.read(item) for item in store.items])
    assert 0 < abs(read.astype(int) - smooth).max() < 30
    assert all(str(item).endswith(".jpeg") and Path(str(item)).exists() for item in store.items)


def test_pictures_without_pillow_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match="pip install pillow"):
        storage.png(tmp_path, PICTURES)


def test_rows_go_with_what_they_are_read_by() -> None:
    data = replace(datasets.sequences(7, 50, 5), store=storage.texts)
    drawn = draw(data, 6, 0, "synthetic")
    rows, store = store_rows(data, drawn)
    assert store is not None and (rows.x == drawn.x).all()
    for some in (rows[2:4], rows.repeated(9)[6:]):
        assert (np.stack([store.read(item) for item in some.items]) == some.x).all()
    assert store_rows(replace(data, store=None), drawn) == (drawn, None)
    samples = Samples((rows.items, rows.y), store)
    assert len(samples) == 6
    x, y = samples[3]
    assert (x == rows.x[3]).all() and y == rows.y[3]
