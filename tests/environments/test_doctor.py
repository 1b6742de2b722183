"""All rules together: on machines in good order, and what one cause makes several of them say."""

import pytest

from kerasbench.environments.doctor import Severity, diagnose
from tests.environments import cases


@pytest.mark.parametrize("name", ["m1", "cuda", "linux_cpu"])
def test_nothing_is_said_of_a_machine_in_good_order(name: str) -> None:
    assert diagnose(cases.load(name)) == []


def test_the_gravest_is_said_first() -> None:
    facts = cases.gone(cases.load("m1"), "torch")
    facts = cases.installed(cases.in_state(facts, on_battery=True), "jax", {"jax-metal": "0.1.1"})
    assert [finding.severity for finding in diagnose(facts)] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


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


def test_last_words_that_are_the_cause_are_not_said_twice() -> None:
    facts = cases.fails(cases.load("m1"), "jax", "ImportError: no _jax", "Traceback:\nImportError: no _jax\n")
    assert cases.causes(facts) == ["jax does not load: ImportError: no _jax"]


def test_a_backend_that_is_reinstalled_on_a_mac_keeps_a_tensorflow_that_metal_loads_in() -> None:
    facts = cases.fails(cases.load("m1"), "tensorflow", "died from SIGSEGV in phase 'import'")
    wanted = (cases.KERAS, "'tensorflow>=2.18,<2.20'", "tensorflow-metal==1.2.0")
    assert cases.said(facts) == [
        ("error", "tensorflow", cases.pip(facts, "tensorflow", "--force-reinstall", *wanted)),
    ]
