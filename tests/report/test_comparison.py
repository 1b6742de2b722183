import dataclasses

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.analysis.versus import compare
from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.report import comparisons
from kerasbench.report.sections import NOTHING
from kerasbench.results.record import Record
from tests import made
from tests.report import table
from tests.report.table import drawn

SCATTER = (1.0, 1.001, 0.999)
OTHER = dataclasses.replace(made.MACHINE, chip="Chip 10")


def run(factor: float = 1.0, backends: tuple[str, ...] = ("torch",), options: Options = DEFAULT) -> Record:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(2.0 * factor * each, 0.0), options=options)
        for backend in backends
        for index, each in enumerate(SCATTER, start=1)
    ]
    return made.record(*trials, rounds=3)


def by_turns(first: int, factor: float = 1.0) -> list[Record]:
    runs = [run(factor * each) for each in SCATTER]
    return [
        dataclasses.replace(
            one,
            started=str(first + 2 * index),
            trials=[dataclasses.replace(trial, code="a") for trial in one.trials],
        )
        for index, one in enumerate(runs)
    ]


@pytest.mark.parametrize(
    ("factor", "ratio", "verdict"), [(1.5, "1.50", "**slower**"), (0.5, "0.500", "**faster**"), (1.0, "1.00", "same")]
)
def test_a_line_has_both_steps_their_ratio_and_the_verdict(factor: float, ratio: str, verdict: str) -> None:
    page = drawn(comparisons.changes(compare(by_turns(1), by_turns(2, factor)), "one", "two"))
    header, line = table.rows(page)
    assert header == ["case", "one", "two", "new / old", "beside", "verdict"]
    assert line[0] == "dense torch cpu"
    assert line[1] == "2.00 ms ±0.2 %"
    assert line[3].startswith(f"{ratio} ±") and line[4:] == [NOTHING, verdict]
    assert "Welch" in page and "Descriptive" not in page


def test_of_one_run_a_side_there_is_a_ratio_without_an_interval_and_one_beside_another_column() -> None:
    page = drawn(comparisons.changes(compare([run(1.0, ("jax", "torch"))], [run(1.5, ("jax", "torch"))]), "a", "b"))
    _, jax, torch = table.rows(page)
    assert jax[3:] == ["1.50", "1.00 (torch cpu)", NOTHING]
    assert torch[3:] == ["1.50", "1.00 (jax cpu)", NOTHING]
    assert "over 2 cases: 1.500." in page and "Welch" not in page
    assert "Descriptive only, without verdicts: 2 cases: a verdict needs three runs of each side by turns" in page
    assert "beside: the ratio to another column of the same run" in page


def test_names_of_files_are_no_markup() -> None:
    page = drawn(comparisons.changes(compare([run()], [run()]), "a|b", "<c>"))
    assert "a\\|b" in page and "\\<c\\>" in page


def test_what_is_said_below_the_table_is_what_was_compared() -> None:
    one = drawn(comparisons.changes(compare([run()], [run()]), "a", "b"))
    assert "over 1 case: 1.000." in one
    assert "⚠" not in one and "New:" not in one and "No longer" not in one and "failing" not in one


def test_between_machines_no_verdict_is_explained() -> None:
    page = drawn(comparisons.changes(compare([run()], [dataclasses.replace(run(), machine=OTHER)]), "a", "b"))
    assert table.rows(page)[1][5] == NOTHING
    assert "Welch" not in page and "without verdicts" in page


def test_what_fails_now_is_named_with_its_cause() -> None:
    failed = made.record(made.trial(failure=dataclasses.replace(made.FAILURE, cause="died | *hard*")))
    page = drawn(comparisons.changes(compare([run()], [failed]), "a", "b"))
    assert "Measured before, failing now: dense torch cpu: crash: died \\| \\*hard\\*" in page
    assert "No longer measured" not in page


def test_nothing_in_common_leaves_lists_and_no_empty_table() -> None:
    page = drawn(comparisons.changes(compare([run()], [run(backends=("jax",))]), "a", "b"))
    assert "New: dense jax cpu." in page and "No longer measured: dense torch cpu." in page
    assert "|" not in page and "Welch" not in page
    assert "No case was measured on both sides." in page


def test_every_column_of_every_machine_stands_beside_the_others() -> None:
    there = dataclasses.replace(run(0.5, ("jax", "torch")), machine=OTHER)
    page = drawn(comparisons.side_by_side([("m1", summarize(run())), ("box", summarize(there))]))
    assert table.rows(page) == [
        ["scenario", "fastest measured", "m1: torch cpu", "box: jax cpu", "box: torch cpu"],
        ["dense", "box: jax cpu", "**2.00 ms ±0.2 %, 2.00×**", "**1.00 ms ±0.2 %**", "1.00 ms ±0.2 %"],
    ]
    assert "descriptive" in page


def test_what_one_machine_has_not_measured_is_left_open_and_what_failed_is_named() -> None:
    conv = made.record(made.trial(name="conv"), made.trial(failure=made.FAILURE))
    found = {
        line[0]: line[1:]
        for line in table.rows(drawn(comparisons.side_by_side([("m1", summarize(run())), ("box", summarize(conv))])))
    }
    assert found["dense"] == ["m1: torch cpu", "**2.00 ms ±0.2 %**", "*crash*"]
    assert found["conv"] == ["box: torch cpu", NOTHING, "**2.10 ms**"]


def test_a_sweep_s_sizes_stand_in_lines_of_their_own_by_the_step_inside_an_epoch() -> None:
    sized = run(options=Options(batch=8))
    assert table.rows(drawn(comparisons.side_by_side([("m1", summarize(sized))])))[1] == [
        "dense batch=8",
        "m1: torch cpu",
        "**2.00 ms ±0.2 %**",
    ]
