"""Overlays on an interpreter's packages, by a uv that makes real environments and only notes down what it installs."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kerasbench.environments import sides, venvs
from kerasbench.errors import EnvironmentFailed

pytestmark = pytest.mark.processes

Commands = list[tuple[str, ...]]
REAL = venvs.uv
PLAN = """Would install 2 packages
 - keras==3.15.1
 + keras==3.14.1
 + optree==0.17
 + kauldron==1 (from git+https://example.org/kauldron)
"""


@pytest.fixture(autouse=True)
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    noted: Commands = []

    def uv(*arguments: str, failure: str, messages: bool = False) -> str:
        if arguments[0] == "venv":
            return REAL(*arguments, failure=failure)
        noted.append(arguments)
        # What a shell with FORCE_COLOR has it print, unless it is told not to.
        plan = PLAN if "--color=never" in arguments else PLAN.replace(" + ", " \x1b[32m+\x1b[39m ")
        return plan if messages else ""

    monkeypatch.setattr(venvs, "uv", uv)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path))
    return noted


def overlay(python: str = sys.executable, wanted: str = "keras==3.14.*") -> str:
    return sides.overlay(python, [wanted], print)


def test_it_has_what_was_asked_for_and_what_that_needs_before_the_rest(commands: Commands, tmp_path: Path) -> None:
    said: list[str] = []
    python = sides.overlay(sys.executable, ["keras==3.14.*"], said.append)
    asked, installed = commands
    assert asked[-2:] == ("--upgrade-package=keras", "keras==3.14.*")
    assert asked[asked.index("--python") + 1] == sys.executable and "--dry-run" in asked
    assert installed == ("pip", "install", "--no-deps", "--python", python, "keras==3.14.*", "optree==0.17")
    environment = Path(python).parents[1]
    assert environment.parent == tmp_path / "environments" and environment.name.startswith("keras-3.14-")
    assert said == [f"keras==3.14.*: making an environment on top of {sys.executable}, in {environment}"]
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "pytest.py").write_text("here = True\n")  # in place of the one that is shared
    code = "import pytest, msgspec; print(pytest.here, msgspec.__file__)"
    shown = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env={}).stdout
    assert shown.split() == ["True", msgspec.__file__]


def test_it_is_made_anew_in_a_place_for_each_interpreter_packages_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    first = overlay()
    left = Path(first).parents[1] / "left"
    left.touch()
    places = {overlay(), overlay(first), overlay(wanted="keras==3.15.*")}
    assert first in places and not left.exists()
    monkeypatch.setattr("platform.node", lambda: "another")
    places.add(overlay())
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    places.add(overlay())
    assert len(places) == 5


def test_of_a_checkout_no_old_build_is_installed(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "keras"\n')
    overlay(wanted=str(tmp_path))
    assert commands[1][-3:] == ("--refresh-package=keras", str(tmp_path), "optree==0.17")


def test_an_interpreter_that_does_not_tell_its_packages_and_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    for python in ("/gone/python", "/bin/false"):
        with pytest.raises(EnvironmentFailed, match=f"^the packages of {python} could not be found"):
            overlay(python)
    (tmp_path / "environments").write_text("in the way")
    with pytest.raises(EnvironmentFailed, match=r"environments/keras-3\.14-.*: not created: see the message of uv"):
        overlay()
