"""What Python functions return, where test_api.py does not ask for it."""

import sys
from types import SimpleNamespace

import pytest

from kerasbench.api import Results, Versions
from kerasbench.errors import Undecided
from kerasbench.report.comparisons import COLUMNS
from tests.analysis.test_versus import ALIKE, SLOWER, record, trials


def test_versions_have_regressions_for_a_test_to_look_at() -> None:
    found = Versions([record(*trials(SLOWER), *trials(ALIKE, "jax"))])
    (line,) = found.regressions
    assert line.startswith("dense torch cpu: a training step takes 1.096× (")
    assert Versions([record(*trials(ALIKE))]).regressions == []
    assert found.versus[0].head == "new"
    with pytest.raises(Undecided, match=r"^nothing could be judged, so this is no pass: \d figures, all inconclusive$"):
        print(Versions([record(*trials(SLOWER)[:2])]).regressions)


def test_versions_show_the_answer_first() -> None:
    found = Versions([record(*trials(SLOWER))])
    assert repr(found).startswith("Training step of new against old, 1 row: slower in 1.\ndense torch cpu: a training")
    html = found._repr_html_()
    answer, table, details = (html.index(part) for part in ("Training step of new", "<table", "<details>"))
    assert answer < table < details
    assert "## new against old" in str(found)
    assert repr(Results(found.records)) == repr(found)  # loaded from a file it says the same


def test_versions_become_a_data_frame_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[tuple[list[list[object]], list[str]]] = []
    fake = SimpleNamespace(DataFrame=lambda rows, columns: made_of.append((rows, columns)))
    monkeypatch.setitem(sys.modules, "pandas", fake)
    Versions([record(*trials(SLOWER))]).to_dataframe()
    ((rows, columns),) = made_of
    assert columns == list(COLUMNS)
    assert {row[columns.index("figure")] for row in rows} >= {"train_step_ms", "first_step_ms", "peak_rss_mib"}
