import grp
import os
import pwd
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.environments.interpreters import Interpreters, defaults, find
from kerasbench.errors import UsageError
from kerasbench.protocol.columns import Environment

KNOWN = ["jax", "tensorflow", "torch"]
JAX, TORCH, OLD = Environment("jax"), Environment("torch"), Environment("torch", "old")


def here(folder: Path) -> Interpreters:
    return find([], KNOWN, folder)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The python of what looks like a virtual environment; it is a link, as a real one's is."""
    python = tmp_path / ".venvs" / "torch" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


@pytest.mark.parametrize(("name", "head"), [("kerasbench.toml", ""), ("pyproject.toml", "[tool.kerasbench]\n")])
def test_a_file_names_interpreters_by_paths_of_its_and_has_defaults(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch, name: str, head: str
) -> None:
    text = 'python.torch = ".venvs/torch"\npython.tensorflow = ".venvs/torch/bin/python"\n'
    options = 'results = "bench"\nbudget = "10m"\nbackend = ["jax", "torch"]\n'
    (tmp_path / name).write_text(head + options + text)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    named = here(below)
    # The link itself: it is what makes the environment.
    assert [named.of(environment) for environment in (TORCH, Environment("tensorflow"))] == [str(python)] * 2
    assert named.source(TORCH) == str(tmp_path / name)
    assert (named.of(JAX), named.source(JAX)) == (sys.executable, "")
    named.require(map(Environment, KNOWN))
    monkeypatch.chdir(below)
    assert defaults() == {"results": "../../bench", "budget": "10m", "backends": ["jax", "torch"]}


@pytest.mark.parametrize("begins", ["pyproject.toml", ".git"])
def test_above_the_project_only_home_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str) -> None:
    (tmp_path / "kerasbench.toml").write_text('[python]\njax = "/somebody/python"\n')
    below = tmp_path / "project" / "below"
    below.mkdir(parents=True)
    (below.parent / begins).write_text("[project]\nname = 'other'\n")
    assert here(below).of(JAX) == sys.executable
    home = tmp_path / "home"
    home.mkdir()
    (home / "kerasbench.toml").write_text('[python]\njax = "/mine/python"\n')
    monkeypatch.setenv("HOME", str(home))
    assert here(below).of(JAX) == "/mine/python"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "kerasbench.toml"
    file.write_text('[python]\njax = "/mine/python"\n')
    return file


