import json
import zipfile
from pathlib import Path

import pytest

from kerasbench import sources
from kerasbench.errors import UnusableScenario
from kerasbench.plan import catalog
from kerasbench.sources import python, saved_model

SCRIPT = """import keras
from pathlib import Path
Path("was_run").touch()
scaler.fit(table)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit([[0]], [[0]])
"""
HELPER = "from kerasbench import Scenario, Workload\n\n\ndef made(**fields):\n    return Scenario(**fields)\n"


def refusal(file: Path, text: str | bytes) -> str:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UnusableScenario) as error:
        catalog.require_known([str(file)])
    return str(error.value)


def test_a_training_script_is_recognised_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "model.py").write_text("from tensorflow import keras")
    (tmp_path / "main.py").write_text("import model")
    for name in "train.py", "main.py":
        assert sources.of(tmp_path / name).kind == "script"
        catalog.require_known([name])
    assert not (tmp_path / "was_run").exists()


def test_a_notebook_has_cells_of_python(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    cells = [{"cell_type": "markdown", "source": "x"}, {"cell_type": "code", "source": ["import keras"]}]
    file.write_text(json.dumps({"cells": cells}))
    assert sources.of(file).kind == "script"
    catalog.require_known([str(file)])
    assert "not a Jupyter notebook" in refusal(file, "{}")
    assert "not a Jupyter notebook" in refusal(file, b"\x00")
    assert "this notebook has no code in Python" in refusal(file, json.dumps({"cells": cells[:1]}))
    julia = {"kernelspec": {"language": "julia"}}
    assert "this notebook has no code in Python" in refusal(file, json.dumps({"cells": cells, "metadata": julia}))


@pytest.mark.parametrize(
    "text",
    [
        "print('hello')",
        "scenario = 'A'",
        "class Scenario: ...",
        "import kerasbench\nkerasbench.run('mnist_dense')",
        "import numpy, helper",
        "import itself",
    ],
)
def test_what_only_looks_like_one_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # in which this package may be
    (tmp_path / "helper.py").write_text("import itself\nclasses = 3")
    (tmp_path / "itself.py").write_text("import itself, helper")
    assert "nothing in it makes a Scenario" in refusal(tmp_path / "mine.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "from kerasbench import Scenario as S\nmine = S(build=build)",
        "import kerasbench as kb\nmine = kb.Scenario(build=build)",
        "from helper import made\nbench = made(build=1)",
        "import package.helper\nbench = package.helper.made(build=1)",
        "from package import helper\nbench = helper.made(build=1)",
        "from elsewhere import scenario",
        "from elsewhere import make\nif True:\n    scenario, other = make(), 1",
        "try:\n    from farther import made\nexcept ImportError:\n    pass\nbench = made()",
    ],
)
def test_one_that_is_made_elsewhere_is_accepted(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "far").mkdir()
    for place in ("helper.py", "package/helper.py", "far/base.py"):
        (tmp_path / place).write_text(HELPER)
    (tmp_path / "far" / "farther.py").write_text("from base import made")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "far"))
    file = tmp_path / "mine.py"
    file.write_text(text)
    sources.of(file).require_usable()


def test_every_built_in_scenario_is_one() -> None:
    for file in catalog.builtin_files():
        python.require_scenario(file)


def test_an_error_in_its_syntax_has_its_line(tmp_path: Path) -> None:
    assert "mine.py, line 2: SyntaxError: '(' was never closed" in refusal(
        tmp_path / "mine.py", "import keras\nx = (\n"
    )
    assert "mine.py" in refusal(tmp_path / "mine.py", b"x = 1\0")


def archive(file: Path, metadata: object) -> bytes:
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("metadata.json", json.dumps(metadata))
    return file.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.keras", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        ("m.h5", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a pointer of Git LFS"),
        ("m.keras", b"\x89HDF\r\n\x1a\n rest", "rename it to m.h5"),
        ("m.h5", b"PK\x03\x04 rest", "rename it to m.keras"),
    ],
)
def test_what_is_no_model_by_its_first_bytes_is_named(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    assert said in refusal(tmp_path / name, content)


def test_a_file_of_keras_2_is_refused_by_its_metadata_before_any_process_starts(tmp_path: Path) -> None:
    file = tmp_path / "old.keras"
    said = refusal(file, archive(file, {"keras_version": "2.15.0"}))
    assert "saved by Keras 2.15.0" in said and "model.save('old.h5')" in said


@pytest.mark.parametrize(
    "metadata", [{"keras_version": "3.15.1"}, {"keras_version": 2}, [], {}, {"a": "b" * (1 << 17)}]
)
def test_what_says_no_old_version_is_left_to_the_child(metadata: object, tmp_path: Path) -> None:
    file = tmp_path / "new.keras"
    archive(file, metadata)
    saved_model.require_model(file)


def test_a_huge_list_of_members_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "old.keras"
    archive(file, {"keras_version": "2.15.0"})
    monkeypatch.setattr(saved_model, "MAX_DIRECTORY_BYTES", 8)
    saved_model.require_model(file)


def test_modules_beside_a_script_travel_with_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    texts = {
        "train.py": "import json, keras, parts.layers",
        "parts/__init__.py": "",
        "parts/layers.py": "import helper",
        "helper.py": "import train",
        "other.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    names = ["train.py", "helper.py", "parts/__init__.py", "parts/layers.py"]
    assert sources.of(tmp_path / "train.py").files == [tmp_path / name for name in names]
