"""The public face: what `import kerasbench` gives, and what it does not bring along."""

import subprocess
import sys
from pathlib import Path

import pytest

import kerasbench

ROOT = Path(__file__).parent.parent
BARE = """
import sys
import kerasbench
kerasbench.Scenario, kerasbench.Workload, kerasbench.datasets
found = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"kerasbench", "__main__"}
assert not found & {"numpy", "keras", "msgspec", "psutil", "rich", "click", "filelock"}, found
assert "kerasbench.api" not in sys.modules
"""


def test_what_is_exported() -> None:
    exported = {
        "Workload",
        "Scenario",
        "ScenarioError",
        "compare",
        "datasets",
        "explain",
        "load",
        "run",
        "sweep",
        "versus",
    }
    assert set(kerasbench.__all__) == exported
    assert all(hasattr(kerasbench, name) for name in exported)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kerasbench.nonsense


def test_a_scenario_file_s_import_brings_the_standard_library_alone() -> None:
    subprocess.run([sys.executable, "-c", BARE], check=True, cwd=ROOT)
