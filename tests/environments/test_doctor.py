"""The doctor: how facts are gathered, what its rules say of a machine, and that its commands can be pasted."""

import dataclasses
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from kerasbench.backends import Target
from kerasbench.cli.preparing import create
from kerasbench.environments import doctor
from kerasbench.environments.doctor import BackendFacts, Facts, Gravity, diagnose
from kerasbench.environments.interpreters import Interpreters
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, Inventory, ProbeReport
from tests.environments import cases, test_apple, test_nvidia
from tests.environments.cases import CREATE


def test_every_backend_is_asked_by_its_own_interpreter_and_none_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def inventory(python: str, tick: object = None) -> Inventory:
        return Inventory("3.12.1", python, "x86_64", {})

    def probe(name: str, python: str, tick: object = None) -> ProbeReport:
        return ProbeReport(name, python, {}, [])

    monkeypatch.setattr(doctor, "look_at_machine", lambda: cases.load("linux_cpu").machine)
    monkeypatch.setattr(questions, "inventory", inventory)
    monkeypatch.setattr(questions, "probe", probe)
    own = tmp_path / "python"
    own.touch(mode=0o755)
    torch, tensorflow = Environment("torch"), Environment("tensorflow")
    named = Interpreters({torch: str(own), tensorflow: "/gone/python"}, {torch: "--python", tensorflow: "/here/k.toml"})
    *found, gone = doctor.gather(["jax", "torch", "tensorflow"], named).backends
    assert found == [
        BackendFacts(name, python, source, inventory(python), probe(name, python))
        for name, python, source in (("jax", sys.executable, ""), ("torch", str(own), "--python"))
    ]
    said = Failure(Code.UNAVAILABLE, "no interpreter at /gone/python", "correct the path in /here/k.toml", "spawn")
    assert (gone.inventory, gone.probe) == (said, said)
    assert (gone.packages, gone.installed, gone.python, gone.sees_gpu) == ({}, False, (), False)


def test_a_target_is_what_a_backend_s_environment_is_for() -> None:
    box, mac = cases.load("cuda"), cases.load("m1")
    assert box.target(box.backends[0]) == Target("linux", "x86_64", (3, 12, 12), True, 13, ())
    assert mac.target(mac.backends[0]) == Target("darwin", "arm64", (3, 12, 12), True, None, (15, 7))
    silent = cases.but(box, "jax", inventory=cases.NOTHING_HEARD)
    assert silent.target(silent.backends[0]) == Target("linux", "x86_64", (), True, 13, ())


# All rules together.


@pytest.mark.parametrize("name", ["m1", "cuda", "linux_cpu"])
def test_nothing_is_said_of_a_machine_in_good_order(name: str) -> None:
    assert diagnose(cases.load(name)) == []


def test_the_gravest_is_said_first() -> None:
    facts = cases.gone(cases.load("m1"), "torch")
    facts = cases.installed(cases.in_state(facts, on_battery=True), "jax", {"jax-metal": "0.1.1"})
    assert [finding.severity for finding in diagnose(facts)] == [Gravity.ERROR, Gravity.WARNING, Gravity.NOTE]


def test_what_one_command_mends_for_several_backends_is_said_once() -> None:
    facts = cases.load("m1")
    for name in ("jax", "tensorflow", "torch"):
        facts = cases.installed(facts, name, {"keras": "2.15.0"})
    assert cases.said(facts) == [
        ("error", "jax, tensorflow, torch", cases.pip(facts, "jax", cases.KERAS)),
    ]


def test_a_backend_that_does_not_load_is_named_with_its_last_words_where_no_rule_knows_why() -> None:
    detail = 'Traceback (most recent call last):\n  File "x.py"\nImportError: libcusparse.so.12: no such file\n'
    facts = cases.fails(cases.load("linux_cpu"), "torch", "died from SIGILL in phase 'import'", detail)
    (error,) = diagnose(facts)
    assert error.cause == (
        "torch does not load: died from SIGILL in phase 'import' (ImportError: libcusparse.so.12: no such file)"
    )
    assert cases.said(facts)[0] == (
        "error", "torch", cases.pip(facts, "torch", "--force-reinstall", cases.KERAS, "'torch>=2.6'"),
    )  # fmt: skip
    facts = cases.fails(cases.load("m1"), "jax", "ImportError: no _jax", "Traceback:\nImportError: no _jax\n")
    assert cases.causes(facts) == ["jax does not load: ImportError: no _jax"]  # the same words only once


