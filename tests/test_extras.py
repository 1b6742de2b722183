"""Every extra can be installed where it is meant to be: uv resolves it, for each platform and Python, from wheels.

One that is a part of another one is not resolved by itself.
"""

import tomllib
from itertools import product
from pathlib import Path

import pytest

from tests.resolver import INDEX, LINUX, MACOS, PYTHONS, answer, case

PROJECT = Path(__file__).parents[1]

# What has to be among the packages, on top of what every platform has.
EVERYWHERE = {
    "all": {"keras", "tensorflow", "torch", "jax"},
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
# Each a part of another one: what can be installed with more besides can be installed.
CONTAINED = {"tensorflow": "all", "torch": "all", "jax": "all", "plot": "test"}
CASES = [*product([LINUX], EVERYWHERE | CUDA, PYTHONS), *product([MACOS], EVERYWHERE, PYTHONS)]


@pytest.mark.real
@pytest.mark.parametrize(("platform", "extra", "python"), CASES, ids=[case(*one) for one in CASES])
def test_an_extra_can_be_resolved(platform: str, extra: str, python: str) -> None:
    if (reached := answer(INDEX)).returncode:
        pytest.skip(f"no extra was resolved: uv has no answer from the package index: {reached.stderr.strip()[-500:]}")
    ended = answer(case(platform, extra, python))
    assert ended.returncode == 0, ended.stderr
    packages = {line.partition("==")[0] for line in ended.stdout.splitlines()}
    assert (EVERYWHERE | CUDA)[extra] <= packages
    plug_ins = {name for name, pythons in METAL.items() if python in pythons and platform == MACOS}
    assert packages & METAL.keys() == (plug_ins if extra == "all" else set())


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found


def test_no_extra_is_forgotten() -> None:
    # keras is a part of the backends'
    assert extras().keys() - {"keras"} == EVERYWHERE.keys() | CUDA.keys() | CONTAINED.keys()


@pytest.mark.parametrize("extra", CONTAINED)
def test_what_is_not_resolved_is_a_part_of_what_is(extra: str) -> None:
    (line,) = [one for one in extras()[CONTAINED[extra]] if one.startswith("kerasbench[")]
    assert extra in line.removeprefix("kerasbench[").removesuffix("]").split(",")
