import itertools
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench import files, sources
from kerasbench.errors import UsageError
from kerasbench.plan import live
from kerasbench.protocol.requests import ModelConfig
from kerasbench.settings import Settings
from kerasbench.sources import rows as source

clock = itertools.count(2, 2)  # seconds


def model(name: str = "my model", fails: str = "") -> Any:
    def save(place: str) -> None:
        if fails:
            raise ValueError(fails)
        time = next(clock)
        with zipfile.ZipFile(place, "w") as saved:
            saved.writestr(zipfile.ZipInfo("metadata.json", (2026, 1, 1, 0, 0, time)), json.dumps({"date_saved": time}))
            saved.writestr(zipfile.ZipInfo("config.json", (2026, 1, 1, 0, 0, time)), json.dumps({"class_name": name}))

    return SimpleNamespace(save=save, predict=lambda x: x, name=name)


@pytest.mark.parametrize(
    ("name", "file_name"),
    [("my model", "my_model.keras"), ("", "model.keras"), ("__x", "x.keras"), ("a" * 99, "a" * 64 + ".keras")],
)
def test_a_model_is_saved_for_as_long_as_it_is_measured(name: str, file_name: str) -> None:
    with live.saved_model(model(name)) as (file, rows, samples):
        with zipfile.ZipFile(file) as content:
            assert json.loads(content.read("config.json")) == {"class_name": name}
        assert (Path(file).name, rows, samples) == (file_name, "", 0)
        assert not live.is_gone([file, "mnist_dense"])
    assert not Path(file).parent.exists()
    assert live.is_gone([file])


def test_a_model_that_is_saved_again_is_the_same_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def hashes(saved: Any, data: Any) -> str:
        with live.saved_model(saved, data) as (name, rows, _):
            file = Path(name)
            assert {beside.name for beside in file.parent.iterdir()} == {files.SCRATCH_LOCK, "net.keras", "rows.npz"}
            return sources.of(file).hash(ModelConfig(rows=rows))

    rows, net = (np.ones((5, 2)), np.ones(5)), model("net")
    first = hashes(net, rows)
    monkeypatch.setattr("time.time", lambda: 1_000_000_000.0)  # of the archive of rows
    assert hashes(net, rows) == first
    other = model("net")
    other.save = model("another").save
    assert len({first, hashes(other, rows), hashes(net, (np.ones((5, 2)), np.zeros(5)))}) == 3


@pytest.mark.parametrize(
    ("fails", "built", "said"),
    [
        ("no get_config", True, "the model cannot be saved: ValueError: no get_config"),
        ("too late", False, "the model is not built: start it"),
    ],
)
def test_a_model_that_cannot_be_saved_or_is_not_built_yet_is_refused(fails: str, built: bool, said: str) -> None:
    broken = model(fails=fails)
    broken.built = built
    with pytest.raises(UsageError, match=said), live.saved_model(broken):
        pass


def test_rows_come_back_in_their_structure(tmp_path: Path) -> None:
    x = {"tokens": np.arange(6).reshape(3, 2), "rest": [np.ones((3, 1)), np.array([True, False, True])]}
    count = live.write_rows(tmp_path / "rows.npz", (x, np.zeros(3, np.uint8), np.ones(3)))
    back, y, weights = source.read_rows(tmp_path / "rows.npz", 3)
    assert count == 3
    assert (back["tokens"].dtype, back["tokens"].tolist()) == (np.int32, x["tokens"].tolist())  # type: ignore[attr-defined]
    assert [array.dtype for array in (*back["rest"], y, weights)] == [np.float32, np.uint8, np.uint8, np.float32]
    _, again, _ = source.read_rows(tmp_path / "rows.npz", 5)
    assert len(again) == 5  # too few rows are taken again


def test_of_rows_the_first_are_read_alone_and_may_be_changed(tmp_path: Path) -> None:
    x: Any = np.arange(1_000_000, dtype=np.float32).reshape(1_000, 1_000)
    for given in (x, np.asfortranarray(x)):
        live.write_rows(tmp_path / "rows.npz", (given, np.arange(1_000)))
        first, y = source.read_rows(tmp_path / "rows.npz", 3)
        assert (first.base is None or first.base.nbytes < 20_000) and y.tolist() == [0, 1, 2]
        assert first.tolist() == x[:3].tolist()
        first += 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([np.ones(2), np.ones(2)], r"data takes samples, \(x, y\).* not builtins.list; an input pipeline"),
        (([[1.0, 2.0]], np.ones(1)), r"x.0.0 must be an array of numbers, .* numbers with np.asarray\(x\)"),
        ((np.ones(2), np.ones(3)), r"same number of samples; they have \[2, 3\]"),
        ((np.ones(0), np.ones(0)), "same number of samples"),
        ((np.array(["a"]), np.ones(1)), "x must be an array of numbers, not ndarray of <U1"),
        ((np.array([2**31]), np.ones(1)), r"x has integers beyond 32 bits \(2147483648 to 2147483648\)"),
        (({"a": None}, np.ones(1)), "x.a must be an array of numbers, not NoneType of object"),
    ],
)
def test_what_are_no_rows_is_said(tmp_path: Path, data: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        live.write_rows(tmp_path / "rows.npz", data)


def test_nothing_in_a_file_of_rows_is_code(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", structure=np.array(json.dumps(["a"])), a=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        source.read_rows(tmp_path / "rows.npz", 3)


def test_a_model_is_asked_for_by_its_file_and_names_as_they_are() -> None:
    with live.with_live_model(Settings(), model("net"), "synthetic") as words:
        assert [Path(file).name for file in words.scenarios] == ["net.keras"]
        assert (words.rows, words.samples) == ("", 0)
    for given, names in (("a", ["a"]), (["a", "b"], ["a", "b"]), ((), []), (Path("mine.keras"), ["mine.keras"])):
        with live.with_live_model(Settings(), given, "real") as words:
            assert (words.scenarios, words.data) == (names, "real")
    with pytest.raises(UsageError, match="is for a model object"), live.with_live_model(Settings(), "a", (1, 2)):
        pass
