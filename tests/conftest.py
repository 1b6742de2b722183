"""What all tests share: a cache folder and a lock of their own, and scenario files to measure."""

from pathlib import Path

import pytest

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


@pytest.fixture
def faults() -> Path:
    return FAULTS
