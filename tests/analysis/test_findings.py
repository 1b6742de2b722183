"""What follows from a run is computed once, however many sections tell it."""

import pytest

from kerasbench.analysis import series
from kerasbench.analysis.findings import findings
from kerasbench.report import charts, html, page
from tests.report.table import brief
from tests.report.test_sweep import CROSSING, swept

STATEMENTS = ("sweeps", "speed_ups", "prices", "break_evens", "breakdowns")


def test_a_sweep_s_bootstrap_runs_once_for_tables_terminal_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    compute = series.crossing_interval

    def counted(ratios: series.Ratios) -> tuple[float, float]:
        calls.append(ratios)
        return compute(ratios)

    monkeypatch.setattr(series, "crossing_interval", counted)
    found = findings(swept(**CROSSING))
    texts = page.document(found), brief(found), html.document([("here", found)])
    assert all("is faster than JAX from about batch" in text for text in texts)
    assert charts.curves(found)
    assert len(calls) == 1


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_is_computed_once(name: str) -> None:
    found = findings(swept(**CROSSING))
    assert getattr(found, name) is getattr(found, name)
