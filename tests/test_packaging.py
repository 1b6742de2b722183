import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.processes
def test_the_wheel_holds_the_scenarios_the_data_and_the_type_marker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    scenarios = {f"kerasbench/{file.relative_to(ROOT)}" for file in (ROOT / "scenarios").rglob("*.py")}
    assert {file.split("/")[2] for file in scenarios if file.count("/") > 2} == {"modern", "native", "tiny"}
    data = {f"kerasbench/data/{name}" for name in ("iris.csv", "scenario.txt")}
    published = {f"kerasbench/published/{name}.json" for name in ("figures", "others")}
    assert scenarios | data | published | {"kerasbench/py.typed"} <= names
    assert {f"kerasbench/report/assets/page.{kind}" for kind in ("css", "js")} <= names
    assert not [name for name in names if name.startswith(("tests/", "scenarios/"))]


def test_a_child_that_lacks_the_parent_s_packages_can_serve() -> None:
    # -S: no site-packages at all, so that only the standard library is there.
    late = ("worker.describe", "worker.clock", "protocol.messages")
    modules = ("worker.serve", *late, "scenario", "datasets")
    code = "import sys; sys.path.insert(0, '.'); " + "; ".join(f"import kerasbench.{name}" for name in modules)
    subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, cwd=ROOT)
