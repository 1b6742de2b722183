"""Which interpreter runs a backend, by the command line and by a file."""

import grp
import os
import pwd
import sys
from pathlib import Path

import pytest

from kerasbench.environments.interpreters import Interpreters, defaults, find
from kerasbench.errors import UsageError
from kerasbench.protocol.columns import Environment

KNOWN = ["jax", "tensorflow", "torch"]
JAX, TORCH = Environment("jax"), Environment("torch")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A folder that looks like a virtual environment; its python is a link, as a real one's is."""
    folder = tmp_path / ".venvs" / "torch" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    return folder.parent


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("kerasbench.toml", '[python]\ntorch = ".venvs/torch/bin/python"\n'),
        ("kerasbench.toml", '[python]\ntorch = ".venvs/torch"\n'),
        ("pyproject.toml", '[tool.kerasbench.python]\ntorch = ".venvs/torch"\n'),
    ],
)
def test_a_file_names_interpreters_by_paths_of_its_own_folder(
    tmp_path: Path, environment: Path, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    named = find([], KNOWN, below)
    assert named.of(TORCH) == str(environment / "bin" / "python")  # the link itself: it is what makes the environment
    assert named.source(TORCH) == str(tmp_path / file)
    assert (named.of(JAX), named.source(JAX)) == (sys.executable, "")
    named.require(map(Environment, KNOWN))


@pytest.mark.parametrize("begins", ["pyproject.toml", ".git"])
def test_what_is_above_the_project_is_not_looked_at_but_the_home_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    (tmp_path / "kerasbench.toml").write_text('[python]\njax = "/somebody/python"\n')
    below = tmp_path / "project" / "below"
    below.mkdir(parents=True)
    (below.parent / begins).write_text("[project]\nname = 'other'\n")
    assert find([], KNOWN, below).of(JAX) == sys.executable
    home = tmp_path / "home"
    home.mkdir()
    (home / "kerasbench.toml").write_text('[python]\njax = "/mine/python"\n')
    monkeypatch.setenv("HOME", str(home))
    assert find([], KNOWN, below).of(JAX) == "/mine/python"


def test_a_file_that_others_own_or_may_change_is_passed_over_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kerasbench.toml"
    file.write_text('[python]\njax = "/somebody/python"\n')
    file.chmod(0o666)
    assert find([], KNOWN, tmp_path).of(JAX) == sys.executable
    assert "everybody may change it" in capsys.readouterr().err
    file.chmod(0o644)
    assert find([], KNOWN, tmp_path).of(JAX) == "/somebody/python"
    owner = file.stat().st_uid
    monkeypatch.setattr("os.getuid", lambda: owner + 1)
    if owner == 0:
        os.chown(file, 12345, -1)
    assert find([], KNOWN, tmp_path).of(JAX) == sys.executable
    assert "another user's" in capsys.readouterr().err


def test_a_project_s_file_that_is_a_template_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("[{{cookiecutter.name}}]\n")
    assert find([], KNOWN, tmp_path).of(JAX) == sys.executable
    assert "not TOML" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "members", "heeded"),
    [("me", [], True), ("me", ["me"], True), ("me", ["me", "eve"], False), ("staff", [], False)],
)
def test_what_a_group_may_change_is_passed_over_unless_it_is_the_user_s_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    members: list[str],
    heeded: bool,
) -> None:
    file = tmp_path / "kerasbench.toml"
    file.write_text('[python]\njax = "/mine/python"\n')
    file.chmod(0o664)
    monkeypatch.setattr("grp.getgrgid", lambda group: grp.struct_group((name, "x", group, members)))
    monkeypatch.setattr("pwd.getpwuid", lambda user: pwd.struct_passwd(("me", "x", user, 100, "", "/", "/bin/sh")))
    assert (find([], KNOWN, tmp_path).of(JAX) == "/mine/python") is heeded
    assert ("its group may change it" in capsys.readouterr().err) is not heeded


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's link")
def test_another_user_s_link_to_a_file_of_one_s_own_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.toml").write_text('[python]\njax = "/mine/python"\n')
    link = tmp_path / "kerasbench.toml"
    link.symlink_to("other.toml")
    assert find([], KNOWN, tmp_path).of(JAX) == "/mine/python"
    os.chown(link, 12345, -1, follow_symlinks=False)
    assert find([], KNOWN, tmp_path).of(JAX) == sys.executable
    assert "another user's" in capsys.readouterr().err


