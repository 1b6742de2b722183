"""Every extra can be installed where it is meant to be: uv resolves it, for each platform and Python, from wheels.

Nothing is installed. What one resolution has fetched the others find in a cache of this session, which begins empty.
"""

import os
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

import pytest
from uv import find_uv_bin

PROJECT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
MACOS, LINUX = "aarch64-apple-darwin", "x86_64-unknown-linux-gnu"
OLDEST_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
TIMEOUT_S = 300

# What has to be among the packages, on top of what every platform has.
EVERYWHERE = {
    "all": {"keras", "tensorflow", "torch", "jax"},
    "tensorflow": {"keras", "tensorflow"},
    "torch": {"keras", "torch"},
    "jax": {"keras", "jax"},
    "plot": {"matplotlib"},
    "docs": {"mkdocs", "mkdocs-material"},
    "test": {"pytest", "matplotlib"},
}
CUDA = {
    "tensorflow-cuda": {"keras", "tensorflow", "nvidia-cudnn-cu12"},
    "torch-cuda": {"keras", "torch", "triton"},
    "jax-cuda12": {"keras", "jax-cuda12-plugin"},
    "jax-cuda13": {"keras", "jax-cuda13-plugin"},
}
METAL = {"jax-mps": PYTHONS, "tensorflow-metal": ("3.11", "3.12")}  # the plug-ins, and for which Pythons there is one
CASES = [*product([LINUX], EVERYWHERE | CUDA, PYTHONS), *product([MACOS], EVERYWHERE, PYTHONS)]


@pytest.fixture(scope="session")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return uv's environment, with the cache that all workers share; skip where the package index does not answer."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    found = os.environ | OLDEST_MACOS | _index() | {"UV_CACHE_DIR": str(shared / "uv")}
    asked = compile_("-", "--no-deps", variables=found, requirements="packaging\n")
    if asked.returncode:
        pytest.skip(f"no extra was resolved: uv has no answer from the package index: {asked.stderr.strip()[-500:]}")
    return found


@pytest.mark.real
@pytest.mark.parametrize(("platform", "extra", "python"), CASES)
def test_an_extra_can_be_resolved(platform: str, extra: str, python: str, variables: dict[str, str]) -> None:
    wanted = ["pyproject.toml", "--extra", extra, "--python-platform", platform, "--python-version", python]
    ended = compile_(*wanted, "--offline", variables=variables)
    if ended.returncode:
        ended = compile_(*wanted, variables=variables)
    assert ended.returncode == 0, ended.stderr
    packages = {line.partition("==")[0] for line in ended.stdout.splitlines()}
    assert (EVERYWHERE | CUDA)[extra] <= packages
    plug_ins = {name for name, pythons in METAL.items() if python in pythons and platform == MACOS}
    expected = plug_ins if extra == "all" else {name for name in plug_ins if name.startswith(f"{extra}-")}
    assert packages & METAL.keys() == expected


def test_no_extra_is_forgotten() -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras.keys() - {"keras"} == EVERYWHERE.keys() | CUDA.keys()  # keras is a part of the backends'


def compile_(
    *arguments: str, variables: dict[str, str], requirements: str | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [find_uv_bin(), "pip", "compile", "-q", "--only-binary", ":all:", "--no-annotate", "--no-header"]
    return subprocess.run(
        [*command, *arguments],
        check=False,
        env=variables,
        input=requirements,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def _index() -> dict[str, str]:
    """Return where pip is told to look, in uv's variables: uv reads no pip.conf."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True)
    # Of an option that is set twice the environment's comes first, and wins.
    options = [line.partition("=") for line in reversed(listed.stdout.splitlines())]
    told = {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in options}
    found = {"UV_DEFAULT_INDEX": told.get("index-url"), "SSL_CERT_FILE": told.get("cert")}
    return {name: value for name, value in found.items() if value and name not in os.environ}
