"""Feeds as columns: what their lines make as printed, and what a child measures with them."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners.feeders import FEEDERS
from tests.real import trials

pytestmark = pytest.mark.real

SCRIPT = """
import collections, os
os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from kerasbench.runners.streams import epoch_of
from kerasbench.runners.feeders import FEEDERS, to_paste
from kerasbench.worker.feeds import row_hashes

def main(name, workers, lines):
    x, y, batch_size = np.random.rand(80, 4).astype("float32"), np.arange(80) % 3, 16
    given = collections.Counter(row_hashes((x, y)))
    made = FEEDERS[name].make((x, y), batch_size, workers, None)
    scope = {"x": x, "y": y, "batch_size": batch_size, "keras": keras, "np": np}
    exec(lines, scope)
    for batches in (made, scope["batches"]):
        epoch = list(epoch_of(batches))
        rows = collections.Counter(row for batch in epoch for row in row_hashes(batch))
        assert len(epoch) == 5 and rows == given
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(scope["batches"], epochs=2, verbose=0, shuffle=False).history
    assert len(history["loss"]) == 2

if __name__ == "__main__":
    for name, workers in CASES:
        main(name, workers, "\\n".join(to_paste(name, workers)))
"""

STORED = """
import collections, os, tempfile
os.environ["KERAS_BACKEND"] = "torch"
import sys
from dataclasses import replace
from pathlib import Path
import keras
import numpy as np
from kerasbench import datasets, storage
from kerasbench.runners.feed import draw, store_rows
from kerasbench.runners.feeders import FEEDERS, to_paste
from kerasbench.runners.streams import epoch_of
from kerasbench.worker.feeds import row_hashes

KEEPING = storage.png, storage.memory_map, storage.texts

def main(write):
    drawn = datasets.sequences(20, 50, 5) if write is storage.texts else datasets.images((8, 8, 3), 5, lambda x: x)
    rows, store = store_rows(replace(drawn, store=write), draw(replace(drawn, store=write), 24, 0, "synthetic"))
    original = draw(drawn, 24, 0, "synthetic")
    assert (rows.x == original.x).all() == (write in KEEPING)
    given = collections.Counter(row_hashes((rows.x, rows.y)))
    for name in NAMES:
        batches = FEEDERS[name].make((rows.items, rows.y), 8, 0, store)
        scope = {"files": rows.items, "y": rows.y, "batch_size": 8, "keras": keras, "np": np}
        scope["read"] = store.read_tensor if name.startswith("tf") else store.read
        exec("\\n".join(to_paste(name, on_disk=True)), scope)
        for stream in (batches, scope["batches"]):
            read = collections.Counter(row for batch in epoch_of(stream) for row in row_hashes(batch))
            assert read == given, (write, name)

if __name__ == "__main__":
    for write in (storage.png, storage.jpeg, storage.memory_map, storage.texts, storage.augmented(storage.png)):
        main(write)
"""


THERE = [name for name, feeder in FEEDERS.items() if find_spec(feeder.package) is not None]
ONE_PROCESS = [*((name, 0) for name in THERE), ("dataloader", 2), ("pydataset", 2)]


@pytest.mark.parametrize(
    "cases",
    [ONE_PROCESS, pytest.param([("grain", 2)], marks=pytest.mark.weekly)],  # each of its processes imports Keras
)
def test_the_lines_to_paste_make_the_batches_that_are_measured(tmp_path: Path, cases: list[tuple[str, int]]) -> None:
    if not {name for name, _ in cases} <= {*THERE}:
        pytest.skip("grain is not installed")
    script = tmp_path / "your_script.py"
    script.write_text(SCRIPT.replace("CASES", repr(cases)))
    subprocess.run([sys.executable, script], check=True, timeout=300)


def test_each_feed_reads_from_disk_what_was_written_there(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    script = tmp_path / "storage.py"
    script.write_text(STORED.replace("NAMES", repr(THERE)))
    subprocess.run([sys.executable, script], check=True, timeout=300)


@pytest.mark.parametrize(
    ("backend", "options", "kind"),
    [
        ("jax", Options(feed="dataloader"), "a DataLoader"),
        pytest.param("torch", Options(feed="tf.data"), "tf.data", marks=pytest.mark.weekly),
        pytest.param("tensorflow", Options(feed="pydataset", workers=2), "a PyDataset", marks=pytest.mark.weekly),
    ],
)
def test_a_child_trains_on_the_feed_that_was_asked_for(faults: Path, backend: str, options: Options, kind: str) -> None:
    measured = trials.measured(trials.run(faults / "fine.py", backend, options, plan=trials.SHORTEST))
    package = FEEDERS[str(options["feed"])].package
    assert measured.resolved.feed == kind and measured.resolved.versions[package]
    assert measured.resolved.workers == options.get("workers", 0)


def test_a_feed_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grain", None)
    with pytest.raises(TrialFailure) as raised:
        FEEDERS["grain"].load()
    failure = raised.value.failure
    assert failure.code is Code.UNSUPPORTED and "pip install grain" in failure.remedy
