import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.environments.sides import Side
from kerasbench.errors import UsageError
from kerasbench.protocol.columns import Environment
from tests import made
from tests.repository import git

Built = list[tuple[str, Sequence[str]]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Built:
    overlays: Built = []

    def make(python: str, wanted: Sequence[str], say: Callable[[str], None]) -> str:
        overlays.append((python, wanted))
        say("made")
        return f"/made/{wanted[0]}/python"

    monkeypatch.setattr(sides, "overlay", make)
    return overlays


def environment(folder: Path) -> str:
    """Make what looks like a virtual environment; return its python."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "bin" / "python").symlink_to("/bin/sh")
    return str(folder / "bin" / "python")


def test_an_interpreter_is_called_as_its_environment_s_folder_or_project_or_as_its_file(here: Path) -> None:
    old, mine = environment(here / "old"), environment(here / "mine/.venv")
    (here / "python3.12").symlink_to("/bin/sh")
    assert sides.parse_side("old", ["old"]) == Side("old")  # a label that was given goes before all else
    assert [sides.parse_side(word, []) for word in ("old", "old/bin/python", "mine/.venv", "./python3.12", "sh")] == [
        *(Side("old", path=old), Side("old", path=old), Side("mine", path=mine)),
        *(Side("python3.12", path=str(here / "python3.12")), Side("sh", path=str(shutil.which("sh")))),
    ]


def test_a_checkout_and_requirements_are_to_be_installed(here: Path) -> None:
    (here / "keras").mkdir()
    (here / "keras" / "pyproject.toml").write_text('[project]\nname = "keras"\n')
    assert sides.parse_side("./keras", []) == Side("keras", wanted=(str(here / "keras"),))
    two = Side("keras-3.14-torch-2.6", wanted=("keras==3.14.*", "torch==2.6"))
    assert sides.parse_side("keras==3.14.* torch==2.6", []) == two
    assert sides.parse_side("keras>=3.14, <3.15", []).wanted == ("keras>=3.14,<3.15",)


@pytest.mark.parametrize(
    ("word", "known", "complaint"),
    [
        ("kers-3.14", ["keras-3.14"], "unknown label 'kers-3.14'; did you mean 'keras-3.14'"),
        ("keras-3.14", [], "'keras-3.14' is neither a label, nor the path .* such as 'keras==3.14"),
        ("./gone", ["old"], "'./gone' is neither a label"),
        ("empty", [], "empty: neither an interpreter, nor a folder with an environment"),
        *((word, [], "BASE or a HEAD is empty") for word in ("", "  ")),  # not the current folder
    ],
)
def test_what_means_nothing_is_refused(here: Path, word: str, known: list[str], complaint: str) -> None:
    (here / "pyproject.toml").touch()
    (here / "empty").mkdir()
    with pytest.raises(UsageError, match=complaint):
        sides.parse_side(word, known)


def test_labels_are_compared_where_a_backend_has_both() -> None:
    paths = {"torch@old": "/old/python", "torch@new": "/new/python", "jax@old": "/jax/python"}
    named = Interpreters(made.by_environment(paths))
    interpreters, environments, labels = sides.sides(["old", "new"], named, ["jax", "torch"], print)
    assert (labels, list(map(str, environments))) == (["old", "new"], ["torch@old", "torch@new"])
    assert list(map(interpreters.of, environments)) == ["/old/python", "/new/python"]
    with pytest.raises(UsageError, match=r"no backend has both old and new; there are: torch@old, torch@new, jax@"):
        sides.sides(["old", "new"], named, ["jax"], print)


def test_what_is_installed_is_put_on_top_of_each_interpreter_once(built: Built) -> None:
    said: list[str] = []
    named = {"jax": "/jax/python", "torch": "/shared/python", "tensorflow": "/shared/python"}
    chosen = Interpreters(made.by_environment(named))
    interpreters, environments, _ = sides.sides(["keras==3.14", "keras==3.15"], chosen, list(named), said.append)
    assert [python for python, _ in built] == ["/jax/python"] * 2 + ["/shared/python"] * 2
    assert said == ["made"] * 4
    assert environments[:2] == [Environment("jax", label) for label in ("keras-3.14", "keras-3.15")]
    assert interpreters.of(Environment("torch", "keras-3.15")) == "/made/keras==3.15/python"


def test_the_same_twice_has_two_labels_and_so_have_two_things_of_one_name(here: Path, built: Built) -> None:
    python = environment(here / "old")
    interpreters, environments, _ = sides.sides(["old", python], Interpreters(), ["torch"], print)
    assert environments == [Environment("torch", "old"), Environment("torch", "old-again")]
    assert set(map(interpreters.of, environments)) == {python}
    *_, labels = sides.sides(["keras>=3.14", "keras==3.14"], Interpreters(), ["torch"], print)
    assert labels == ["keras-3.14", "keras-3.14-head"]
    *_, labels = sides.sides(
        ["old", "old", "old"], Interpreters({Environment("torch", "old"): python}), ["torch"], print
    )
    assert labels == ["old", "old-again", "old-again2"]


def test_requirements_tell_which_backends_matter() -> None:
    packages = ["jax", "tensorflow", "torch"]
    assert sides.about(["torch==2.6", "torch==2.7"], packages, []) == ["torch"]
    assert sides.about(["keras==3.14 jax==0.9", "torch==2.7"], packages, []) == ["jax", "torch"]
    assert sides.about(["jaxlib==0.9", "jaxlib==0.10"], packages, []) == ["jax"]
    assert sides.about(["keras==3.14", "old"], packages, ["old"]) == []


@pytest.mark.processes
def test_a_commit_of_a_checkout_is_a_side_and_commits_lie_between_two(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(here / "of a hook"))
    fork = here / "fork"
    fork.mkdir()
    (fork / "pyproject.toml").write_text('[project]\nname = "keras"\n')
    for words in ("init -b master", "add .", *["commit --allow-empty -m more"] * 3):
        git(fork, *words.split())
    commits = git(fork, "rev-list", "--reverse", "HEAD").split()
    side = sides.parse_side("./fork@master", [])
    assert side.wanted == (f"keras @ git+{fork.as_uri()}@{commits[-1]}",)
    assert side.label == f"keras-{commits[-1][:9]}"
    assert sides.between(f"./fork@{commits[0]}", "./fork@master") == [f"./fork@{commit}" for commit in commits]
    with pytest.raises(UsageError, match="does not come after"):
        sides.between("./fork@master", f"./fork@{commits[0]}")
    with pytest.raises(UsageError, match="git rev-parse"):
        sides.parse_side("./fork@nowhere", [])


def test_releases_lie_between_two_exact_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "keras (3.15.1)\nAvailable versions: 3.15.1, 3.15.0, 3.9.2, 3.12.0, 3.13.1, 3.13.0, 3.8.0\n"
    monkeypatch.setattr("kerasbench.environments.venvs.uv", lambda *words, failure: told)
    between = ("3.9.2", "3.12.0", "3.13.0", "3.13.1", "3.15.0")
    assert sides.between("keras==3.9.2", "keras==3.15.0") == [f"keras=={version}" for version in between]
    monkeypatch.setattr("kerasbench.environments.venvs.uv", None)  # no index is asked for what is refused
    for good, bad, said in (
        ("keras==3.15.0", "keras==3.9.2", "does not come after"),
        ("keras==3.*", "keras==3.15.0", "what lies between"),
        ("keras==latest", "keras==3.15.0", "keras==latest and keras==3.15.0 are not both releases"),
        ("old", "new", "what lies between"),
        ("keras==3.9.2", "torch==2.13.0", "what lies between"),
    ):
        with pytest.raises(UsageError, match=said):
            sides.between(good, bad)
