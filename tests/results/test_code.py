import shutil
from pathlib import Path

import pytest

from kerasbench.results import record


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """The package as another machine or a wheel would have it: in another folder, compiled, its files newer."""
    package = tmp_path / "site-packages" / "kerasbench"
    shutil.copytree(
        record.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile
    )
    compiled = package / "worker" / "__pycache__"
    compiled.mkdir()
    (compiled / "turns.cpython-311.pyc").write_bytes(b"compiled")
    return package


def test_the_code_that_measures_is_known_by_its_hash_wherever_it_is_installed(elsewhere: Path) -> None:
    assert len(record.measuring_code()) == record.CODE_LENGTH
    assert record.measuring_code(elsewhere) == record.measuring_code()


@pytest.mark.parametrize("file", ["worker/clock.py", "processes/block.py", "runs/schedule.py", "scenario.py"])
def test_other_code_that_measures_has_another_hash(elsewhere: Path, file: str) -> None:
    with (elsewhere / file).open("a") as text:
        text.write("# changed\n")
    assert record.measuring_code(elsewhere) != record.measuring_code()


def test_a_file_that_moved_is_other_code(elsewhere: Path) -> None:
    (elsewhere / "worker" / "pipe.py").rename(elsewhere / "worker" / "turning.py")
    assert record.measuring_code(elsewhere) != record.measuring_code()


def test_what_draws_a_page_measures_nothing(elsewhere: Path) -> None:
    with (elsewhere / "report" / "page.py").open("a") as text:
        text.write("# changed\n")
    assert record.measuring_code(elsewhere) == record.measuring_code()