def test_a_name_without_a_folder_is_found_as_a_shell_finds_it(tmp_path: Path) -> None:
    assert find(["jax=sh"], KNOWN, tmp_path).of(JAX).endswith("/sh")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("torch", "takes NAME=PATH"),
        ("torch=", "takes NAME=PATH"),
        ("troch=/x", "did you mean 'torch'"),
        ("torch@=/x", "'' cannot be a label"),
        ("torch@a b=/x", "'a b' cannot be a label: use letters, digits"),
        ("torch@-a=/x", "'-a' cannot be a label"),
    ],
)
def test_an_option_that_means_nothing_is_refused(tmp_path: Path, given: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        find([given], KNOWN, tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[python", "not TOML"),
        ("python = 3", "allowed are results, budget, backend, and a table"),
        ("[pythons]\n", "allowed are results, budget, backend"),
        ('scenario = "mine.py"\n', "allowed are results, budget, backend"),
        ('[python]\ntroch = "/x"\n', "did you mean 'torch'"),
        ('[python]\n"torch@a=b" = "/x"\n', "'a=b' cannot be a label"),
        ("[python]\ntorch = 3\n", "takes the path of an interpreter, not 3"),
        ('[python]\ntorch = ""\n', "takes the path of an interpreter"),
        ("\xff", "not TOML"),
        (f"x = {'1' * 5000}", "not TOML: Exceeds the limit"),
        (f"x = {'[' * 5000}", "not TOML: maximum recursion depth"),
    ],
)
def test_a_file_that_means_nothing_is_refused_by_its_name(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "kerasbench.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=complaint) as caught:
        find([], KNOWN, tmp_path)
    assert "kerasbench.toml" in str(caught.value)


def test_an_interpreter_that_is_not_there_is_refused_where_it_is_needed() -> None:
    old = Environment("torch", "old")
    named = Interpreters(dict.fromkeys((TORCH, old), "/no/such/python"), dict.fromkeys((TORCH, old), "--python"))
    named.require([JAX])
    with pytest.raises(UsageError, match=r"--python: no interpreter of torch at /no/such/python; .* env create"):
        named.require([TORCH])
    with pytest.raises(UsageError, match=r"no interpreter of torch@old at .* env create --backend torch --name old$"):
        named.require([old])


def test_an_environment_that_is_there_and_does_not_work_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (environment / "bin" / "python").unlink()
    with pytest.raises(UsageError, match=r"env create --backend torch --force$"):
        Interpreters({TORCH: str(environment / "bin" / "python")}, {TORCH: "--python"}).require([TORCH])


def test_a_backend_has_a_column_for_each_of_its_interpreters(tmp_path: Path) -> None:
    file = tmp_path / "kerasbench.toml"
    file.write_text('[python]\ntorch = "/torch/python"\n"torch@old" = "/old/python"\n"jax@old" = "/jax/python"\n')
    named = find(["torch@new=/new/python", "torch@old=/other/python"], KNOWN, tmp_path)  # which go before the file
    assert list(map(str, named.environments(KNOWN))) == ["jax@old", "tensorflow", "torch", "torch@old", "torch@new"]
    assert named.labels() == ["old", "new"]
    interpreters = [named.of(Environment("torch", label)) for label in ("", "old", "new")]
    assert interpreters == ["/torch/python", "/other/python", "/new/python"]
    assert [named.source(Environment(name, "old")) for name in ("torch", "jax")] == ["--python", str(file)]
    assert Interpreters().environments(["jax"]) == [JAX]


@pytest.mark.parametrize(("file", "head"), [("kerasbench.toml", ""), ("pyproject.toml", "[tool.kerasbench]\n")])
def test_a_file_has_defaults_of_options_that_start_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, head: str
) -> None:
    (tmp_path / file).write_text(f'{head}results = "bench"\nbudget = "10m"\nbackend = ["jax", "torch"]\n')
    below = tmp_path / "a"
    below.mkdir()
    monkeypatch.chdir(below)
    assert defaults() == {"results": "../bench", "budget": "10m", "backends": ["jax", "torch"]}
    find([], KNOWN)  # who looks for interpreters alone minds no default


def test_no_file_no_default_and_a_file_that_is_passed_over_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)  # which is looked at once, too
    assert defaults(tmp_path) == {}
    file = tmp_path / "kerasbench.toml"
    file.write_text('results = "bench"\n')
    file.chmod(0o666)
    assert defaults(tmp_path) == {}
    find([], KNOWN, tmp_path)
    assert capsys.readouterr().err.count("ignored") == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('results = "/home/user/.ssh"', "results takes a folder below that of this file, not '/home/user/.ssh'"),
        ('results = "a/../../other"', "results takes a folder below"),
        ("budget = 3", "budget takes text, as --budget does, not 3"),
        ('backend = ["jax", 3]', "backend takes text"),
        ('results = ["a"]', "results takes text"),
        (r'results = "a\u0000b"', "results takes text"),
        ("trust = true", "allowed are results, budget, backend"),
    ],
)
def test_a_default_that_is_none_is_refused_by_the_file_s_name(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "kerasbench.toml").write_text(text)
    with pytest.raises(UsageError, match=complaint) as caught:
        defaults(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/kerasbench.toml: ")
