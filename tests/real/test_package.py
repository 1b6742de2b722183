"""A function of a package is measured on real backends, compiled or not, with the size that its user gives."""

import sys
from pathlib import Path

import pytest

from kerasbench.errors import UnusableScenario
from kerasbench.plan import catalog
from kerasbench.protocol.requests import Input, ModelConfig
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.weekly]  # its errors and its rows are tested without a backend
TEXT = """import keras


def made(*inputs):
    return keras.Sequential([*inputs, keras.layers.Dense(3), keras.layers.Dense(1)])


def compiled():
    model = made(keras.Input((None, 4)))
    model.compile("adam", "mse")
    return model


def plain():
    return made(keras.Input((4,)))


def unbuilt():
    return made()


def fails():
    return keras.layers.Dense(-1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "models.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_a_function_returns_is_measured(folder: Path) -> None:
    given = ModelConfig([Input("", [7])], 8)
    (selected,) = catalog.select(["planted.models:compiled"], sys.executable, "jax", model_config=given)
    assert (selected.label, selected.workload.predicts_only) == ("planted.models.compiled/7-batch-8", False)
    backends = ("torch", "jax")
    measured = {name: trials.measured(trials.run(selected.entry.file, name, model_config=given)) for name in backends}
    assert trials.disagreements(measured) == {}
    assert {trial.batch.x for trial in measured.values()} == {"float32[8, 7, 4]"}


def test_one_that_is_not_compiled_predicts(folder: Path) -> None:
    (selected,) = catalog.select(["planted.models:plain"], sys.executable, "jax")
    assert selected.workload.predicts_only and "not compiled, so it is not trained" in selected.entry.description.text


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("unbuilt", "the shape of its input is missing"),
        ("fails", "models.py, line 23: ValueError"),
        ("none", "planted.models has no function none"),
    ],
)
def test_what_cannot_be_measured_is_said(function: str, said: str, folder: Path) -> None:
    with pytest.raises(UnusableScenario, match=said):
        catalog.select([f"planted.models:{function}"], sys.executable, "jax")
