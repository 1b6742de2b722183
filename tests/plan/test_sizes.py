import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import request
from kerasbench.protocol.columns import DEFAULT, Options, Size
from tests import made


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["1..8"], [1, 2, 4, 8]),
        (["1..4096"], [1 << doubled for doubled in range(13)]),
        (["3..100"], [3, 6, 12, 24, 48, 96]),
        (["7..7"], [7]),
        (["8", "1"], [1, 8]),
        (["1..4", "4", "48"], [1, 2, 4, 48]),
        ([], []),
    ],
)
def test_batches_are_doubled_or_listed_and_come_in_order(given: list[str], meant: list[int]) -> None:
    assert request.parse_batches(given) == meant


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("8..1", "say the smaller first"),
        ("0..8", "from 1 to 1,048,576"),
        ("1..2097152", "from 1 to 1,048,576"),
        ("0", "whole numbers from 1"),
        ("2097152", "whole numbers from 1"),
        ("-1", "doubled from 1 on"),
        ("1.5", "doubled from 1 on"),
        ("1...8", "doubled from 1 on"),
        ("²", "doubled from 1 on"),
        ("all", "doubled from 1 on"),
    ],
)
def test_what_is_no_batch_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        request.parse_batches([text])


def test_widths_are_factors() -> None:
    assert request.parse_widths(["2", "0.5", "1", "2.0"]) == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "wide", "1..4"])
def test_what_is_no_width_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--width takes factors"):
        request.parse_widths([text])


def test_each_of_the_terms_is_measured_at_each_size() -> None:
    terms = [DEFAULT, Options(jit=False)]
    assert [one.label for one in request.crossed(terms, [1, 8], [])] == [
        "batch=1",
        "jit=off batch=1",
        "batch=8",
        "jit=off batch=8",
    ]
    assert [one.size for one in request.crossed([DEFAULT], [], [0.5, 2.0])] == [Size(width=0.5), Size(width=2.0)]
    assert len(request.crossed(terms, [1, 8], [1.0, 2.0])) == 8


@pytest.mark.parametrize(("batches", "widths"), [([], []), ([8], []), ([8], [2.0])])
def test_one_size_is_no_sweep(batches: list[int], widths: list[float]) -> None:
    with pytest.raises(UsageError, match="two sizes or more"):
        request.crossed([DEFAULT], batches, widths)


@pytest.mark.parametrize(
    ("low", "high", "found"), [(64, 128, [81, 102]), (8, 64, [16, 32]), (1, 2, []), (2, 4, [3]), (1, 4, [2, 3])]
)
def test_two_batches_divide_a_bracket_where_there_is_room(low: float, high: float, found: list[float]) -> None:
    assert request.sizes_between(low, high, whole=True) == found


def test_two_widths_divide_a_bracket() -> None:
    assert request.sizes_between(1, 2, whole=False) == [1.26, 1.59]


def test_a_sweep_is_of_one_workload() -> None:
    with pytest.raises(UsageError, match="names 2: dense/a, dense/b; name one of them"):
        request.require_sweepable([made.selected(workload_name="a"), made.selected(workload_name="b")], [DEFAULT])
    request.require_sweepable([made.selected()], [Options(batch=8)])


def test_a_width_needs_a_scenario_that_scales() -> None:
    with pytest.raises(UsageError, match="dense has no --width"):
        request.require_sweepable([made.selected()], [Options(batch=8), Options(width=2.0)])
