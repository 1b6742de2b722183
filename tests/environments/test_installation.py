"""Rules about what is installed."""

import pytest

from kerasbench.environments.doctor import diagnose
from kerasbench.environments.facts import Facts
from kerasbench.protocol.messages import Code, Failure
from tests.environments import cases
from tests.environments.cases import CREATE, KERAS, pip, said


def quiet() -> Facts:
    return cases.load("linux_cpu")


def test_an_interpreter_that_does_not_answer_is_an_error_and_nothing_else_is_said_of_it() -> None:
    facts = cases.but(quiet(), "jax", inventory=cases.NOTHING_HEARD, probe=cases.NOTHING_HEARD)
    assert said(facts) == [("error", "jax", "mend the path in --python")]
    assert cases.causes(facts) == ["no interpreter at /gone/python"]


def test_an_interpreter_that_is_too_old_says_so_once_for_all_that_it_runs() -> None:
    remedy = "kerasbench needs an environment of Python 3.11 or newer"
    old = Failure(Code.UNAVAILABLE, "/usr/bin/python3 is Python 3.9", remedy, "import")
    facts = quiet()
    for name in ("jax", "torch"):
        facts = cases.but(facts, name, interpreter="/usr/bin/python3", inventory=old, probe=old)
    assert said(facts) == [("error", "jax, torch", remedy)]


def test_a_python_newer_than_the_wheels_gets_another_environment_and_no_pip_command() -> None:
    facts = cases.but(cases.gone(quiet(), "tensorflow"), "tensorflow", source="kerasbench.toml")
    facts = cases.installed(facts, "tensorflow", {}, python="3.14.1")
    assert said(facts) == [("error", "tensorflow", f"$ {CREATE} tensorflow --interpreter python3.13 --force")]
    assert cases.causes(facts) == ["Python 3.14.1 is newer than the frameworks' wheels"]


def test_a_python_newer_than_the_wheels_is_no_fault_where_the_backend_is_there_all_the_same() -> None:
    facts = cases.installed(quiet(), "torch", {}, python="3.14.1", tags=["cp314-cp314-manylinux_2_28_x86_64"])
    assert diagnose(facts) == []


@pytest.mark.parametrize(("source", "severity"), [("", "note"), ("/home/user/bench/kerasbench.toml", "error")])
def test_a_backend_that_is_missing_is_an_error_only_where_somebody_named_its_interpreter(
    source: str, severity: str
) -> None:
    facts = cases.but(cases.gone(quiet(), "torch"), "torch", source=source)
    assert said(facts) == [(severity, "torch", pip(facts, "torch", KERAS, "'torch>=2.6'"))]
    assert cases.causes(facts) == ["torch is not installed in /home/user/bench/.venvs/torch"]


def test_a_path_with_a_space_is_quoted() -> None:
    facts = cases.but(cases.gone(quiet(), "jax"), "jax", interpreter="/home/user/my bench/bin/python")
    ((_, _, remedy),) = said(facts)
    assert remedy == f"$ '/home/user/my bench/bin/python' -m pip install {KERAS} 'jax>=0.5'"


def test_what_was_imported_is_installed_whatever_its_distribution_is_called() -> None:
    assert diagnose(cases.installed(quiet(), "tensorflow", {"tensorflow": None, "tensorflow-cpu": "2.21.0"})) == []


@pytest.mark.parametrize(
    ("version", "cause"),
    [(None, "keras is not installed beside jax"), ("2.15.0", "keras 2.15.0 is too old"), ("3.11.3", "3.11.3 is too")],
)
def test_a_backend_needs_a_keras_that_kerasbench_knows(version: str | None, cause: str) -> None:
    facts = cases.installed(cases.of(quiet(), "jax"), "jax", {"keras": version})
    assert said(facts) == [("error", "jax", pip(facts, "jax", KERAS))]
    assert cause in cases.causes(facts)[0]


def test_one_keras_for_all_is_the_newest() -> None:
    facts = cases.installed(quiet(), "torch", {"keras": "3.9.2"})
    assert ("error", "torch", pip(facts, "torch", KERAS)) in said(facts)
    facts = cases.installed(cases.installed(quiet(), "torch", {"keras": "3.12.0"}), "jax", {"keras": "3.15.0"})
    assert said(facts) == [
        ("warning", "jax", pip(facts, "jax", "keras==3.15.1")),
        ("warning", "torch", pip(facts, "torch", "keras==3.15.1")),
    ]
    assert cases.causes(facts)[1] == (
        "keras 3.12.0 here and 3.15.1 elsewhere: columns would differ by more than backends"
    )


def test_an_environment_whose_python_was_replaced_is_installed_anew() -> None:
    """The wheel is of the Python that was there before, as after ``brew upgrade`` or a --target folder."""
    facts = cases.installed(cases.of(quiet(), "tensorflow"), "tensorflow", {}, python="3.12.12")
    facts = cases.fails(facts, "tensorflow", "ImportError: no module named _pywrap_tensorflow_internal")
    again = pip(facts, "tensorflow", "--force-reinstall", KERAS, "'tensorflow>=2.18'")
    assert said(facts) == [("error", "tensorflow", again)]
    assert cases.causes(facts) == ["tensorflow was built for cp311-cp311-manylinux_2_27_x86_64, this Python is 3.12.12"]


@pytest.mark.parametrize(
    "tag", ["cp312-cp312-manylinux_2_28_x86_64", "cp39-abi3-any", "py3-none-any", "py2.py3-none-any", "cp311.cp312-x-y"]
)
def test_wheels_that_fit_python_3_12(tag: str) -> None:
    facts = cases.installed(quiet(), "torch", {}, python="3.12.12", tags=[tag])
    assert diagnose(facts) == []