def passed_over(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return why a file is not heeded; empty if it is."""
    path, said = here(file.parent).of(JAX), capsys.readouterr().err
    assert path == (sys.executable if said else "/mine/python")
    return said


def test_a_file_that_others_own_or_may_change_is_passed_over_and_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.chmod(0o666)
    assert "everybody may change it" in passed_over(file, capsys)
    file.chmod(0o664)
    monkeypatch.setattr("pwd.getpwuid", lambda user: pwd.struct_passwd(("me", "x", user, 100, "", "/", "/bin/sh")))
    # One's own group is nobody else's.
    groups = {("me",): True, ("me", "me"): True, ("me", "me", "eve"): False, ("us",): False}
    for (name, *members), heeded in groups.items():
        group = grp.struct_group((name, "x", 100, members))
        monkeypatch.setattr("grp.getgrgid", lambda number, group=group: group)
        assert ("its group may change it" in passed_over(file, capsys)) is not heeded
    file.chmod(0o644)
    assert not passed_over(file, capsys)
    owner = file.stat().st_uid
    monkeypatch.setattr("os.getuid", lambda: owner + 1)
    if owner == 0:
        os.chown(file, 12345, -1)
    assert "another user's" in passed_over(file, capsys)


def test_a_project_s_file_that_is_a_template_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[{{cookiecutter.name}}]\n")
    assert "not TOML" in passed_over(file, capsys)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's link")
def test_another_user_s_link_to_one_s_file_is_passed_over(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.symlink_to(file.rename(file.with_name("other.toml")))
    assert not passed_over(file, capsys)
    os.chown(file, 12345, -1, follow_symlinks=False)
    assert "another user's" in passed_over(file, capsys)


def test_an_option_that_means_nothing_is_refused(tmp_path: Path) -> None:
    complaints = {
        **dict.fromkeys(("torch", "torch="), "takes NAME=PATH"),
        "troch=/x": "did you mean 'torch'",
        "torch@=/x": "'' cannot be a label",
        "torch@a b=/x": "'a b' cannot be a label: use letters, digits",
        "torch@-a=/x": "'-a' cannot be a label",
    }
    for given, complaint in complaints.items():
        with pytest.raises(UsageError, match=complaint):
            find([given], KNOWN, tmp_path)


@pytest.mark.parametrize(
    ("reader", "text", "complaint"),
    [
        (here, "[python", "not TOML"),
        (here, "python = 3", "allowed are results, budget, backend, and a table"),
        *((reader, 'scenario = "mine.py"\n', "allowed are results, budget, backend") for reader in (here, defaults)),
        (here, '[python]\ntroch = "/x"\n', "did you mean 'torch'"),
        (here, '[python]\n"torch@a=b" = "/x"\n', "'a=b' cannot be a label"),
        (here, "[python]\ntorch = 3\n", "takes the path of an interpreter, not 3"),
        (here, '[python]\ntorch = ""\n', "takes the path of an interpreter"),
        (here, "\xff", "not TOML"),
        (here, f"x = {'1' * 5000}", "not TOML: Exceeds the limit"),
        (here, f"x = {'[' * 5000}", "not TOML: maximum recursion depth"),
        (defaults, 'results = "/home/.ssh"', "results takes a folder below that of this file, not '/home/.ssh'"),
        (defaults, 'results = "a/../../other"', "results takes a folder below"),
        (defaults, "budget = 3", "budget takes text, as --budget does, not 3"),
        (defaults, 'backend = ["jax", 3]', "backend takes text"),
        (defaults, 'results = ["a"]', "results takes text"),
        (defaults, r'results = "a\u0000b"', "results takes text"),
    ],
)
def test_a_file_that_means_nothing_is_refused_by_its_name(
    tmp_path: Path, reader: Callable[[Path], object], text: str, complaint: str
) -> None:
    (tmp_path / "kerasbench.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=f"^{tmp_path}/kerasbench.toml: .*{complaint}"):
        reader(tmp_path)


def test_what_is_not_there_is_refused_where_it_is_needed(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(python.parents[3])
    python.unlink()  # an environment that is broken is made again
    named = Interpreters({TORCH: str(python), OLD: "/no/such/python"}, dict.fromkeys((TORCH, OLD), "--python"))
    named.require([JAX])
    with pytest.raises(UsageError, match=r"no interpreter of torch at .* env create --backend torch --force$"):
        named.require([TORCH])
    with pytest.raises(UsageError, match=r"--python: no interpreter of torch@old at /no/.* torch --name old$"):
        named.require([OLD])


def test_a_backend_has_a_column_for_each_of_its_interpreters(tmp_path: Path) -> None:
    file = tmp_path / "kerasbench.toml"
    file.write_text('[python]\ntorch = "/torch/python"\n"torch@old" = "/old/python"\n"jax@old" = "/jax/python"\n')
    given = ["torch@new=/new/python", "torch@old=/other/python", "tensorflow=sh"]  # which go before the file
    named = find(given, KNOWN, tmp_path)
    assert named.of(Environment("tensorflow")).endswith("/sh")  # as a shell finds it
    assert list(map(str, named.environments(KNOWN))) == ["jax@old", "tensorflow", "torch", "torch@old", "torch@new"]
    assert named.labels() == ["old", "new"]
    paths = {str(environment): named.of(environment) for environment in (TORCH, OLD, Environment("torch", "new"))}
    assert paths == {"torch": "/torch/python", "torch@old": "/other/python", "torch@new": "/new/python"}
    assert [named.source(Environment(name, "old")) for name in ("torch", "jax")] == ["--python", str(file)]
    assert Interpreters().environments(["jax"]) == [JAX]


def test_a_backend_from_outside_is_meant_where_it_is_installed_or_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    three = ["jax", "tensorflow", "torch"]
    assert backends.built_in() == three
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert Interpreters().usual() == three
    assert Interpreters({Environment("mlx", "nightly"): "/x/python"}).usual() == ["jax", "mlx", *three[1:]]
    monkeypatch.setattr(util, "find_spec", lambda name: name == "keras_mlx" or None)
    assert Interpreters().usual() == ["jax", "mlx", *three[1:]]


def test_no_default_of_a_file_that_is_passed_over_which_is_named_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: file.parent)  # which is looked at once, too
    assert defaults(file.parent) == {}
    file.write_text('results = "bench"\n')
    file.chmod(0o666)
    assert defaults(file.parent) == {}
    assert passed_over(file, capsys).count("ignored") == 1
