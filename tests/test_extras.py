"""Every extra can be installed where it is meant to be: uv resolves it, for each platform and Python, from wheels."""

import tomllib
from itertools import product
from pathlib import Path

import pytest

from tests.resolver import INDEX, LINUX, MACOS, PYTHONS, answer, case

PROJECT = Path(__file__).parents[1]

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
    expected = plug_ins if extra == "all" else {name for name in plug_ins if name.startswith(f"{extra}-")}
    assert packages & METAL.keys() == expected


def test_no_extra_is_forgotten() -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras.keys() - {"keras"} == EVERYWHERE.keys() | CUDA.keys()  # keras is a part of the backends'
