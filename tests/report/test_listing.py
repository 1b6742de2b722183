import dataclasses

import pytest

from kerasbench.plan.catalog import Entry
from kerasbench.report import listing
from tests import made


def entry(**different: object) -> Entry:
    one = made.entry("dense", ("default", "tiny"))
    first, second = one.description.workloads
    workloads = [dataclasses.replace(first, **different), second]  # type: ignore[arg-type]
    return dataclasses.replace(one, suite="tiny", description=dataclasses.replace(one.description, workloads=workloads))


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


def test_a_line_for_each_workload_with_its_suite() -> None:
    assert [line[:2] for line in cells(listing.as_table([entry()]))] == [["tiny", "dense"], ["tiny", "dense/tiny"]]


def test_what_is_not_known_is_left_open() -> None:
    first, _ = cells(listing.as_table([entry()]))
    assert first[2:] == ["–", "32", "100", "3", "–", "dense in one line."]


def test_sizes_are_shown() -> None:
    known = entry(parameters=78_666, operations=2_400_313_344, large=True)
    first, _ = cells(listing.as_table([known]))
    assert (first[2], first[6]) == ("78,666", "2.4 G")
    assert first[7] == "dense in one line. For a GPU."


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
