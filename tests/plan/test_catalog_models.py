"""Models that are chosen by their file or their name, and described without Keras."""

import hashlib
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench.errors import UnusableScenario
from kerasbench.plan import catalog
from kerasbench.protocol.messages import Description
from kerasbench.protocol.requests import Input, ModelConfig

pytestmark = pytest.mark.processes


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    file = tmp_path / "net.keras"
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [None, None], "dtype": "float32"}}
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {"layers": [inputs]}}))
    return file


def test_a_saved_model_is_described_without_keras(saved: Path) -> None:
    given = ModelConfig([Input("a", [3])], 4)
    (found,) = catalog.select([str(saved)], sys.executable, model_config=given)
    assert (found.label, found.workload.batch, found.workload.predicts_only) == ("net/a-3-batch-4", 4, True)
    assert (found.entry.model_config, found.entry.is_saved, found.entry.place) == (given, True, str(saved))
    assert found.entry.file_hash == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert catalog.select([f"{saved}/a-3-batch-4"], sys.executable, model_config=given) == [found]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my model.keras", "my_model"),
        ("ep=05.keras", "ep_05"),
        ("=.keras", "model"),
        ("keras.applications.A.keras", "keras.applications.A"),
    ],
)
def test_a_model_s_file_may_have_any_name(saved: Path, file: str, name: str) -> None:
    saved = saved.rename(saved.with_name(file))
    entry = catalog.describe(saved, sys.executable, model_config=ModelConfig([Input("", [3])]))
    assert entry.name == name
    assert entry.file_hash == hashlib.sha256(saved.read_bytes()).hexdigest()


def test_a_model_s_own_layers_count_as_its_source(saved: Path, tmp_path: Path) -> None:
    custom = tmp_path / "layers.py"
    custom.write_text("one = 1")
    given = ModelConfig([Input("", [3])], custom=str(custom))
    first = catalog.describe(saved, sys.executable, model_config=given)
    custom.write_text("one = 2")
    assert first.file_hash != catalog.describe(saved, sys.executable, model_config=given).file_hash
    assert first.model_config.custom == str(custom)


def test_a_link_to_a_model_is_a_model_of_the_link_s_name(saved: Path, tmp_path: Path) -> None:
    blob = saved.rename(tmp_path / "4f2a")
    link, custom = tmp_path / "latest.keras", tmp_path / "layers.py"
    link.symlink_to(blob)
    custom.symlink_to(blob)
    entry = catalog.describe(link, sys.executable, model_config=ModelConfig([Input("", [3])], custom=str(custom)))
    assert (entry.name, entry.place, entry.model_config.custom) == ("latest", str(link), str(custom))
    assert (
        entry.file_hash != catalog.describe(link, sys.executable, model_config=ModelConfig([Input("", [3])])).file_hash
    )


def test_a_model_that_cannot_be_measured_is_one_sentence(saved: Path) -> None:
    with pytest.raises(
        UnusableScenario, match=r"net.keras cannot be used: its input is open: a \(\?\): say the open sizes"
    ):
        catalog.select([str(saved)], sys.executable)


def test_a_hostile_file_hurts_nobody_who_describes_it(saved: Path) -> None:
    with zipfile.ZipFile(saved, "a") as content:
        content.writestr("../../evil.txt", b"x")
    with pytest.raises(UnusableScenario, match="which would be written outside: refused"):
        catalog.select([str(saved)], sys.executable)


def test_a_name_of_keras_applications_is_a_scenario() -> None:
    def ask(files: Sequence[str], python: str, backend: str | None) -> list[Description]:
        assert files == ["keras.applications.ResNet50"]
        return [Description("ResNet50", "", "", "", None, True, [])]

    entry = catalog.describe(Path("keras.applications.ResNet50"), "", ask=ask)
    assert (entry.name, entry.place, entry.is_saved) == ("ResNet50", "keras.applications.ResNet50", False)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("net.onnx", "this is an ONNX model: save the Keras model itself"),
        ("net.pt", "this is a torch file"),
        ("hf://user/net", "nothing is downloaded: get the file yourself"),
    ],
)
def test_another_form_of_a_model_is_said_to_be_one(pattern: str, said: str) -> None:
    with pytest.raises(UnusableScenario, match=said):
        catalog.require_known([pattern])


@pytest.mark.parametrize(
    ("holds", "said"), [("saved_model.pb", "this is a SavedModel, which"), ("config.json", "this is a folder")]
)
def test_a_folder_is_no_model(tmp_path: Path, holds: str, said: str) -> None:
    (tmp_path / holds).touch()
    with pytest.raises(UnusableScenario, match=said):
        catalog.require_known([str(tmp_path)])
