"""What is installed, told by the files of an environment alone."""

import platform
import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.protocol.requests import InventoryRequest
from kerasbench.worker import serve


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the only one in which packages are looked for."""
    backends.get("jax")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    return tmp_path


def install(folder: Path, name: str, metadata: str | None, wheel: str = "") -> None:
    place = folder / f"{name}.dist-info"
    place.mkdir(parents=True)
    if metadata is not None:
        (place / "METADATA").write_text(metadata)
    if wheel:
        (place / "WHEEL").write_text(wheel)


def test_versions_stand_by_normalised_names_of_which_the_first_on_the_path_counts(path: Path) -> None:
    install(path / "first", "jax-0.10.2", "Metadata-Version: 2.4\nName: jax\nVersion: 0.10.2\n")
    install(path / "second", "jax-0.4.0", "Metadata-Version: 2.4\nName: jax\nVersion: 0.4.0\n")
    install(path / "second", "ml_dtypes-0.6.0", "Metadata-Version: 2.4\nName: Ml_Dtypes\nVersion: 0.6.0\n")
    found = serve.inventory(InventoryRequest("jax"))
    assert found.packages == {"jax": "0.10.2", "ml-dtypes": "0.6.0"}
    assert (found.python, found.prefix) == (platform.python_version(), sys.prefix)
    assert found.architecture == platform.machine()


def test_what_is_broken_is_passed_over(path: Path) -> None:
    install(path / "first", "~ax-0.10.2", None)
    install(path / "first", "half-1.0", "Metadata-Version: 2.4\nName: half\n")
    install(path / "first", "whole-1.0", "Metadata-Version: 2.4\nName: whole\nVersion: 1.0\n")
    assert serve.inventory(InventoryRequest("jax")).packages == {"whole": "1.0"}


def test_the_backend_s_wheel_tells_for_what_it_was_built(path: Path) -> None:
    wheel = (
        "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp39-abi3-linux_x86_64\nTag: cp39-abi3-manylinux1_x86_64\n"
    )
    install(path / "first", "jax-0.10.2", "Metadata-Version: 2.4\nName: jax\nVersion: 0.10.2\n", wheel)
    assert serve.inventory(InventoryRequest("jax")).tags == ["cp39-abi3-linux_x86_64", "cp39-abi3-manylinux1_x86_64"]
    assert serve.inventory(InventoryRequest("torch")).tags == []
