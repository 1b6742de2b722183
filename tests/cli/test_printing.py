import dataclasses

from kerasbench.cli import printing
from kerasbench.environments.doctor import Facts, diagnose
from tests import made
from tests.environments import cases


def test_a_line_for_each_workload_has_its_suite_and_what_is_known_of_it() -> None:
    entry = dataclasses.replace(made.entry("dense", ("default", "tiny")), suite="tiny")
    first, second = entry.description.workloads
    known = dataclasses.replace(first, parameters=78_666, operations=2_400_313_344, large=True)
    entry = made.changed(entry, description={"workloads": [known, second]})
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printing.as_table([entry]).splitlines()[2:]]
    assert lines == [
        ["tiny", "dense", "78,666", "32", "100", "3", "2.4 G", "dense in one line. For a GPU."],
        ["tiny", "dense/tiny", "–", "32", "100", "3", "–", "dense in one line."],
    ]


def test_operations_have_three_digits() -> None:
    counts = (812, 1_500, 2_837_952, 7_000_000_000_000, 9_277_242_900_480)
    assert [printing.operations(count) for count in counts] == ["812", "1.5 k", "2.84 M", "7 T", "9.28 T"]


def text_of(facts: Facts) -> str:
    return printing.diagnosis(facts, diagnose(facts))


def test_a_machine_has_a_line_for_each_backend_and_is_said_to_be_in_good_order() -> None:
    text = text_of(cases.load("m1"))
    assert text.startswith("Apple M1, 8 logical CPUs, 8 GiB, Apple M1 (7 cores), Darwin 24.6.0 arm64\n")
    assert text.endswith("\n\nNothing is wrong.")
    jax = next(line for line in text.splitlines() if line.startswith("jax "))
    assert "jax 0.11.2, jax-mps 0.11.1" in jax and "cpu, gpu (Apple M1 (mps))" in jax and "this interpreter" in jax
    named = text_of(cases.load("cuda"))  # interpreters that a file names
    assert "NVIDIA H200 (driver 580.95.05)" in named.splitlines()[0]
    torch = next(line for line in named.splitlines() if line.startswith("torch "))
    assert "/bench/.venvs/torch/bin/python" in torch and torch.endswith("/home/user/bench/kerasbench.toml")


def test_a_finding_has_its_remedy_below_it_a_command_as_a_shell_takes_it() -> None:
    m1 = cases.load("m1")
    assert text_of(cases.gone(m1, "torch")).endswith(
        "note: torch: torch is not installed in /Users/user/bench/.venv\n"
        "    $ /Users/user/bench/.venv/bin/python -m pip install 'keras>=3.12' 'numpy>=1.26' 'torch>=2.6'"
    )
    assert text_of(cases.in_state(m1, on_battery=True)).endswith(
        "warning: runs on battery\n    → plug it in and switch the low-power mode off"
    )


def test_backends_that_are_broken_or_missing_have_rows_too() -> None:
    facts = cases.gone(cases.fails(cases.load("m1"), "jax", "ImportError: no"), "torch")
    facts = cases.but(facts, "tensorflow", inventory=cases.NOTHING_HEARD, probe=cases.NOTHING_HEARD)
    jax, tensorflow, torch = text_of(facts).splitlines()[4:7]
    assert "jax 0.11.2, keras 3.15.1" in jax and "does not load" in jax
    assert "  –  " in tensorflow and "3.12.12" not in tensorflow
    assert "keras 3.15.1" in torch and "does not load" not in torch
