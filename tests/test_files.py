import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench import files
from kerasbench.errors import ResultsError
from kerasbench.text import MADE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "x.json"
    file.write_bytes(b"old and longer")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("fails", ["os.fsync", "pathlib.Path.replace"])
def test_a_disk_that_refuses_leaves_what_was_there(file: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    monkeypatch.setattr(fails, Mock(side_effect=OSError(28, "No space left on device")))
    refused = r"x\.json: cannot be written: No space left on device; its old content is kept"
    with pytest.raises(ResultsError, match=refused):
        files.replace(file, b"new")
    assert file.read_bytes() == b"old and longer"
    assert list(file.parent.iterdir()) == [file]
    with pytest.raises(ResultsError, match=r"gone/x\.json: cannot be written: No"):
        files.replace(file.parent / "gone" / "x.json", b"new")
    with pytest.raises(ResultsError, match="it is a folder"):
        files.replace(file.parent, b"")


def test_what_is_half_written_is_never_the_file_itself(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that comes in the middle of writing finds the old whole."""
    seen: list[bytes] = []
    monkeypatch.setattr("os.fsync", lambda descriptor: seen.append(file.read_bytes()))
    files.replace(file, b"new")
    assert (seen, file.read_bytes(), file.stat().st_mode & 0o777) == ([b"old and longer"], b"new", 0o600)
    assert list(file.parent.iterdir()) == [file]


def test_a_page_that_kerasbench_wrote_is_written_again(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    for title in ("First", "Second"):
        files.replace_page(page, f"# {title}\n\n{MADE}\n")
    assert page.read_text().startswith("# Second")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        *((foreign, "kerasbench did not write this") for foreign in (b"# Mine\n", b"\xff\xfe")),
        (f"# First\n\n{MADE}\n\nMy notes\n".encode(), "there is text below the last line"),
    ],
)
def test_what_somebody_else_has_written_is_left_as_it_is(tmp_path: Path, content: bytes, why: str) -> None:
    page = tmp_path / "README.md"
    page.write_bytes(content)
    with pytest.raises(ResultsError, match=rf"README\.md: left as it is, because {why}"):
        files.replace_page(page, f"# Third\n\n{MADE}\n")
    assert page.read_bytes() == content


@pytest.mark.parametrize("held", [None, f"{MADE}\n"])
def test_nothing_is_written_through_a_link(tmp_path: Path, held: str | None) -> None:
    elsewhere, folder = tmp_path / "elsewhere.pth", tmp_path / "results"
    folder.mkdir()
    link = folder / "x.md"
    link.symlink_to(elsewhere)
    if held is not None:
        elsewhere.write_text(held)
    for write in (lambda file, text: files.replace(file, text.encode()), files.replace_page):
        with pytest.raises(ResultsError, match=r"x\.md: left as it is, because it is a link"):
            write(link, "new")
    assert elsewhere.read_text() == held if held is not None else not elsewhere.exists()
    assert list(folder.iterdir()) == [link]


def test_a_link_that_waits_for_half_a_file_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name cannot be known before, and where it is, what lies there is left as it is."""
    monkeypatch.setattr("secrets.token_hex", lambda length: "known")
    elsewhere, partial = tmp_path / "elsewhere", tmp_path / "x.json.known.partial"
    elsewhere.write_text("mine")
    partial.symlink_to(elsewhere)
    with pytest.raises(ResultsError, match=r"x\.json: cannot be written: File exists"):
        files.replace(tmp_path / "x.json", b"new")
    assert elsewhere.read_text() == "mine"


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for endless in (fifo, Path("/dev/zero"), tmp_path):
        with pytest.raises(ResultsError, match="not a file"):
            files.read_plain(endless, 1000)
    with pytest.raises(ResultsError, match="larger than 3 bytes"):
        files.read_plain(Path(__file__), 3)


@pytest.mark.skipif(sys.platform != "linux", reason="has no /proc")
def test_what_says_that_it_is_empty_is_not_read_on() -> None:
    assert Path("/proc/self/environ").read_bytes()
    assert files.read_plain(Path("/proc/self/environ"), 1000) == b""


HOLD = """
import sys
import tempfile
from kerasbench.files import scratch_folder
tempfile.tempdir = sys.argv[1]
with scratch_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_scratch_folder_goes_with_its_child_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with files.scratch_folder() as kept:
        Path(kept, "cache").write_text("compiled")
        files.remove_abandoned()
        assert Path(kept, "cache").exists()  # its parent lives
    assert list(tmp_path.iterdir()) == []

    # What a killed parent has left is swept up.
    (tmp_path / "kerasbench-of-mine").mkdir()
    (tmp_path / f"{files.SCRATCH_PREFIX}x").symlink_to(tmp_path / "kerasbench-of-mine")
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        folder = Path(parent.stdout.readline().strip())
        (folder / "cache").mkdir()
        files.remove_abandoned()
        assert folder.exists()
        parent.kill()
    files.remove_abandoned()
    assert (tmp_path / "kerasbench-of-mine").exists()
    assert not folder.exists()
