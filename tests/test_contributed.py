"""Results that a pull request brings, and how they come about: what `contribute` writes passes, and nothing else."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kerasbench.cli import main
from kerasbench.contributing.branch import CHART
from kerasbench.pages import files as pages
from kerasbench.protocol.messages import Code, Failure
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
    (folder / "kerasbench").mkdir()
    (folder / "kerasbench" / "__init__.py").touch()
    add_run(folder / "results", 1)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "before")
    git(folder, "tag", "base")
    return folder


@pytest.fixture
def clone(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "clone"))


def python(folder: Path, *words: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    known = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-P", *map(str, words)]
    nothing = subprocess.DEVNULL
    return subprocess.run(command, cwd=folder, env=known, stdin=nothing, capture_output=True, text=True, check=False)


def check(clone: Path) -> "subprocess.CompletedProcess[str]":
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "more results")
    return python(clone, CHECK, "base", "HEAD")


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


NAME = "results-2026-01-02T030405"
AUTHOR = {"GIT_AUTHOR_NAME": "A B", "GIT_AUTHOR_EMAIL": "ab@example.org"}
COMMITTER = {"GIT_COMMITTER_NAME": "A B", "GIT_COMMITTER_EMAIL": "ab@example.org"}
NO_SETTINGS = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def contribute(clone: Path, file: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    known = AUTHOR | COMMITTER | NO_SETTINGS | variables
    return python(clone.parent, "-m", "kerasbench", "contribute", file, "--clone", clone, "--yes", *words, **known)


def untouched(clone: Path) -> tuple[str, str]:
    return git(clone, "status", "--porcelain", "--ignored"), git(clone, "ls-files", "--stage")


def branches(clone: Path) -> list[str]:
    return git(clone, "for-each-ref", "--format=%(refname)").splitlines()


def brought(clone: Path) -> dict[str, str]:
    """Return the new and changed files of the branch, and what its commit says."""
    names = git(clone, "diff", "--name-only", "base", NAME).splitlines()
    return {name: git(clone, "show", f"{NAME}:{name}") for name in names} | {"": git(clone, "cat-file", "commit", NAME)}


def mine(results: Path) -> Path:
    """Store a run of a scenario of one's own, whose folder, failure and variables say whose it is."""
    folder = "/home/erika_mustermann/models"
    failure = Failure(Code.ERROR, f"FileNotFoundError: {folder}/x", "", "build", f'File "{folder}/mine.py", line 3')
    trials = [made.in_block(1, made.measurement(2.0), name="erikas_net", backend="jax")]
    trials.append(made.trial(name="erikas_net", failure=failure))
    config = {"scenarios": [f"{folder}/erikas_net.py"], "keep_env": {"HOME": folder}}
    machine = {"identifier": "mustermanns-laptop", "cards": ["GPU-b13e5ece-bbd0-86b0-9274-50566234d477"]}
    return made.stored(results, made.changed(made.record(*trials), config=config, machine=machine)).data


def test_a_contributed_run_is_on_a_branch_alone_names_nobody_and_passes(clone: Path, tmp_path: Path) -> None:
    file = mine(tmp_path / "erika_mustermann")
    (clone / "code.py").write_text("unfinished work")
    (clone / "results" / "notes.txt").write_text("mine")
    git(clone, "add", "code.py")
    before, known = untouched(clone), branches(clone)
    ended = contribute(clone, file)
    assert ended.returncode == 0, ended.stderr
    assert untouched(clone) == before
    assert set(branches(clone)) - set(known) == {f"refs/heads/{NAME}"}
    files = brought(clone)
    start = "results/2026-01-02T030405"
    assert {name for name in files if not CHART.fullmatch(Path(name).name)} == {
        "",
        "results/README.md",
        f"{start}.json",
        f"{start}.md",
    }
    assert "author A B <ab@example.org>" in files[""]
    words = ("erika", "mustermann", "home/", "gpu-", "b13e5ece", str(tmp_path).lower())
    assert [(name, word) for name, text in files.items() for word in words if word in text.lower()] == []
    assert "own-" in files["results/README.md"]
    checked = python(clone, CHECK, "base", NAME)
    assert (checked.returncode, files[f"{start}.md"] in checked.stdout) == (0, True), checked.stderr
    lines = ("your scenario erikas_net is called own-", "left out or changed: config.", f"push FORK {NAME}\n", "YOU:")
    assert all(line in ended.stdout for line in lines)