def test_a_backend_that_is_reinstalled_on_a_mac_keeps_a_tensorflow_that_metal_loads_in() -> None:
    facts = cases.fails(cases.load("m1"), "tensorflow", "died from SIGSEGV in phase 'import'")
    wanted = (cases.KERAS, "'tensorflow>=2.18,<2.20'", "tensorflow-metal==1.2.0")
    assert cases.said(facts) == [
        ("error", "tensorflow", cases.pip(facts, "tensorflow", "--force-reinstall", *wanted)),
    ]


# What is installed.


def quiet() -> Facts:
    return cases.load("linux_cpu")


def test_an_interpreter_that_does_not_answer_is_an_error_and_nothing_else_is_said_of_it() -> None:
    facts = cases.but(quiet(), "jax", inventory=cases.NOTHING_HEARD, probe=cases.NOTHING_HEARD)
    assert cases.said(facts) == [("error", "jax", "correct the path in --python")]
    assert cases.causes(facts) == ["no interpreter at /gone/python"]


def test_an_interpreter_that_is_too_old_says_so_once_for_all_that_it_runs() -> None:
    remedy = "kerasbench needs an environment of Python 3.11 or newer"
    old = Failure(Code.UNAVAILABLE, "/usr/bin/python3 is Python 3.9", remedy, "import")
    facts = quiet()
    for name in ("jax", "torch"):
        facts = cases.but(facts, name, interpreter="/usr/bin/python3", inventory=old, probe=old)
    assert cases.said(facts) == [("error", "jax, torch", remedy)]


def test_a_python_newer_than_the_wheels_gets_another_environment_and_no_pip_command() -> None:
    facts = cases.but(cases.gone(quiet(), "tensorflow"), "tensorflow", source="kerasbench.toml")
    facts = cases.installed(facts, "tensorflow", {}, python="3.14.1")
    assert cases.said(facts) == [("error", "tensorflow", f"$ {CREATE} tensorflow --interpreter python3.13 --force")]
    assert cases.causes(facts) == ["Python 3.14.1 is too new: tensorflow has wheels for 3.13 and older"]


@pytest.mark.parametrize(("source", "severity"), [("", "note"), ("/home/user/bench/kerasbench.toml", "error")])
def test_a_backend_that_is_missing_is_an_error_only_where_somebody_named_its_interpreter(
    source: str, severity: str
) -> None:
    facts = cases.but(cases.gone(quiet(), "torch"), "torch", source=source)
    assert cases.said(facts) == [(severity, "torch", cases.pip(facts, "torch", cases.KERAS, "'torch>=2.6'"))]
    assert cases.causes(facts) == ["torch is not installed in /home/user/bench/.venvs/torch"]


@pytest.mark.parametrize(
    ("version", "cause"),
    [(None, "keras is not installed beside jax"), ("2.15.0", "keras 2.15.0 is too old"), ("3.11.3", "3.11.3 is too")],
)
def test_a_backend_needs_a_keras_that_kerasbench_knows(version: str | None, cause: str) -> None:
    facts = cases.installed(cases.of(quiet(), "jax"), "jax", {"keras": version})
    assert cases.said(facts) == [("error", "jax", cases.pip(facts, "jax", cases.KERAS))]
    assert cause in cases.causes(facts)[0]


def test_a_nightly_keras_is_one_too() -> None:
    for version, severities in (("3.15.2.dev1", []), ("3.9.0.dev1", ["error"])):
        facts = cases.installed(cases.of(quiet(), "jax"), "jax", {"keras": None, "keras-nightly": version})
        assert [severity for severity, *_ in cases.said(facts)] == severities


