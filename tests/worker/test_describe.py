"""Questions about a scenario: deferred modules, rows on disk, and that a changed file is not counted."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kerasbench.datasets import DataError
from kerasbench.protocol.requests import CountRequest, FetchRequest
from kerasbench.scenario import ScenarioError
from kerasbench.worker.describe import DeferredModule, count, fetch


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
    with pytest.raises(DataError, match="has 99 samples, 100 are needed"):
        fetch(asked(tmp_path, rows=99))
    with pytest.raises(ScenarioError, match="large"):
        fetch(asked(tmp_path, rows=100, workload="large"))


def test_a_file_that_has_changed_since_it_was_planned_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        count(CountRequest(asked(tmp_path, rows=100).file, "the hash that it had", "default"))
