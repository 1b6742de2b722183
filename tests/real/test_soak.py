"""A planted leak and a planted slow-down are case, and a clean run is called clean."""

from pathlib import Path

import pytest

from kerasbench.modes.soak.trend import Soak
from kerasbench.api import soak

pytestmark = [pytest.mark.real, pytest.mark.weekly]  # minutes: benchmarks/soaks.py does the same for longer


def soaked(file: Path, folder: Path) -> Soak:
    (case,) = soak(file, backends="jax", devices="cpu", minutes=0.5, results=folder).soaks
    return case


def test_a_planted_leak_is_found(faults: Path, tmp_path: Path) -> None:
    case = soaked(faults / "leaks.py", tmp_path)
    assert case.grows and case.memory is not None
    assert case.memory.low <= 1.02 * (64 << 10) and case.memory.high >= 0.98 * (64 << 10)


def test_a_clean_run_is_called_clean(faults: Path, tmp_path: Path) -> None:
    case = soaked(faults / "fine.py", tmp_path)
    assert not case.grows and not case.slows
    assert case.memory is not None and case.memory.high <= 16 << 10