def test_names_that_stay_are_shown_as_text(clone: Path, tmp_path: Path) -> None:
    """A name, a title and a text that are markup and code are neither, and no place to write to."""
    evil = "../../x](javascript:alert(1))<script>alert(1)</script>`$(touch hacked)`|\x1b]0;x\x07\n::error::x\u202e"
    record = made.record(made.in_block(1, made.measurement(2.0), name=evil, backend="jax"))
    described = made.changed(record.scenarios[0].description, title=evil, text=f"import os; {evil}", source=evil)
    facts = made.changed(record.scenarios[0], description=described, suite="")
    file = made.stored(tmp_path, made.changed(record, scenarios=[facts])).data
    ended = contribute(clone, file, "--with-scenarios")
    assert ended.returncode == 0, ended.stderr
    assert not set("\x1b\x07\u202e") & set(ended.stdout + ended.stderr)
    files = brought(clone)
    assert all(Path(name).parent == Path("results") for name in files if name)
    for name, text in files.items():
        if name.endswith((".md", ".svg")):
            assert not re.search(r"(?<!\\)(<script|\]\(javascript)|^::", text, re.MULTILINE)
    checked = python(clone, CHECK, "base", NAME)
    assert checked.returncode == 0, checked.stderr
    assert not list(tmp_path.rglob("hacked"))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("100000000", "110000000", "differs from its data"),
        (
            '{"config":{',
            '{"note":"import os","config":{',
            "not as kerasbench contribute writes it: it holds more than a result",
        ),
        ('"machine":{', '"machine":{"cards":["GPU-b13e5ece"],', "differs from its data"),
        (
            '"model_config":{',
            '"model_config":{"rows":"/home/e"',
            "not as kerasbench contribute writes it: config.model_config.rows",
        ),
        ("the test is over", "interrupted", "differs from its data"),
    ],
)
def test_a_contributed_file_that_was_changed_by_hand_is_refused(
    clone: Path, tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert contribute(clone, mine(tmp_path)).returncode == 0
    git(clone, "checkout", "-q", NAME)
    file = clone / "results" / "2026-01-02T030405.json"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    refuses(clone, said)


def test_what_cannot_be_contributed_leaves_a_clone_as_it_is_and_says_what_to_do(clone: Path, tmp_path: Path) -> None:
    good = mine(tmp_path / "good")
    link, large, code, cut = (tmp_path / f"{name}.json" for name in ("link", "large", "code", "cut"))
    link.symlink_to(good)
    large.write_bytes(b" " * 20_000_001)
    code.write_text("import os; os.system('touch hacked')")
    cut.write_bytes(good.read_bytes()[:-20])
    measured = made.record(made.in_block(1, made.measurement(2.0)))
    interrupted = made.stored(tmp_path / "part", made.changed(measured, stopped_because="interrupted")).data
    failed = made.stored(tmp_path / "failed", made.record(made.trial(failure=made.FAILURE))).data
    (tmp_path / "empty").mkdir()
    (there,) = (clone / "results").glob("*.json")
    before = untouched(clone), branches(clone)
    for file, words, said in (
        (link, (), "is a link: name the file itself"),
        (large, (), "larger than 20,000,000 bytes"),
        (code, (), "not a kerasbench result file"),
        (cut, (), "not a kerasbench result file"),
        (tmp_path / "none.json", (), "cannot be read: No such file"),
        (tmp_path, (), "not a file"),
        (interrupted, (), "kerasbench --resume measures the rest"),
        (failed, (), "nothing was measured in it"),
        (there, (), "already on HEAD, so there is nothing to send"),
        (good, ("--clone", str(tmp_path / "empty")), "no clone of kerasbench"),
        (good, ("--clone", str(tmp_path / "gone")), "no clone of kerasbench"),
    ):
        ended = contribute(clone, file, *words)
        assert (ended.returncode, said in ended.stderr, ended.stderr.count("\n")) == (2, True, 1), (said, ended.stderr)
    asked = python(tmp_path, "-m", "kerasbench", "contribute", good, "--clone", clone)
    assert (asked.returncode, "which needs a terminal: add --yes" in asked.stderr) == (2, True)
    nobody = contribute(clone, good, GIT_AUTHOR_NAME="", GIT_AUTHOR_EMAIL="")
    assert (nobody.returncode, 'git config --global user.name "YOUR NAME"' in nobody.stderr) == (2, True), nobody.stdout
    assert (untouched(clone), branches(clone)) == before and not list(tmp_path.rglob("hacked"))
    assert contribute(clone, good).returncode == 0
    assert f"git branch -D {NAME}" in contribute(clone, good).stderr


class Typed(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_writes_into_the_clone_that_is_named_whatever_a_hook_has_in_its_environment(
    clone: Path, begun: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(begun, tmp_path / "other"))
    before = untouched(other), branches(other)
    hook = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
    }
    hook |= {"GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"), "GIT_COMMON_DIR": str(other / ".git")}
    ended = contribute(clone, mine(tmp_path), **hook)
    assert ended.returncode == 0, ended.stderr
    assert f"refs/heads/{NAME}" in branches(clone)
    assert (untouched(other), branches(other)) == before


