import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kerasbench import __version__
from kerasbench.pages import manual

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
    assert {file.split("/")[2] for file in scenarios if file.count("/") > 2} == {
        "feeds",
        "layers",
        "modern",
        "native",
        "tiny",
    }
    data = {f"kerasbench/data/{name}" for name in ("iris.csv", "scenario.txt", "versus.yml", "comment.yml")}
    published = {f"kerasbench/published/{name}" for name in ("figures.json", "others.json", "machines.md")}
    assert scenarios | data | published | {"kerasbench/py.typed"} <= names
    assert {name for name in names if "/docs/" in name} == {f"kerasbench/docs/{name}.md" for name in manual.pages()}
    assert {f"kerasbench/report/assets/page.{kind}" for kind in ("css", "js")} <= names
    assert not [name for name in names if name.startswith(("tests/", "scenarios/"))]


def test_a_scenario_file_and_a_child_that_lacks_the_parent_s_packages_need_the_standard_library_alone() -> None:
    # -S: no site-packages at all.
    modules = ("worker.serve", "worker.describe", "worker.clock", "protocol.messages", "scenario", "datasets")
    code = "import sys; sys.path.insert(0, '.'); " + "; ".join(f"import kerasbench.{name}" for name in modules)
    code += "; kerasbench.Scenario, kerasbench.Workload, kerasbench.datasets"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, cwd=ROOT)
