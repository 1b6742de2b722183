"""Results that a pull request brings: those that are what they say pass, and nothing else does."""

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kerasbench.report import pages
from tests import made
from tests.repository import git

ROOT = Path(__file__).parents[1]
CHECK = ROOT / ".ci" / "results.py"
pytestmark = pytest.mark.processes


def add_run(results: Path, day: int) -> Path:
    """Measure there, and make its page and the index."""
    started = f"2026-01-{day:02d}T03:04:05Z"
    found = [made.in_block(1, made.measurement(ms), backend=backend) for backend, ms in (("jax", 2.0), ("torch", 3.0))]
    store = made.stored(results, dataclasses.replace(made.record(*found), started=started))
    pages.write(pages.made_from([results]))
    return store.data


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout with one run."""
    clone = tmp_path / "clone"
    clone.mkdir()
    git(clone, "init", "-q")
    (clone / "code.py").write_text("")
    add_run(clone / "results", 1)
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "before")
    git(clone, "tag", "base")
    return clone


def check(clone: Path) -> "subprocess.CompletedProcess[str]":
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "more results")
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", str(CHECK), "base", "HEAD"]
    return subprocess.run(command, cwd=clone, env=variables, capture_output=True, text=True, check=False)


def test_results_that_are_what_they_say_pass_and_their_pages_are_shown(clone: Path) -> None:
    data = add_run(clone / "results", 2)
    ended = check(clone)
    assert ended.returncode == 0, ended.stderr
    assert data.with_suffix(".md").read_text() in ended.stdout
    assert ended.stdout.count("# dense: JAX had the shortest time in 1 round") == 1  # not the one that was there


def make_faster(data: Path) -> None:
    page = data.with_suffix(".md")
    page.write_text(page.read_text().replace("takes 1.48×", "takes 1.05×"))
    assert "1.05×" in page.read_text()


def leave_out_the_page(data: Path) -> None:
    data.with_suffix(".md").unlink()


def damage(data: Path) -> None:
    data.write_text(data.read_text()[:-20])


def link(data: Path) -> None:
    data.unlink()
    data.symlink_to("/etc/passwd")


def change_code(data: Path) -> None:
    (data.parents[1] / "code.py").write_text("import os")


def bring_a_program(data: Path) -> None:
    (data.parent / "run.py").write_text("import os")


def bring_names_that_are_commands(data: Path) -> None:
    for name in ("\n::error::x.json", "##[error]x.json", os.fsdecode(b"\xff.json")):
        data.with_name(name).write_text("{}")


def bring_a_page_of_no_run(data: Path) -> None:
    data.with_name("2026-01-03T030405.md").write_text("# Read this")


def bring_a_chart_of_no_run(data: Path) -> None:
    data.with_name("2026-01-03T030405.svg").write_text("<svg/>")


def bring_a_page_of_another_name(data: Path) -> None:
    data.with_name("notes.md").write_text("# Read this")


def change_what_was_there(data: Path) -> None:
    earlier = min(data.parent.glob("*.json"))
    earlier.write_text(earlier.read_text().replace("Chip 9", "Chip 10"))
    pages.write(pages.made_from([data.parent]))


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (make_faster, "differs from its data"),
        (leave_out_the_page, "differs from its data"),
        (damage, ".json"),
        (link, ".json': is a link"),
        (change_code, "code.py': a pull request with results brings"),
        (bring_a_program, "run.py': a pull request with results brings"),
        (bring_names_that_are_commands, "\\n::error::x.json': a pull request with results brings"),
        (bring_names_that_are_commands, "\\udcff.json': a pull request with results brings"),
        (bring_a_page_of_no_run, "no data make this page"),
        (bring_a_chart_of_no_run, "no data make this page"),
        (bring_a_page_of_another_name, "notes.md': a pull request with results brings"),
        (change_what_was_there, "is there already"),
    ],
)
def test_whatever_else_is_refused(clone: Path, tamper: Callable[[Path], None], said: str) -> None:
    tamper(add_run(clone / "results", 2))
    ended = check(clone)
    assert (ended.returncode, said in ended.stderr) == (1, True), ended.stderr
    first, *others = ended.stderr.splitlines()
    assert re.fullmatch("::stop-commands::[0-9a-f]{32}", first)  # no later line is a command of the log
    assert not any(line.startswith("::") for line in others)
    assert "# dense" not in ended.stdout


def test_code_that_draws_pages_anew_brings_no_results(clone: Path) -> None:
    (page,) = (clone / "results").glob("*T*.md")
    page.write_text(page.read_text().replace("dense", "dense,"))
    (clone / "code.py").write_text("import os")
    assert check(clone).returncode == 0


@pytest.mark.parametrize("name", ["results/2026-01-02T030405.md", "results/README.md", "docs/more/page.md"])
def test_a_link_alone_is_refused(clone: Path, name: str) -> None:
    link = clone / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to("../../elsewhere.pth")
    ended = check(clone)
    assert (ended.returncode, ended.stderr.splitlines()[1:]) == (1, [f"{name!r}: is a link"])
