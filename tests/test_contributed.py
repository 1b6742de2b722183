"""Results that a pull request brings: those that are what they say pass, and nothing else does."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kerasbench.pages import files as pages
from tests import made
from tests.repository import ROOT, git

CHECK = ROOT / ".ci" / "results.py"
pytestmark = pytest.mark.processes


def add_run(results: Path, day: int) -> Path:
    trials = [made.in_block(1, made.measurement(ms), backend=backend) for backend, ms in (("jax", 2.0), ("torch", 3.0))]
    store = made.stored(results, made.changed(made.record(*trials), started=f"2026-01-{day:02d}T03:04:05Z"))
    pages.write(pages.made_from([results]))
    return store.data


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    git(folder, "init", "-q")
    (folder / "code.py").touch()
    add_run(folder / "results", 1)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "before")
    git(folder, "tag", "base")
    return folder


@pytest.fixture
def clone(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "clone"))


def check(clone: Path) -> "subprocess.CompletedProcess[str]":
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "more results")
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", str(CHECK), "base", "HEAD"]
    return subprocess.run(command, cwd=clone, env=variables, capture_output=True, text=True, check=False)


def refuses(clone: Path, said: str) -> None:
    """Let it check, and say that in lines of which none is a command of the log, without a page."""
    ended = check(clone)
    assert (ended.returncode, said in ended.stderr) == (1, True), ended.stderr
    first, *others = ended.stderr.splitlines()
    assert re.fullmatch("::stop-commands::[0-9a-f]{32}", first)
    assert not any(line.startswith("::") for line in others)
    assert "# dense" not in ended.stdout


def test_results_that_are_what_they_say_pass_and_their_pages_are_shown(clone: Path) -> None:
    data = add_run(clone / "results", 2)
    ended = check(clone)
    assert ended.returncode == 0, ended.stderr
    assert data.with_suffix(".md").read_text() in ended.stdout
    assert ended.stdout.count("# dense: JAX had the shortest time in 1 round") == 1  # not the one that was there


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["../code.py"], "code.py': a pull request with results brings"),
        (["run.py"], "run.py': a pull request with results brings"),
        (["notes.md"], "notes.md': a pull request with results brings"),
        (["\n::error::x.json", "##[error]x.json"], "\\n::error::x.json': a pull request with results brings"),
        ([os.fsdecode(b"\xff.json")], "\\udcff.json': a pull request with results brings"),
        (["2026-01-03T030405.md"], "no data make this page"),
        (["2026-01-03T030405.svg"], "no data make this page"),
    ],
)
def test_whatever_else_is_brought_is_refused(clone: Path, names: list[str], said: str) -> None:
    add_run(clone / "results", 2)
    for name in names:
        (clone / "results" / name).write_text("import os")
    refuses(clone, said)


@pytest.mark.parametrize(
    ("day", "suffix", "edit", "said"),
    [
        (2, ".md", lambda page: page.replace("takes 1.48×", "takes 1.05×"), "differs from its data"),
        (2, ".md", lambda page: "", "differs from its data"),
        (2, ".json", lambda data: data[:-20], ".json"),
        (1, ".json", lambda data: data.replace("Chip 9", "Chip 10"), "is there already"),
    ],
)
def test_what_was_edited_is_refused(clone: Path, day: int, suffix: str, edit: Callable[[str], str], said: str) -> None:
    add_run(clone / "results", 2)
    file = clone / "results" / f"2026-01-0{day}T030405{suffix}"
    text = file.read_text()
    edited = edit(text)
    assert edited != text
    file.unlink()
    if edited:
        file.write_text(edited)
    if day == 1:
        pages.write(pages.made_from([clone / "results"]))
    refuses(clone, said)


def test_code_that_draws_pages_anew_brings_no_results(clone: Path) -> None:
    (page,) = (clone / "results").glob("*T*.md")
    page.write_text(page.read_text().replace("dense", "dense,"))
    (clone / "code.py").write_text("import os")
    assert check(clone).returncode == 0


@pytest.mark.parametrize(
    "name", ["results/2026-01-02T030405.md", "results/2026-01-02T030405.json", "results/README.md", "docs/more/page.md"]
)
def test_a_link_alone_is_refused(clone: Path, name: str) -> None:
    link = clone / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to("../../elsewhere.pth")
    ended = check(clone)
    assert (ended.returncode, ended.stderr.splitlines()[1:]) == (1, [f"{name!r}: is a link"])
