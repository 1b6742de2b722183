"""What pip is asked for agrees with the extras of pyproject.toml, which say the same to users."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kerasbench import backends
from kerasbench.backends import Target, Version
from kerasbench.environments.venvs import KERAS, NEWEST_PYTHON, release

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PYTHONS = ((3, 11, 14), (3, 12, 12), (3, 13, 9))
LINUX, MAC = ("linux", "x86_64"), ("darwin", "arm64")
SEQUOIA = (15, 7)


def of_extra(name: str, target: Target) -> Iterator[str]:
    """Return what an extra installs on a target, those that it includes taken apart."""
    markers = {
        "sys_platform": target.system,
        "platform_machine": target.architecture,
        "python_version": ".".join(map(str, target.python[:2])),
        "python_full_version": ".".join(map(str, target.python)),
    }
    for line in EXTRAS[name]:
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate(markers):
            continue
        if wanted.name == PROJECT["name"]:
            for extra in wanted.extras:
                yield from of_extra(extra, target)
        else:
            wanted.marker = None
            yield str(wanted)


def of_backend(name: str, target: Target) -> set[str]:
    return {str(Requirement(line)) for line in (*KERAS, *backends.get(name).requirements(target))}


def target(platform: tuple[str, str], python: Version, gpu: bool = True, cuda: int | None = None) -> Target:
    system, architecture = platform
    return Target(system, architecture, python, gpu, cuda, SEQUOIA if platform == MAC else ())


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", [LINUX, MAC])
@pytest.mark.parametrize("backend", backends.names())
def test_a_backend_s_extra(backend: str, platform: tuple[str, str], python: Version) -> None:
    here = target(platform, python)
    assert of_backend(backend, here) == set(of_extra(backend, here))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("backend", "cuda", "extra"),
    [
        ("tensorflow", 12, "tensorflow-cuda"),
        ("tensorflow", 13, "tensorflow-cuda"),
        ("torch", 13, "torch-cuda"),
        ("jax", 12, "jax-cuda12"),
        ("jax", 13, "jax-cuda13"),
    ],
)
def test_a_backend_s_extra_for_cuda(backend: str, cuda: int, extra: str, python: Version) -> None:
    here = target(LINUX, python, cuda=cuda)
    assert of_backend(backend, here) == set(of_extra(extra, here))


@pytest.mark.parametrize("backend", backends.names())
def test_the_cpu_alone_takes_no_notice_of_a_card(backend: str) -> None:
    assert of_backend(backend, target(LINUX, PYTHONS[1], gpu=False, cuda=13)) == of_backend(
        backend, target(LINUX, PYTHONS[1])
    )


def test_torch_for_a_driver_that_speaks_cuda_12_is_older_than_its_cuda_13_wheels() -> None:
    assert backends.get("torch").requirements(target(LINUX, PYTHONS[1], cuda=12)) == ["torch>=2.6,<2.11"]


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_a_mac_s_cpu_alone_gets_no_plug_in(backend: str) -> None:
    found = " ".join(backends.get(backend).requirements(target(MAC, PYTHONS[1], gpu=False)))
    assert "mps" not in found
    assert "metal" not in found


@pytest.mark.parametrize("macos", [(), (13, 6)])
def test_jax_mps_has_no_wheel_before_macos_14(macos: Version) -> None:
    assert backends.get("jax").requirements(Target(*MAC, PYTHONS[1], macos=macos)) == ["jax>=0.5"]


def test_keras_and_the_newest_python_are_those_of_the_project() -> None:
    assert {str(Requirement(line)) for line in KERAS} == {str(Requirement(line)) for line in EXTRAS["keras"]}
    major, minor = NEWEST_PYTHON
    assert f"<{major}.{minor + 1}" in PROJECT["requires-python"]


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("2.13.0+cpu", (2, 13, 0)), ("3.16.0rc1", (3, 16, 0)), ("0.12.0.1", (0, 12, 0, 1)), ("13", (13,)), ("", ()),
     ("nightly", ())],
)  # fmt: skip
def test_the_numbers_that_a_version_begins_with(version: str, numbers: Version) -> None:
    assert release(version) == numbers
