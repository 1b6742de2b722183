"""Commands as they can be pasted: the real parsers take them."""

import re
import shlex
import sys
from typing import Any

import click
import pytest
from packaging.requirements import Requirement

from kerasbench.cli.commands import create
from kerasbench.environments import doctor
from kerasbench.environments.doctor import diagnose
from kerasbench.environments.facts import Facts
from tests.environments import cases, test_apple, test_nvidia

BOX, MAC = cases.load("cuda"), cases.load("m1")
SICK = (
    test_nvidia.of_cpu_builds(BOX),
    test_nvidia.with_both_cudnns(BOX),
    cases.sees(test_nvidia.driven_by(BOX, "535.183.06"), "torch"),
    cases.installed(BOX, "jax", {"jax-cuda13-plugin": "0.11.0"}),
    cases.gone(BOX, "jax"),
    cases.gone(BOX, "tensorflow"),
    cases.installed(BOX, "torch", {"keras": "3.12.0"}),
    cases.fails(BOX, "torch", "ImportError"),
    cases.in_state(BOX, governors=["powersave"]),
    cases.installed(MAC, "tensorflow", {"tensorflow": "2.21.0"}),
    cases.installed(MAC, "jax", {"jax": "0.12.0"}),
    cases.sees(cases.installed(MAC, "jax", {"jax-mps": None}), "jax"),
    cases.installed(MAC, "jax", {"jax-metal": "0.1.1"}),
    test_apple.on_python_3_13(MAC),
)


def commands(facts: Facts) -> list[list[str]]:
    return [shlex.split(one.remedy) for one in diagnose(facts) if one.is_command]


@pytest.mark.parametrize("facts", SICK)
def test_every_command_is_one_that_its_program_takes(facts: Facts) -> None:
    found = commands(facts)
    assert found
    for words in found:
        if words[1:4] == ["-m", "kerasbench", "env"]:
            assert words[0] == sys.executable
            parse(words[3:])
        elif words[1:4] == ["-m", "pip", "install"]:
            assert all(Requirement(word) for word in words[4:] if not re.fullmatch("-U|--force-reinstall", word))
        else:
            assert words[0] == "sudo"


def parse(arguments: list[str]) -> dict[str, Any]:
    """Have the command line's own parser read ``env create ...``, without executing it."""
    assert arguments[:2] == ["env", "create"]
    given: dict[str, Any] = create.make_context("create", arguments[2:]).params
    return given


def test_an_environment_s_command_means_what_it_says() -> None:
    words = shlex.split(doctor.create("torch", "--cuda", "--interpreter", "/my python/bin/python3.12"))
    given = parse(words[3:])
    assert (list(given["backends"]), given["cuda"], given["cpu"]) == (["torch"], True, False)
    assert (given["interpreter"], given["force"]) == ("/my python/bin/python3.12", True)


def test_a_parser_that_is_asked_for_nonsense_refuses() -> None:
    with pytest.raises(click.ClickException):
        parse(["env", "create", "--backends", "torch"])


def test_paths_and_bounds_are_quoted() -> None:
    assert doctor.pip("/a b/python", "install", "jax[cuda13]>=0.7") == (
        "'/a b/python' -m pip install 'jax[cuda13]>=0.7'"
    )
