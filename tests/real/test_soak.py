"""A planted leak and a planted slow-down are found, and a clean run is called clean."""

from pathlib import Path

import pytest

from kerasbench.analysis.soak import Soak
from kerasbench.api import soak

pytestmark = [pytest.mark.real, pytest.mark.weekly]  # minutes: benchmarks/soaks.py does the same for longer


def soaked(file: Path, folder: Path) -> Soak:
    (found,) = soak(file, backends="jax", devices="cpu", minutes=0.5, results=folder).soaks
    return found


def test_a_planted_leak_is_found(faults: Path, tmp_path: Path) -> None:
    found = soaked(faults / "leaks.py", tmp_path)
    assert found.grows and found.memory is not None
    assert found.memory.low <= 1.02 * (64 << 10) and found.memory.high >= 0.98 * (64 << 10)


def test_a_clean_run_is_called_clean(faults: Path, tmp_path: Path) -> None:
    found = soaked(faults / "fine.py", tmp_path)
    assert not found.grows and not found.slows
    assert found.memory is not None and found.memory.high <= 16 << 10
