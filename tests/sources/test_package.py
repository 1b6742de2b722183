"""A function of a package: how its file is found without running it, and what a child says of one that gives none."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench import sources
from kerasbench.plan import catalog
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.sources.package import PackageFunction
from tests.worker.stand_in_keras import Model

TEXT = """raise_ = 1 / {divisor}
def make(): return model
def sized(width): return model
def nothing(): return 1
def fails(): 1 / 0
def leaves(): raise SystemExit(3)
from {imports} import *
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    variable = type("Variable", (), {"assign": lambda self, value: value})
    utils = SimpleNamespace(set_random_seed=lambda seed: None)
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Model=Model, Variable=variable, utils=utils))
    for name in ("planted", "planted.models"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def plant(folder: Path, divisor: int = 1, imports: str = "math") -> Path:
    (folder / "planted").mkdir()
    (folder / "planted" / "__init__.py").write_text("from pathlib import Path\nPath('was_run').touch()")
    (file := folder / "planted" / "models.py").write_text(TEXT.format(divisor=divisor, imports=imports))
    return file


def test_it_is_known_by_its_file_which_is_not_run(folder: Path) -> None:
    file = plant(folder)
    named = sources.of(Path("planted.models:make"))
    assert (named.kind, named.name, named.files) == ("function", "planted.models.make", [])
    assert named.place == str(folder / "planted.models:make")
    assert PackageFunction(Path(named.place)).hash() == named.hash()
    catalog.require_known(["planted.models:make/batch-4"])
    before = named.hash()
    file.write_text("def make(): ...")
    assert named.hash() != before and not (folder / "was_run").exists()
    assert catalog.own_files(["planted.models:make"]) == ["planted.models:make"]


def test_one_that_is_installed_is_found_by_each_interpreter_itself() -> None:
    assert PackageFunction(Path("json.decoder:scanner")).place == "json.decoder:scanner"


@pytest.mark.parametrize("name", ["planted.models:make", "json.none:make", "time:make"])
def test_a_module_that_is_not_there_is_said_with_where_it_was_looked_for(name: str, folder: Path) -> None:
    with pytest.raises(ModelError) as error:
        PackageFunction(Path(name)).hash()
    module = name.partition(":")[0]
    assert f"there is no module {module} in {folder}" in str(error.value) and sys.prefix in str(error.value)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("makes", "planted.models has no function makes; did you mean make?"),
        ("raise_", "planted.models has no function raise_"),
        ("sized", "planted.models:sized is called without arguments: missing a required argument: 'width'"),
        ("nothing", "planted.models:nothing returns no Keras model: int"),
        ("leaves", "planted.models:leaves ends its process, with 3, in place of a model"),
    ],
)
def test_what_returns_no_model_is_said_in_a_sentence(function: str, said: str, folder: Path) -> None:
    plant(folder)
    with pytest.raises(ModelError) as error:
        PackageFunction(folder / f"planted.models:{function}").resolve(ModelConfig())
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("function", "planted", "code", "said"),
    [
        ("fails", {}, Code.ERROR, "models.py, line 5: ZeroDivisionError: division by zero"),
        ("make", {"divisor": 0}, Code.ERROR, "models.py, line 1: ZeroDivisionError"),
        ("make", {"imports": "not_there"}, Code.ERROR, "models.py, line 7: ModuleNotFoundError"),
    ],
)
def test_what_it_raises_has_its_line(function: str, planted: Any, code: Code, said: str, folder: Path) -> None:
    plant(folder, **planted)
    with pytest.raises(TrialFailure) as error:
        PackageFunction(folder / f"planted.models:{function}").resolve(ModelConfig())
    assert (error.value.failure.code, said in error.value.failure.cause) == (code, True), error.value.failure
