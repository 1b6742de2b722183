"""Questions about a scenario: deferred modules, rows on disk, and operations as torch counts them."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kerasbench.datasets import DataError
from kerasbench.processes import questions
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import CountRequest, FetchRequest
from kerasbench.scenario import ScenarioError, content_hash
from kerasbench.worker.describe import DeferredModule, fetch


@pytest.fixture
def package(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path_factory.mktemp("site")
    (folder / "costly_one").mkdir()
    (folder / "costly_one" / "__init__.py").write_text("value = 7\nimport costly_one.part")
    (folder / "costly_one" / "part.py").write_text("inner = 8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    sys.modules["costly_one"] = DeferredModule("costly_one")
    return "costly_one"


def loaded(package: str) -> bool:
    return not isinstance(sys.modules[package], DeferredModule)


def test_importing_it_costs_nothing_and_using_it_loads_it(package: str) -> None:
    space: dict[str, ModuleType] = {}
    exec("import costly_one", space)
    assert not loaded(package)
    assert space["costly_one"].value == 7
    assert loaded(package)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        _ = DeferredModule("no_such_package").layers


@pytest.mark.parametrize(
    "line", ["from costly_one import value", "from costly_one.part import inner as value", "import costly_one.part"]
)
def test_other_ways_to_import_load_it(package: str, line: str) -> None:
    exec(line, {})
    assert loaded(package)


# Real rows.


SCENARIO = """
import numpy as np

from kerasbench import Workload, Scenario
from kerasbench.datasets import Dataset


def load():
    rows = np.zeros(({rows}, 4), np.float32)
    return rows, np.zeros(len(rows), np.int32)


def draw(samples, rng):
    raise AssertionError("the real rows were asked for")


scenario = Scenario(
    build=lambda workload: None,
    data=Dataset("Four numbers", (4,), draw, load),
    workloads=(Workload(train=60, validation=20, test=20),),
)
"""


def asked(folder: Path, rows: int, workload: str = "default") -> FetchRequest:
    file = folder / "mine.py"
    file.write_text(SCENARIO.format(rows=rows))
    return FetchRequest(str(file), workload)


def test_a_workload_s_real_rows_are_fetched_or_what_is_missing_is_said(tmp_path: Path) -> None:
    assert fetch(asked(tmp_path, rows=100)) == "Four numbers"
    with pytest.raises(DataError, match="has 99 rows, 100 are needed"):
        fetch(asked(tmp_path, rows=99))
    with pytest.raises(ScenarioError, match="large"):
        fetch(asked(tmp_path, rows=100, workload="large"))


# Operations, against the products of a model that can be counted by hand.


INPUTS, HIDDEN, CLASSES = 20, 30, 10
COUNTED = f"""
import keras

from kerasbench import Workload, Scenario


def build(workload):
    model = keras.Sequential(
        [keras.Input(({INPUTS},)), keras.layers.Dense({HIDDEN}, "relu"), keras.layers.Dense({CLASSES})]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def data(samples, rng):
    return rng.random((samples, {INPUTS}), "float32"), rng.integers(0, {CLASSES}, samples, "int32")


scenario = Scenario(build=build, data=data, workloads=(Workload(train=64, batch=32),))
"""


def count(folder: Path, file_hash: str = "") -> float | Failure:
    file = folder / "mine.py"
    file.write_text(COUNTED)
    return questions.count(CountRequest(str(file), file_hash or content_hash(file), "default"), sys.executable)


@pytest.mark.real
@pytest.mark.traced
def test_a_step_s_operations_are_those_of_its_products(tmp_path: Path) -> None:
    """There: x @ W in each layer. Back: each W's gradient, and each x's but the first's, for which nobody asks."""
    there = 2 * (INPUTS * HIDDEN + HIDDEN * CLASSES)
    back = there + 2 * HIDDEN * CLASSES
    found = count(tmp_path)
    assert not isinstance(found, Failure), found
    assert found == pytest.approx(there + back)


@pytest.mark.real
@pytest.mark.traced
def test_a_file_that_has_changed_since_it_was_planned_is_not_counted(tmp_path: Path) -> None:
    found = count(tmp_path, "the hash that it had")
    assert isinstance(found, Failure)
    assert found.code is Code.INVALID and "changed" in found.cause
