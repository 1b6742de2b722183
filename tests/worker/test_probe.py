"""Probing, with a framework and a keras that are an empty folder each."""

import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import FIND, Code
from kerasbench.protocol.requests import ProbeRequest
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.serve import probe

GPU = Device("cuda", 0, "NVIDIA H200")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which packages are looked for; JAX's module answers for the framework."""
    jax = backends.get("jax")
    backends.get("tensorflow"), backends.get("torch")
    monkeypatch.setattr(jax, "devices", lambda: [Device("cpu"), GPU])
    monkeypatch.setattr(jax, "versions", lambda: {"jax": "0.10.2"})
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if name != "keras"})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    return tmp_path


def install(site: Path, name: str, version: str, code: str = "") -> None:
    (site / name).mkdir()
    (site / name / "__init__.py").write_text(code)
    place = site / f"{name}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_a_backend_that_loads_says_its_versions_and_what_it_sees(site: Path) -> None:
    install(site, "jax", "0.10.2")
    install(site, "keras", "3.15.1")
    install(site, "numpy", "2.4.6")
    found = probe(ProbeRequest("jax"))
    assert found.versions == {"keras": "3.15.1", "numpy": "2.4.6", "jax": "0.10.2"}
    assert (found.backend, found.devices, found.python) == ("jax", [Device("cpu"), GPU], sys.version.split()[0])


@pytest.mark.parametrize(("there", "missing"), [((), "jax"), (("jax",), "keras")])
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    site: Path, there: tuple[str, ...], missing: str
) -> None:
    for name in there:
        install(site, name, "1.0")
    with pytest.raises(TrialFailure) as error:
        probe(ProbeRequest("jax"))
    failure = error.value.failure
    assert (failure.code, failure.phase) == (Code.UNAVAILABLE, FIND)
    assert failure.cause == f"{missing} is not installed in {sys.prefix}"
    assert failure.remedy == "pip install 'kerasbench[jax]'"


def test_what_a_backend_s_import_raises_passes_through(site: Path) -> None:
    install(site, "jax", "0.10.2", "raise ImportError('libcuda.so.1: cannot open')")
    install(site, "keras", "3.15.1")
    with pytest.raises(ImportError, match="libcuda"):
        probe(ProbeRequest("jax"))
