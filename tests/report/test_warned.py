import pytest

from kerasbench.analysis.findings import findings
from kerasbench.report.conditions import LONGEST, advice, warned_cases, warnings
from tests import made


def test_one_line_for_each_kind_names_its_cells_and_the_remedy() -> None:
    found = warnings(
        findings(made.record(made.trial(noise=(made.DISTURBED,)), made.trial(name="conv", noise=(made.DISTURBED,))))
    )
    assert found is not None
    assert found.lines == [
        "Other load disturbed at least one round: dense torch cpu; conv torch cpu. "
        "Remedy: close other programs and run again."
    ]


def test_many_cells_are_counted_and_stand_in_a_table() -> None:
    run = findings(
        made.record(*(made.trial(name=f"scenario_{number}", noise=(made.DISTURBED,)) for number in range(30)))
    )
    found, table = warnings(run), warned_cases(run)
    assert found is not None and table is not None and table.table is not None
    (line,) = found.lines
    assert "30 rows (the page lists them by case)" in line and len(line) <= LONGEST
    assert len(table.table.rows) == 30


def test_nothing_wrong_is_no_section() -> None:
    run = findings(made.record(made.trial()))
    assert (warnings(run), warned_cases(run)) == (None, None)


@pytest.mark.parametrize("name", ["others", "gpu clock"])
def test_a_signal_is_told_with_its_remedy(name: str) -> None:
    assert advice(name).startswith(f"{name}: ") and "Remedy: " in advice(name)


def test_a_trial_beside_which_others_ran_is_not_told_to_be_undecided() -> None:
    assert "not decided" not in advice("others")


def test_a_signal_of_another_version_is_told_by_its_name() -> None:
    assert advice("comet") == "comet"
