"""Every extra can be installed where it is meant to be: uv resolves it, for each platform and Python, from wheels.

Nothing is installed. The package index is asked, so these tests run weekly: ``python -m pytest -m weekly``.
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
LINUX, MACOS = "x86_64-unknown-linux-gnu", "aarch64-apple-darwin"
PYTHONS = ("3.11", "3.12", "3.13")
OLDEST_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
TIMEOUT_S = 300

# What has to be among the packages, on top of what every platform has.
EVERYWHERE = {
    "all": {"keras", "tensorflow", "torch", "jax"},
    "docs": {"mkdocs", "mkdocs-material"},
    "test": {"pytest"},
}
CUDA = {
    "tensorflow-cuda": {"keras", "tensorflow", "nvidia-cudnn-cu12"},
    "torch-cuda": {"keras", "torch", "triton"},
    "jax-cuda12": {"keras", "jax-cuda12-plugin"},
    "jax-cuda13": {"keras", "jax-cuda13-plugin"},
}
METAL = {"jax-mps": PYTHONS, "tensorflow-metal": ("3.11", "3.12")}  # the plug-ins, and for which Pythons there is one
# Each is a part of another one: what can be installed with more besides can be installed.
CONTAINED = {"tensorflow": "all", "torch": "all", "jax": "all", "env": "test", "cluster": "test"}
CASES = [*product([LINUX], EVERYWHERE | CUDA, PYTHONS), *product([MACOS], EVERYWHERE, PYTHONS)]


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return variables for uv: a cache that begins empty, and the index of pip's configuration."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    # Of an option that is set twice the environment's comes first, and wins.
    options = [line.partition("=") for line in reversed(listed)]
    told = {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in options}
    found = {"UV_DEFAULT_INDEX": told.get("index-url"), "SSL_CERT_FILE": told.get("cert")}
    of_pip = {name: value for name, value in found.items() if value and name not in os.environ}
    return os.environ | OLDEST_MACOS | of_pip | {"UV_CACHE_DIR": str(tmp_path_factory.mktemp("uv"))}


@pytest.mark.weekly
@pytest.mark.parametrize(("platform", "extra", "python"), CASES, ids=["-".join(case) for case in CASES])
def test_an_extra_can_be_resolved(platform: str, extra: str, python: str, variables: dict[str, str]) -> None:
    command = [find_uv_bin(), "pip", "compile", "-q", "--only-binary", ":all:", "--no-annotate", "--no-header"]
    command += ["pyproject.toml", "--extra", extra, "--python-platform", platform, "--python-version", python]
    ended = subprocess.run(
        command, check=False, env=variables, cwd=PROJECT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert ended.returncode == 0, ended.stderr
    packages = {line.partition("==")[0] for line in ended.stdout.splitlines()}
    assert (EVERYWHERE | CUDA)[extra] <= packages
    plug_ins = {name for name, pythons in METAL.items() if python in pythons and platform == MACOS}
    assert packages & METAL.keys() == (plug_ins if extra == "all" else set())


def test_what_is_not_resolved_is_a_part_of_what_is() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    assert extras.keys() - {"keras"} == EVERYWHERE.keys() | CUDA.keys() | CONTAINED.keys()  # keras is in the backends'
    for part, whole in CONTAINED.items():
        (line,) = [one for one in extras[whole] if one.startswith("kerasbench[")]
        assert part in line.removeprefix("kerasbench[").removesuffix("]").split(",")