@pytest.mark.parametrize(("name", "version"), [("keras", "3.16.0"), ("keras-nightly", "3.16.0.dev2026112503")])
def test_a_keras_that_is_newer_than_what_was_tried_may_be_used_and_is_named(name: str, version: str) -> None:
    facts = cases.installed(cases.of(quiet(), "jax"), "jax", {"keras": None} | {name: version})
    ((severity, _, remedy),) = cases.said(facts)
    assert severity == "warning" and remedy.endswith("-m pip install 'keras==3.15.*'")
    assert cases.causes(facts) == [f"keras {version} is newer than 3.15, the newest that kerasbench was tested with"]


def test_one_keras_for_all_is_the_newest() -> None:
    facts = cases.installed(quiet(), "torch", {"keras": "3.9.2"})
    assert ("error", "torch", cases.pip(facts, "torch", cases.KERAS)) in cases.said(facts)
    facts = cases.installed(cases.installed(quiet(), "torch", {"keras": "3.12.0"}), "jax", {"keras": "3.15.0"})
    assert cases.said(facts) == [
        ("warning", "jax", cases.pip(facts, "jax", "keras==3.15.1")),
        ("warning", "torch", cases.pip(facts, "torch", "keras==3.15.1")),
    ]
    assert cases.causes(facts)[1] == (
        "keras 3.12.0 here and 3.15.1 elsewhere: ratios would compare these too, not the backends alone"
    )


def test_what_was_imported_is_no_fault() -> None:
    """Whatever its distribution is called, and however new its Python is."""
    assert diagnose(cases.installed(quiet(), "tensorflow", {"tensorflow": None, "tensorflow-cpu": "2.21.0"})) == []
    facts = cases.installed(quiet(), "torch", {}, python="3.14.1")
    assert diagnose(facts) == []


# Power, heat, quotas, variables of the shell.


@pytest.mark.parametrize(
    ("different", "cause", "remedy"),
    [
        ({"on_battery": True}, "runs on battery", "plug it in and switch the low-power mode off"),
        ({"busy_share": 0.4}, "40 % of the CPU in use", "close other programs"),
        ({"thermal_level": 2}, "macOS reports thermal pressure, level 2", "let the machine cool down"),
        (
            {"governors": ["powersave"]},
            "frequency governor powersave",
            "$ sudo cpupower frequency-set --governor performance",
        ),
        (
            {"quota_cores": 1.5},
            "a control group allows 1.5 of 16 CPU cores",
            "give the container all CPU cores, or say with the results that it had fewer",
        ),
    ],
)
def test_what_disturbs_a_measurement(different: dict[str, object], cause: str, remedy: str) -> None:
    facts = cases.in_state(cases.load("cuda"), **different)
    assert cases.said(facts) == [("warning", "", remedy)]
    assert cases.causes(facts) == [cause]


def test_variables_that_do_not_reach_a_trial_are_named_and_those_with_a_rule_of_their_own_are_not() -> None:
    set_here = {"CUDA_VISIBLE_DEVICES": "0", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--x"}
    facts = dataclasses.replace(cases.load("cuda"), variables=set_here)
    assert cases.said(facts) == [("note", "", "nothing, or pass them on with --keep-env OMP_NUM_THREADS,XLA_FLAGS")]
    assert cases.causes(facts) == [
        "set in this shell, but not passed to trials, because they change results: "
        "JAX_PLATFORMS, OMP_NUM_THREADS, XLA_FLAGS"
    ]
    set_by_kerasbench = dataclasses.replace(facts, variables={"KERAS_BACKEND": "jax"})
    assert cases.said(set_by_kerasbench) == [("note", "", "")]


# Commands as they can be pasted: the real parsers take them.

BOX, MAC = cases.load("cuda"), cases.load("m1")
SICK = (
    test_nvidia.of_cpu_builds(BOX),
    test_nvidia.with_both_cudnns(BOX),
    cases.sees(test_nvidia.driven_by(BOX, "535.183.06"), "torch"),
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
