"""What all tests share: a cache folder and a lock of their own, and scenario files to measure."""

import os
from pathlib import Path

import pytest

from kerasbench.devices import processors

FAULTS = Path(__file__).parent / "faults"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep descriptions out of the user's cache folder."""
    cache = str(tmp_path_factory.mktemp("cache"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: cache)


@pytest.fixture(autouse=True)
def _own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let unit tests run beside a measurement."""
    monkeypatch.setattr("kerasbench.lock.LOCK", tmp_path_factory.mktemp("lock") / "kerasbench.lock")


def pytest_configure() -> None:
    """Keep each of xdist's workers, and its children, on one processor.

    Frameworks that run side by side take threads for all processors each, and their threads wait for one another.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if worker and hasattr(os, "sched_setaffinity"):
        mine = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {mine[int(worker) % processors()]})


@pytest.fixture
def faults() -> Path:
    return FAULTS
