import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from uv import find_uv_bin

from kerasbench import __version__
from tests.real.test_wheel import called

ROOT = Path(__file__).parent.parent


def built(source: Path, kind: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=source)
    (file,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return file


@pytest.mark.processes
def test_the_wheel_that_the_sdist_makes_holds_the_scenarios_the_data_and_the_type_marker(tmp_path: Path) -> None:
    sdist = built(ROOT, "sdist", tmp_path / "sdist")
    assert sdist.name == f"kerasbench-{__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"kerasbench-{__version__}"
    assert {file.name for file in (source / ".github" / "actions").rglob("*.sh")}
    assert (source / "CITATION.cff").exists() and (source / "SECURITY.md").exists()

    names = set(zipfile.ZipFile(built(source, "wheel", tmp_path)).namelist())
    scenarios = {f"kerasbench/{file.relative_to(ROOT)}" for file in (ROOT / "scenarios").rglob("*.py")}
    assert {file.split("/")[2] for file in scenarios if file.count("/") > 2} == {"modern", "native", "tiny"}
    data = {f"kerasbench/data/{name}" for name in ("iris.csv", "scenario.txt", "versus.yml", "comment.yml")}
    published = {f"kerasbench/published/{name}.json" for name in ("figures", "others")}
    assert scenarios | data | published | {"kerasbench/py.typed"} <= names
    assert {f"kerasbench/report/assets/page.{kind}" for kind in ("css", "js")} <= names
    assert not [name for name in names if name.startswith(("tests/", "scenarios/"))]


def test_a_scenario_file_and_a_child_that_lacks_the_parent_s_packages_need_the_standard_library_alone() -> None:
    # -S: no site-packages at all.
    modules = ("worker.serve", "worker.describe", "worker.clock", "protocol.messages", "scenario", "datasets")
    code = "import sys; sys.path.insert(0, '.'); " + "; ".join(f"import kerasbench.{name}" for name in modules)
    code += "; kerasbench.Scenario, kerasbench.Workload, kerasbench.datasets"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, cwd=ROOT)


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
