from pathlib import Path

import pytest

from kerasbench.processes import process
from tests.processes.columns import Clock, Columns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(process, "time", made)
    return made


@pytest.fixture
def columns(tmp_path: Path) -> Columns:
    return Columns(tmp_path)
