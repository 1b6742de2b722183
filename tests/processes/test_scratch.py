import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kerasbench import files

HOLD = """
import sys
import tempfile
from kerasbench.files import scratch_folder
tempfile.tempdir = sys.argv[1]
with scratch_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_scratch_folder_goes_with_its_child(tmp_path: Path) -> None:
    with files.scratch_folder() as folder:
        Path(folder, "cache").write_text("compiled")
        files.remove_abandoned()
        assert Path(folder, "cache").exists()  # its parent lives
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_parent_has_left_is_swept_up_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kerasbench-of-mine").mkdir()
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        folder = Path(parent.stdout.readline().strip())
        (folder / "cache").mkdir()
        files.remove_abandoned()
        assert folder.exists()
        parent.kill()
    files.remove_abandoned()
    assert [one.name for one in tmp_path.iterdir()] == ["kerasbench-of-mine"]


def test_what_lies_behind_a_link_is_not_swept_up(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / f"{files.SCRATCH_PREFIX}x").symlink_to(tmp_path / "mine")
    files.remove_abandoned()
    assert (tmp_path / "mine").exists()
