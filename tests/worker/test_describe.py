"""Questions about a scenario: deferred modules, rows on disk, and that a changed file is not counted."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kerasbench.datasets import DataError
from kerasbench.protocol.requests import CountRequest, FetchRequest
from kerasbench.scenario import ScenarioError
from kerasbench.worker.describe import DeferredModule, count, fetch


@pytest.mark.parametrize(
    "line",
    [
        "import costly; costly.value",
        "from costly import value",
        "from costly.part import inner as value",
        "import costly.part",
    ],
)
def test_a_deferred_module_is_loaded_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "costly").mkdir()
    (tmp_path / "costly" / "__init__.py").write_text("value = 7\nimport costly.part")
    (tmp_path / "costly" / "part.py").write_text("inner = 8")
    monkeypatch.syspath_prepend(str(tmp_path))
    deferred: ModuleType = DeferredModule("costly")
    monkeypatch.setattr(sys, "modules", {**sys.modules, "costly": deferred})
    exec("import costly", {})
    assert sys.modules["costly"] is deferred
    exec(line, {})
    assert sys.modules["costly"] is not deferred
    assert deferred.value == 7  # also for who imported it before
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        _ = DeferredModule("no_such_package").layers


SCENARIO = """
import numpy as np
from kerasbench import Workload, Scenario
from kerasbench.datasets import Dataset

def load():
    return np.zeros(({rows}, 4), np.float32), np.zeros({rows}, np.int32)

data = Dataset("Four numbers", (4,), None, load)
scenario = Scenario(build=print, data=data, workloads=(Workload(train=60, validation=20, test=20),))
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


def test_a_file_that_has_changed_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        count(CountRequest(asked(tmp_path, rows=100).file, "the hash that it had", "default"))
