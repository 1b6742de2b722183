"""What list and doctor print."""

import dataclasses
import json

import pytest

from kerasbench.cli import listing
from kerasbench.environments.doctor import Facts, diagnose
from kerasbench.plan.catalog import Entry
from tests import made
from tests.environments import cases


def entry(**different: object) -> Entry:
    one = made.entry("dense", ("default", "tiny"))
    first, second = one.description.workloads
    workloads = [dataclasses.replace(first, **different), second]  # type: ignore[arg-type]
    return dataclasses.replace(one, suite="tiny", description=dataclasses.replace(one.description, workloads=workloads))


def columns(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


def test_a_line_for_each_workload_with_its_suite_and_what_is_known_of_it() -> None:
    first, second = columns(listing.as_table([entry()]))
    assert (first[:2], second[:2]) == (["tiny", "dense"], ["tiny", "dense/tiny"])
    assert first[2:] == ["–", "32", "100", "3", "–", "dense in one line."]
    known, _ = columns(listing.as_table([entry(parameters=78_666, operations=2_400_313_344, large=True)]))
    assert known[2:] == ["78,666", "32", "100", "3", "2.4 G", "dense in one line. For a GPU."]


@pytest.mark.parametrize(
    ("count", "text"),
    [(812, "812"), (2_837_952, "2.84 M"), (9_277_242_900_480, "9.28 T"), (7_000_000_000_000, "7 T"), (1_500, "1.5 k")],
)
def test_operations_have_three_digits(count: int, text: str) -> None:
    assert listing.operations(count) == text


def test_the_data_holds_everything() -> None:
    known = entry(operations=5)
    (one,) = listing.as_data([known])
    assert (one["name"], one["suite"], one["file"]) == ("dense", "tiny", "dense.py")
    assert (one["workloads"][0]["steps"], one["workloads"][0]["operations"]) == (100, 5)


def text_of(facts: Facts) -> str:
    return listing.diagnosis_as_text(facts, diagnose(facts))


def test_a_machine_in_good_order_is_said_to_be() -> None:
    text = text_of(cases.load("m1"))
    assert text.startswith("Apple M1, 8 CPU cores, 8 GiB, Apple M1 (7 cores), Darwin 24.6.0 arm64\n")
    assert text.endswith("\n\nNothing is wrong.")
    jax = next(line for line in text.splitlines() if line.startswith("jax "))
    assert "cpu, gpu (Apple M1 (mps))" in jax
    assert "jax 0.11.2, jax-mps 0.11.1" in jax
    assert jax.endswith("this interpreter")


def test_an_interpreter_that_was_named_is_shown_with_who_named_it() -> None:
    text = text_of(cases.load("cuda"))
    assert "NVIDIA H200 (driver 580.95.05)" in text.splitlines()[0]
    torch = next(line for line in text.splitlines() if line.startswith("torch "))
    assert "/home/user/bench/.venvs/torch/bin/python" in torch
    assert torch.endswith("/home/user/bench/kerasbench.toml")


def test_a_finding_has_its_command_below_it_as_a_shell_takes_it() -> None:
    facts = cases.gone(cases.load("m1"), "torch")
    assert text_of(facts).endswith(
        "note: torch: torch is not installed in /Users/user/bench/.venv\n"
        "    $ /Users/user/bench/.venv/bin/python -m pip install 'keras>=3.12' 'numpy>=1.26' 'torch>=2.6'"
    )


def test_a_remedy_that_is_no_command_is_marked_otherwise_and_none_is_left_out() -> None:
    facts = cases.in_state(cases.load("m1"), on_battery=True)
    facts = dataclasses.replace(facts, variables={"OMP_NUM_THREADS": "1"})
    warning, remedy, note, _ = text_of(facts).splitlines()[-4:]
    assert (warning, remedy) == ("warning: runs on battery", "    → plug it in and switch the low-power mode off")
    assert note.startswith("note: set in this shell")


def test_backends_that_are_broken_or_missing_have_rows_too() -> None:
    facts = cases.gone(cases.fails(cases.load("m1"), "jax", "ImportError: no"), "torch")
    facts = cases.but(facts, "tensorflow", inventory=cases.NOTHING_HEARD, probe=cases.NOTHING_HEARD)
    jax, tensorflow, torch = text_of(facts).splitlines()[4:7]
    assert "jax 0.11.2, keras 3.15.1" in jax
    assert "does not load" in jax
    assert "  –  " in tensorflow
    assert "3.12.12" not in tensorflow
    assert "keras 3.15.1" in torch
    assert "does not load" not in torch


def test_data_hold_everything_that_was_found_out() -> None:
    facts = cases.gone(cases.load("cuda"), "jax")
    data = json.loads(json.dumps(listing.diagnosis_as_data(facts, diagnose(facts))))
    (finding,) = data.pop("findings")
    assert finding["severity"] == "note"
    assert finding["is_command"] is True
    assert data == json.loads(json.dumps(dataclasses.asdict(facts)))
    assert data["backends"][2]["inventory"]["packages"]["torch"] == "2.15.0"
