"""Every extra can be installed where it is meant to be: uv resolves it, for each platform and Python, from wheels.

Nothing is installed. The package index is asked, so these tests run weekly: ``python -m pytest -m weekly``. Those of
``constraints.txt`` ask nobody.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from itertools import product
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from uv import find_uv_bin

PROJECT = Path(__file__).parents[1]
CONSTRAINTS = PROJECT / "constraints.txt"
PINS = [Requirement(line) for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
LINUX, MACOS = "x86_64-unknown-linux-gnu", "aarch64-apple-darwin"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
TIMEOUT_S = 300

# What has to be among the packages, on top of what every platform has.
EVERYWHERE = {
    "all": {"keras", "tensorflow", "torch", "jax"},
    "mlx": {"keras", "keras-mlx", "mlx"},
    "docs": {"properdocs", "mkdocs-materialx"},
    "test": {"pytest"},
}
ON_LINUX = {
    "tensorflow-cpu": {"keras", "tensorflow-cpu"},
    "tensorflow-cuda": {"keras", "tensorflow", "nvidia-cudnn-cu12"},
    "torch-cuda": {"keras", "torch", "triton"},
    "jax-cuda12": {"keras", "jax-cuda12-plugin"},
    "jax-cuda13": {"keras", "jax-cuda13-plugin"},
}
METAL = {"jax-mps": PYTHONS, "tensorflow-metal": ("3.11", "3.12")}  # the plug-ins, and for which Pythons there is one
# TensorFlow has no wheels, and brings nothing along.
NOT_FOR_3_14 = {"tensorflow", "tensorflow-cpu", "nvidia-cudnn-cu12"}
# Each is a part of another one: what can be installed with more besides can be installed.
CONTAINED = {"tensorflow": "all", "torch": "all", "jax": "all", "env": "test", "cluster": "test", "feeds": "test"}
CASES = [*product([LINUX], EVERYWHERE | ON_LINUX, PYTHONS), *product([MACOS], EVERYWHERE, PYTHONS)]


SYSTEMS = {
    LINUX: {"sys_platform": "linux", "platform_machine": "x86_64"},
    MACOS: {"sys_platform": "darwin", "platform_machine": "arm64"},
}


def applying(requirements: Iterable[Requirement], platform: str, python: str, extra: str = "") -> list[Requirement]:
    place = SYSTEMS[platform] | {"python_version": python, "python_full_version": f"{python}.7", "extra": extra}
    return [asked for asked in requirements if asked.marker is None or asked.marker.evaluate(place)]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", [LINUX, MACOS])
def test_whatever_the_project_asks_for_is_pinned_once_and_to_what_it_asks_for(platform: str, python: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    others = [requirement for requirement in map(Requirement, lines) if requirement.name != project["name"]]
    for requirement in applying(others, platform, python):
        pins = [pin for pin in applying(PINS, platform, python) if pin.name == requirement.name]
        assert len(pins) == 1, f"{requirement} on {platform}, {python}: .ci/pins pins it"
        (version,) = pins[0].specifier
        assert requirement.specifier.contains(version.version), f"{requirement}: {pins[0]}"


def test_whatever_is_installed_here_for_the_project_is_pinned_and_so_is_what_that_needs() -> None:
    names, left = set(), ["kerasbench"]
    while left:
        name = canonicalize_name(left.pop())
        try:
            needed = [] if name in names else metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of an extra that this environment does not have
            continue
        names.add(name)
        left += [
            requirement.name
            for requirement in map(Requirement, needed)
            if "extra" not in str(requirement.marker) or name == "kerasbench"
        ]
    assert names - {"kerasbench"} <= {pin.name for pin in PINS} and len(names) > 10


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return variables for uv: a cache that begins empty, and the index of pip's configuration."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    # Of an option that is set twice the environment's comes first, and wins.
    options = [line.partition("=") for line in reversed(listed)]
    told = {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in options}
    settings = {"UV_DEFAULT_INDEX": told.get("index-url"), "SSL_CERT_FILE": told.get("cert")}
    of_pip = {name: value for name, value in settings.items() if value and name not in os.environ}
    return os.environ | OLDEST_MACOS | of_pip | {"UV_CACHE_DIR": str(tmp_path_factory.mktemp("uv"))}


@pytest.mark.weekly
@pytest.mark.parametrize("pinned", [False, True], ids=["newest", "pinned"])
@pytest.mark.parametrize(("platform", "extra", "python"), CASES, ids=["-".join(case) for case in CASES])
def test_an_extra_resolves(platform: str, extra: str, python: str, pinned: bool, variables: dict[str, str]) -> None:
    command = [find_uv_bin(), "pip", "compile", "-q", "--only-binary", ":all:", "--no-annotate", "--no-header"]
    command += ["pyproject.toml", "--extra", extra, "--python-platform", platform, "--python-version", python]
    command += ["--constraint", str(CONSTRAINTS)] if pinned else []
    ended = subprocess.run(
        command, check=False, env=variables, cwd=PROJECT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert ended.returncode == 0, ended.stderr
    packages = {line.partition("==")[0] for line in ended.stdout.splitlines()}
    assert (EVERYWHERE | ON_LINUX)[extra] - (NOT_FOR_3_14 if python == "3.14" else set()) <= packages
    if pinned:
        assert packages <= {requirement.name for requirement in PINS}
    plug_ins = {name for name, pythons in METAL.items() if python in pythons and platform == MACOS}
    assert packages & METAL.keys() == (plug_ins if extra == "all" else set())


def test_what_is_not_resolved_is_a_part_of_what_is() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    told = EVERYWHERE.keys() | ON_LINUX.keys() | CONTAINED.keys()
    assert extras.keys() == told | {"keras"}  # which is in the backends'
    for part, whole in CONTAINED.items():
        (line,) = [asked for asked in extras[whole] if asked.startswith("kerasbench[")]
        assert part in line.removeprefix("kerasbench[").removesuffix("]").split(",")
