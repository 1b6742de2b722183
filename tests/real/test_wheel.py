"""The built wheel serves a user who has no checkout: measuring, a report, and a scenario of their own."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from uv import find_uv_bin

from kerasbench import __version__
from kerasbench.results.store import load

pytestmark = pytest.mark.real

ROOT = Path(__file__).parent.parent.parent
BACKEND = "jax"
SHORTLY = ["--backend", BACKEND, "--device", "cpu", "--quick", "--wait", "--results", "results"]


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of a fresh environment: it has the wheel, and sees the other packages of the tests' own.

    A path in a .pth file is searched for packages, but .pth files there are not read, so that an editable
    kerasbench is not seen.
    """
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    uv, fresh = find_uv_bin(), folder / "fresh"
    subprocess.run([uv, "venv", "-q", "--offline", "--python", sys.executable, str(fresh)], check=True)
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [uv, "pip", "install", "-q", "--offline", "--no-deps", "--python", str(fresh / "bin" / "python")]
    subprocess.run([*install, str(wheel)], check=True)
    return fresh / "bin"


def called(folder: Path, *command: str, **more: str) -> str:
    """Run a program in a folder, without anything that would lead to the checkout; return what it prints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | more
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_user_without_a_checkout_measures_a_scenario_of_their_own_and_reports(
    installed: Path, tmp_path: Path
) -> None:
    kerasbench, python = str(installed / "kerasbench"), str(installed / "python")
    where = called(tmp_path, python, "-c", "import kerasbench; print(kerasbench.__file__)")
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert "iris_mlp" in called(tmp_path, kerasbench, "list")

    (tmp_path / "mine.py").write_text(scenario_of_the_documentation(), "utf-8")
    tables = called(tmp_path, kerasbench, "--scenario", "mine.py", *SHORTLY)
    assert "| mine " in tables
    (data,) = (tmp_path / "results").glob("*.json")
    record = load(data)
    assert [trial.failure for trial in record.trials] == [None]

    assert called(tmp_path, kerasbench, "report", "results") and (tmp_path / "results" / "README.md").exists()
    assert "mine: JAX takes " in called(
        tmp_path, python, "-c", "import kerasbench; print(repr(kerasbench.load('results')))"
    )


def scenario_of_the_documentation() -> str:
    """Return the file as it stands in docs/your-model.md."""
    page = (ROOT / "docs" / "your-model.md").read_text("utf-8")
    first = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert first is not None and "Scenario(" in first[1]
    return first[1]


Installed = tuple[Path, Path]  # the program, and the interpreter that runs it


def by_pip(wheel: Path, folder: Path) -> Installed:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    programs = folder / "bin"
    subprocess.run([str(programs / "python"), "-m", "pip", "install", "-q", str(wheel)], check=True)
    return programs / "kerasbench", programs / "python"


def by_pipx(wheel: Path, folder: Path) -> Installed:
    variables = {"PIPX_HOME": str(folder), "PIPX_BIN_DIR": str(folder / "bin"), "PIPX_DEFAULT_PYTHON": sys.executable}
    called(wheel.parent, find_uv_bin(), "tool", "run", "pipx", "install", str(wheel), **variables)
    return folder / "bin" / "kerasbench", folder / "venvs" / "kerasbench" / "bin" / "python"


def by_uv_tool(wheel: Path, folder: Path) -> Installed:
    variables = {"UV_TOOL_DIR": str(folder), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    called(wheel.parent, find_uv_bin(), "tool", "install", "--python", sys.executable, str(wheel), **variables)
    return folder / "bin" / "kerasbench", folder / "kerasbench" / "bin" / "python"


@pytest.mark.weekly
def test_a_release_passes_twine_and_works_alone_however_it_is_installed(tmp_path: Path) -> None:
    release = tmp_path / "dist"
    called(ROOT, find_uv_bin(), "build", "-q", "--python", sys.executable, "--out-dir", str(release))
    files = sorted(map(str, release.glob("kerasbench-*")))
    assert [Path(file).name for file in files] == [
        f"kerasbench-{__version__}-py3-none-any.whl",
        f"kerasbench-{__version__}.tar.gz",
    ]
    called(tmp_path, find_uv_bin(), "tool", "run", "twine", "check", "--strict", *files)

    ways: tuple[Callable[[Path, Path], Installed], ...] = (by_pip, by_pipx, by_uv_tool)
    for install in ways:
        program, python = install(Path(files[0]), tmp_path / install.__name__)
        here = tmp_path / f"in-{install.__name__}"
        here.mkdir()
        assert called(here, str(program), "--version") == f"kerasbench {__version__}\n"
        # The same program, and none of it is of this checkout.
        listed = called(here, str(program), "list")
        assert listed == called(here, str(python), "-m", "kerasbench", "list") and "| published | iris_mlp" in listed
        (package,) = called(here, str(python), "-c", "import kerasbench; print(*kerasbench.__path__)").splitlines()
        assert Path(package).is_relative_to(tmp_path)
        # Published figures and all that draws: a page of a result file of this repository is as it is here.
        data = min((ROOT / "results").glob("*.json"), key=lambda file: file.stat().st_size)
        (here / data.name).write_bytes(data.read_bytes())
        called(here, str(program), "report", data.name)
        page = data.with_suffix(".md")
        assert (here / page.name).read_text("utf-8") == page.read_text("utf-8")
        called(here, str(program), "new", ".github/workflows/speed.yml")
        assert sorted(file.name for file in here.rglob("*.yml")) == ["speed-comment.yml", "speed.yml"]
