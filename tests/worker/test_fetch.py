from pathlib import Path

import pytest

from kerasbench.datasets import DataError
from kerasbench.protocol.requests import FetchRequest
from kerasbench.scenario import ScenarioError
from kerasbench.worker.describe import fetch

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


def test_what_a_workload_trains_validates_and_tests_on_is_there(tmp_path: Path) -> None:
    assert fetch(asked(tmp_path, rows=100)) == "Four numbers"


def test_too_few_rows_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="100 rows of shape"):
        fetch(asked(tmp_path, rows=99))


def test_a_workload_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="large"):
        fetch(asked(tmp_path, rows=100, workload="large"))
