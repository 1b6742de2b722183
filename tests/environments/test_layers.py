"""Environments on top of others, with a pip that only notes down what it was asked; venv is the real one."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench.environments import sides, venvs
from kerasbench.errors import EnvironmentFailed

pytestmark = pytest.mark.processes

REAL = venvs.run
KERAS = ["keras==3.14.*"]


class Pip:
    """What stands in for pip alone, and makes environments without it, which takes a tenth of a second."""

    def __init__(self) -> None:
        self.installed: list[list[str]] = []
        self.fails = False

    def __call__(self, command: Sequence[str], failure: str, quiet: bool = False) -> str:
        if "venv" in command:
            return REAL([*command[:3], "--without-pip", *command[3:]], failure, quiet)
        if "pip" not in command:
            return REAL(command, failure, quiet)
        if self.fails:
            raise EnvironmentFailed(failure)
        self.installed.append([*command[command.index("install") + 1 :]])
        return ""


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pip:
    found = Pip()
    monkeypatch.setattr(venvs, "run", found)
    monkeypatch.setattr(sides, "folder", lambda: tmp_path / "environments")
    return found


def test_it_has_what_was_asked_for_before_what_it_shares(pip: Pip, tmp_path: Path) -> None:
    said: list[str] = []
    python = sides.built(sys.executable, KERAS, said.append)
    assert pip.installed == [["--ignore-installed", "--no-deps", *KERAS], KERAS]
    environment = Path(python).parents[1]
    assert environment.parent == tmp_path / "environments"
    assert environment.name.startswith("keras-3.14-")
    assert said == [f"keras==3.14.*: making an environment on top of {sys.executable}, in {environment}"]
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "pytest.py").write_text("here = True\n")  # in place of the one that is shared
    code = "import pytest, msgspec; print(pytest.here, msgspec.__file__)"
    shown = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env={}).stdout
    import msgspec

    assert shown.split() == ["True", msgspec.__file__]


def test_it_is_made_once_for_each_interpreter_and_set_of_packages(pip: Pip, tmp_path: Path) -> None:
    said: list[str] = []
    one = sides.built(sys.executable, KERAS, said.append)
    assert sides.built(sys.executable, KERAS, said.append) == one
    assert said[1:] == [f"keras==3.14.*: made earlier, in {Path(one).parents[1]}"]
    assert sides.built(sys.executable, ["keras==3.15.*"], said.append) != one
    assert sides.built(one, KERAS, said.append) != one
    assert pip.installed[1::2] == [KERAS, ["keras==3.15.*"], KERAS]


def test_it_is_made_again_where_what_it_shares_has_changed(pip: Pip, tmp_path: Path) -> None:
    below = tmp_path / "below"
    REAL([sys.executable, "-m", "venv", "--without-pip", str(below)], "no virtual environment", True)
    (packages,) = below.glob("lib/python3*/site-packages")
    python, said = str(below / "bin" / "python"), list[str]()
    one = sides.built(python, KERAS, said.append)
    left = Path(one).parents[1] / "left"
    left.touch()
    (packages / "jax-0.9.0.dist-info").mkdir()
    assert sides.built(python, KERAS, said.append) == one
    assert (
        not left.exists()
        and [what.split(", in ")[0] for what in said]
        == [f"keras==3.14.*: making an environment on top of {python}"] * 2
    )
    (packages / "jax-0.9.0.dist-info").rename(packages / "jax-0.10.0.dist-info")
    sides.built(python, KERAS, said.append)
    sides.built(python, KERAS, said.append)
    assert len(pip.installed) == 6 and said[-1].startswith("keras==3.14.*: made earlier")


def test_a_checkout_is_installed_anew_each_time(pip: Pip, tmp_path: Path) -> None:
    wanted = [str(tmp_path / "keras")]
    assert sides.built(sys.executable, wanted, print) == sides.built(sys.executable, wanted, print)
    assert [one[-1] for one in pip.installed] == wanted * 2


def test_what_a_wheel_needs_is_installed_by_its_package_s_name(pip: Pip, tmp_path: Path) -> None:
    wheel = str(tmp_path / "keras-3.14-py3-none-any.whl")
    sides.built(sys.executable, [wheel, "numpy>=2"], print)
    assert pip.installed == [["--ignore-installed", "--no-deps", wheel, "numpy>=2"], ["keras", "numpy>=2"]]


def test_one_that_could_not_be_made_leaves_nothing(pip: Pip, tmp_path: Path) -> None:
    pip.fails = True
    with pytest.raises(EnvironmentFailed, match=r"^keras==3\.14\.\*: pip did not install it"):
        sides.built(sys.executable, KERAS, print)
    assert [one.name for one in (tmp_path / "environments").iterdir()] == [sides.LOCK]


def test_a_cache_that_cannot_be_written_is_said(pip: Pip, tmp_path: Path) -> None:
    (tmp_path / "environments").write_text("in the way")
    with pytest.raises(EnvironmentFailed, match=r"environments/keras-3\.14-.*: cannot be made: "):
        sides.built(sys.executable, KERAS, print)


def test_a_branch_by_its_address_is_installed_each_time(pip: Pip, tmp_path: Path) -> None:
    wanted = ["git+https://example.org/keras@master"]
    sides.built(sys.executable, wanted, print)
    sides.built(sys.executable, wanted, print)
    assert pip.installed[::2] == [["--ignore-installed", "--no-deps", *wanted]] * 2


def test_what_a_killed_run_has_left_half_made_is_removed(pip: Pip, tmp_path: Path) -> None:
    left = tmp_path / "environments" / f"{sides.UNFINISHED}x" / "keras"
    left.mkdir(parents=True)
    sides.built(sys.executable, KERAS, print)
    assert not left.parent.exists()


def test_machines_that_share_a_home_have_environments_of_their_own(
    pip: Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = sides.built(sys.executable, KERAS, print)
    monkeypatch.setattr("platform.node", lambda: "another")
    there = sides.built(sys.executable, KERAS, print)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert len({here, there, sides.built(sys.executable, KERAS, print)}) == 3
    assert (tmp_path / "environments" / sides.LOCK).exists()
