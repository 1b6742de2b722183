"""The built wheel serves a user who has no checkout: measuring, a report, and a scenario of their own."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from uv import find_uv_bin

from kerasbench import __version__
from kerasbench.plan import catalog
from kerasbench.results.store import load

pytestmark = pytest.mark.real

ROOT, UV = Path(__file__).parents[2], find_uv_bin()
SHORTLY = ["--backend", "jax", "--device", "cpu", "--quick", "--wait", "--results", "results"]


def called(folder: Path, *command: object, **more: object) -> str:
    """Run a program in a folder, without anything that would lead to the checkout; return what it prints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {name: str(value) for name, value in more.items()}
    words = list(map(str, command))
    ended = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_user_without_a_checkout_measures_a_scenario_of_their_own_and_reports(tmp_path: Path) -> None:
    called(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    fresh = tmp_path / "fresh"
    called(tmp_path, UV, "venv", "-q", "--offline", "--python", sys.executable, fresh)
    # It sees the other packages of the tests' own, but no editable kerasbench: .pth files there are not read.
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kerasbench, python = fresh / "bin" / "kerasbench", fresh / "bin" / "python"
    called(tmp_path, UV, "pip", "install", "-q", "--offline", "--no-deps", "--python", python, wheel)

    page = (ROOT / "docs" / "your-model.md").read_text("utf-8")
    scenario = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert scenario is not None and "Scenario(" in scenario[1]
    (tmp_path / "mine.py").write_text(scenario[1], "utf-8")
    assert "| mine " in called(tmp_path, kerasbench, "--scenario", "mine.py", *SHORTLY)
    (data,) = (tmp_path / "results").glob("*.json")
    assert [trial.failure for trial in load(data).trials] == [None]

    assert called(tmp_path, kerasbench, "report", "results") and (tmp_path / "results" / "README.md").exists()
    look = "import kerasbench; print(repr(kerasbench.load('results'))); from kerasbench.plan import catalog; "
    look += "print(*catalog.builtin_files())"
    *said, files = called(tmp_path, python, "-c", look).splitlines()
    assert any("mine: JAX takes " in line for line in said)
    assert len(files.split()) == len(catalog.builtin_files())
    assert all(Path(file).is_relative_to(fresh) for file in files.split())


@pytest.mark.weekly
def test_a_release_passes_twine_and_works_alone_however_it_is_installed(tmp_path: Path) -> None:
    release = tmp_path / "dist"
    called(ROOT, UV, "build", "-q", "--python", sys.executable, "--out-dir", release)
    files = wheel, _ = sorted(release.glob("kerasbench-*"))
    assert [file.name for file in files] == [
        f"kerasbench-{__version__}-py3-none-any.whl",
        f"kerasbench-{__version__}.tar.gz",
    ]
    called(tmp_path, UV, "tool", "run", "twine", "check", "--strict", *files)

    pip, pipx, tool = tmp_path / "pip", tmp_path / "pipx", tmp_path / "tool"
    called(tmp_path, sys.executable, "-m", "venv", pip)
    called(tmp_path, pip / "bin" / "python", "-m", "pip", "install", "-q", wheel)
    places = {"PIPX_HOME": pipx, "PIPX_BIN_DIR": pipx / "bin", "PIPX_DEFAULT_PYTHON": sys.executable}
    called(tmp_path, UV, "tool", "run", "pipx", "install", wheel, **places)
    places = {"UV_TOOL_DIR": tool, "UV_TOOL_BIN_DIR": tool / "bin"}
    called(tmp_path, UV, "tool", "install", "--python", sys.executable, wheel, **places)
    for way, environment in ((pip, pip), (pipx, pipx / "venvs" / "kerasbench"), (tool, tool / "kerasbench")):
        program, python = way / "bin" / "kerasbench", environment / "bin" / "python"
        here = tmp_path / f"in-{way.name}"
        here.mkdir()
        assert called(here, program, "--version") == f"kerasbench {__version__}\n"
        # The same program, and none of it is of this checkout.
        listed = called(here, program, "list")
        assert listed == called(here, python, "-m", "kerasbench", "list") and "| published | iris_mlp" in listed
        (package,) = called(here, python, "-c", "import kerasbench; print(*kerasbench.__path__)").splitlines()
        assert Path(package).is_relative_to(tmp_path)
        # Published figures and all that draws: a page of a result file of this repository is as it is here.
        data = min((ROOT / "results").glob("*.json"), key=lambda file: file.stat().st_size)
        (here / data.name).write_bytes(data.read_bytes())
        called(here, program, "report", data.name)
        page = data.with_suffix(".md")
        assert (here / page.name).read_text("utf-8") == page.read_text("utf-8")
        called(here, program, "new", ".github/workflows/speed.yml")
        assert sorted(file.name for file in here.rglob("*.yml")) == ["speed-comment.yml", "speed.yml"]
