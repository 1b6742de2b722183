import sys
from pathlib import Path

import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import catalog


def test_the_file_is_a_commented_scenario_of_about_thirty_lines(tmp_path: Path) -> None:
    file = tmp_path / "my_model.py"
    catalog.begin_file(file)
    lines = file.read_text("utf-8").splitlines()
    assert 25 <= len(lines) <= 35
    assert sum("# " in line for line in lines) >= 3
    assert max(map(len, lines)) <= 120
    (workload,) = catalog.describe(file, sys.executable).description.workloads
    assert (workload.name, workload.batch, workload.large) == ("default", 64, False)


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "my_model.py"
    file.write_text("mine")
    with pytest.raises(UsageError, match="already exists, and was left as it is"):
        catalog.begin_file(file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("my_model", r"a scenario is a Python file: .*my_model\.py, not"),
        ("a|b.py", "must be 1 to 64 letters"),
        ("no/such/folder.py", "cannot be written: No such file or directory"),
    ],
)
def test_what_can_be_no_scenario_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        catalog.begin_file(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