def divided(data: str) -> str:
    """Return a run whose slices each used more processor time than its two logical CPUs have in them."""
    content = json.loads(data)
    slices = content["trials"][0]["measurement"]["samples"]["train"]
    slices["cpu_ns"] = [3 * ns + 10**9 for ns in slices["ns"]]
    return json.dumps(content, separators=(",", ":")) + "\n"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (divided, "more than 2 logical CPUs can give; restore the file"),
        (
            lambda data: data.replace('"backend":"jax"', '"backend":"<img src=x>"'),
            "is none of the backends jax, mlx, tens",
        ),
    ],
)
def test_impossible_times_and_backends_that_there_are_not_are_neither_contributed_nor_taken(
    clone: Path, tmp_path: Path, edit: Callable[[str], str], said: str
) -> None:
    file = add_run(tmp_path / "own", 2)
    evil = edit(file.read_text())
    assert evil != file.read_text()
    file.write_text(evil)
    ended = contribute(clone, file)
    assert (ended.returncode, said in ended.stderr, ended.stderr.count("\n")) == (2, True, 1), ended.stderr
    data = add_run(clone / "results", 2)
    data.write_text(evil)
    if edit is divided:
        pages.write(pages.made_from([clone / "results"]))  # whose pages say what the data say
    refuses(clone, said)


def test_it_asks_and_no_is_no(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (AUTHOR | COMMITTER | NO_SETTINGS).items():
        monkeypatch.setenv(name, value)
    words = ["contribute", str(mine(tmp_path)), "--clone", str(clone)]
    for answer, code, is_written in (("", 130, False), ("\n", 0, False), ("n\n", 0, False), ("y\n", 0, True)):
        monkeypatch.setattr("sys.stdin", Typed(answer))
        assert main.main(words) == code
        assert (f"refs/heads/{NAME}" in branches(clone)) is is_written


def test_pages_that_another_kerasbench_drew_are_not_drawn_anew_by_the_branch(clone: Path, tmp_path: Path) -> None:
    (page,) = (clone / "results").glob("*T*.md")
    page.write_text(page.read_text().replace("Time per training step", "Duration of a step"))
    git(clone, "commit", "-qam", "another kerasbench")
    ended = contribute(clone, mine(tmp_path))
    assert (ended.returncode, f"draws {page.name} differently from HEAD" in ended.stderr) == (2, True)


def test_it_is_built_on_the_project_s_branch_whatever_is_worked_on(clone: Path, tmp_path: Path) -> None:
    git(clone, "update-ref", "refs/remotes/origin/main", "base")
    git(clone, "update-ref", "refs/remotes/upstream/main", "base")
    (clone / "code.py").write_text("a feature")
    git(clone, "commit", "-qam", "a feature")
    assert "on upstream/main" in contribute(clone, mine(tmp_path)).stdout
    assert git(clone, "rev-parse", f"{NAME}^") == git(clone, "rev-parse", "base")
