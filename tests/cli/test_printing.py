import dataclasses
import sys
from typing import Any

import pytest

from kerasbench.cli import printing
from kerasbench.environments.doctor import Facts, diagnose
from kerasbench.plan import catalog
from kerasbench.plan.catalog import Entry
from kerasbench.text import wrapped
from tests import made
from tests.environments import cases


def entry(name: str = "dense", suite: str = "tiny", **workload: Any) -> Entry:
    made_entry = dataclasses.replace(made.entry(name, ("default", "tiny")), suite=suite)
    first, second = made_entry.description.workloads
    known = dataclasses.replace(first, parameters=78_666, operations=2_400_313_344, **workload)
    return made.changed(made_entry, description={"workloads": [known, second]})


def test_a_line_for_each_workload_has_its_numbers_and_below_it_what_it_is() -> None:
    assert printing.as_table([entry(large=True), entry("conv", "layers")], 80).splitlines() == [
        "Suite tiny",
        "scenario    parameters  batch  steps  epochs  operations/step",
        "dense           78,666     32    100       3            2.4 G",
        "dense/tiny           –     32    100       3                –",
        "    dense in one line. For a GPU: default.",
        "",
        "Suite layers",
        "scenario    parameters  batch  steps  epochs  operations/step",
        "conv            78,666     32    100       3            2.4 G",
        "conv/tiny            –     32    100       3                –",
        "    conv in one line.",
    ]


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_what_list_and_doctor_print_is_as_wide_as_the_terminal(columns: int) -> None:
    scenarios = [*catalog.describe(catalog.builtin_files(), sys.executable)]
    facts = cases.fails(cases.load("cuda"), "jax", "ImportError: " + "something of it is missing, " * 9)
    texts = [printing.as_table(scenarios, columns), wrapped(text_of(facts), columns)]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("    $ ")]
    assert max(map(len, lines)) <= columns and any(len(line) > columns - 9 for line in lines)


def test_operations_have_three_digits() -> None:
    counts = (812, 1_500, 2_837_952, 7_000_000_000_000, 9_277_242_900_480)
    assert [printing.operations(count) for count in counts] == ["812", "1.5 k", "2.84 M", "7 T", "9.28 T"]


def text_of(facts: Facts) -> str:
    return printing.diagnosis(facts, diagnose(facts))


def test_a_machine_has_its_lines_for_each_backend_and_is_said_to_be_in_good_order() -> None:
    text = text_of(cases.load("m1"))
    assert text.startswith("Apple M1, 8 logical CPUs, 8 GiB, Apple M1 (7 cores), Darwin 24.6.0 arm64\n")
    assert text.endswith("\n\nNothing is wrong.")
    assert "jax: jax 0.11.2, jax-mps 0.11.1" in text and "    devices: cpu, gpu (Apple M1 (mps))" in text
    assert "/bin/python (this interpreter)" in text
    named = text_of(cases.load("cuda"))  # interpreters that a file names
    assert "NVIDIA H200 (driver 580.95.05)" in named.splitlines()[0]
    assert "/bench/.venvs/torch/bin/python (/home/user/bench/kerasbench.toml)" in named


def test_a_finding_has_its_remedy_below_it_a_command_as_a_shell_takes_it() -> None:
    m1 = cases.load("m1")
    assert text_of(cases.gone(m1, "torch")).endswith(
        "note: torch: torch is not installed in /Users/user/bench/.venv\n"
        "    $ /Users/user/bench/.venv/bin/python -m pip install 'keras>=3.12' 'numpy>=1.26' 'torch>=2.6'"
    )
    assert text_of(cases.in_state(m1, on_battery=True)).endswith(
        "warning: runs on battery\n    → plug it in and switch the low-power mode off"
    )


def test_backends_that_are_broken_or_missing_have_lines_too() -> None:
    facts = cases.gone(cases.fails(cases.load("m1"), "jax", "ImportError: no"), "torch")
    facts = cases.but(facts, "tensorflow", inventory=cases.NOTHING_HEARD, probe=cases.NOTHING_HEARD)
    jax, tensorflow, torch = text_of(facts).split("\n\n")[1:4]
    assert "jax 0.11.2, keras 3.15.1" in jax and "devices: does not load" in jax
    assert tensorflow.startswith("tensorflow: –\n    devices: –\n") and "3.12.12" not in tensorflow
    assert "keras 3.15.1" in torch and "does not load" not in torch
