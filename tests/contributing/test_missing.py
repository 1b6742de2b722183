"""Whose results are missing: by what the page of machines has."""

from pathlib import Path

import pytest

from kerasbench.contributing import missing
from kerasbench.protocol.columns import Device
from tests import made

PUBLISHED = """# Runs by machine

## AMD EPYC, 2 logical CPUs, 24 GiB, machine m1

## Intel(R) Xeon(R), 16 logical CPUs, 126 GiB, NVIDIA H200, GPU-b13e5ece, machine without an identifier

## Apple M1 Pro, 10 logical CPUs, 16 GiB, Apple M1 Pro (16-core GPU), machine m2
"""
H200, RTX = Device("cuda", 0, "NVIDIA H200"), Device("cuda", 0, "NVIDIA RTX 4090")
RADEON, MPS = Device("rocm", 0, "Radeon"), Device("mps")


@pytest.mark.parametrize(
    ("chip", "gpus", "devices", "is_missing", "said"),
    [
        ("AMD EPYC", [], [made.CPU], False, "results of AMD EPYC are"),
        ("AMD EPYC 7B13", [], [made.CPU], True, "no results of AMD EPYC 7B13 are"),
        ("Apple M1", ["Apple M1 (8-core GPU)"], [MPS], True, "no results of Apple M1 (8-core GPU) and Apple M1 are"),
        ("Apple M1 Pro", ["Apple M1 Pro (16-core GPU)"], [MPS], False, "results of Apple M1 Pro and Apple M1 Pro (16"),
        ("AMD EPYC", ["NVIDIA RTX 4090"] * 2, [made.CPU, RTX], True, "no results of NVIDIA RTX 4090 are"),
        ("AMD EPYC", ["NVIDIA RTX 4090"], [made.CPU], False, "results of AMD EPYC are"),  # which no backend finds
        ("AMD EPYC", ["NVIDIA H200"], [H200], False, "results of AMD EPYC and NVIDIA H200 are"),
        ("AMD EPYC", [], [RADEON], True, "no results of Radeon are"),  # as a backend calls it
    ],
)  # fmt: skip
def test_a_machine_s_results_are_missing_if_none_are_of_its_gpu_or_its_chip(
    chip: str, gpus: list[str], devices: list[Device], is_missing: bool, said: str
) -> None:
    line = missing.advice(made.changed(made.MACHINE, chip=chip, gpus=gpus), devices, PUBLISHED)
    assert said in line and "\n" not in line
    assert ("kerasbench contribute" in line, "nothing is missing" in line) == (is_missing, not is_missing)


def test_the_page_of_machines_is_that_of_this_checkout() -> None:
    page = missing.index()
    assert page == (Path(__file__).parents[2] / "results" / "README.md").read_text("utf-8")
    assert "\n## AMD EPYC, " in page
