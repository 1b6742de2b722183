from kerasbench.analysis.findings import findings
from kerasbench.report.page import document
from kerasbench.report.tables import each_sitting
from tests.analysis.test_sittings import run
from tests.report import table
from tests.report.table import brief, drawn


def test_each_sitting_s_ratios_are_shown_and_by_how_much_two_differ() -> None:
    found = findings(run([2.0, 2.5]))
    said = drawn(each_sitting(found))
    header, line = table.rows(table.section(said, "Sittings"))
    assert header == ["scenario", "column", "against", "sitting 1", "sitting 2", "apart"]
    assert line[:3] == ["dense", "torch cpu", "jax cpu"]
    assert line[-1] == "25% ⚠"
    assert "Sitting 2: its rounds ended from 2026-01-02T00:00:00Z to 2026-01-02T00:02:00Z." in said
    assert "## Sittings" in document(found) and "## Sittings" in brief(found)


def test_of_three_no_two_are_compared() -> None:
    _, line = table.rows(table.section(drawn(each_sitting(findings(run([2.0, 2.5, 2.2])))), "Sittings"))
    assert line[-1] == "–"


def test_a_run_in_one_sitting_has_no_such_section() -> None:
    assert each_sitting(findings(run([2.0]))) is None
