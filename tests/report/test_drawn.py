from pathlib import Path

import pytest

from kerasbench.errors import ResultsError
from kerasbench.report import pages
from kerasbench.report.pages import draw, save_report
from kerasbench.results.record import INTERRUPTED
from kerasbench.results.store import Store
from tests import made
from tests.report.test_sweep import CROSSING, swept

RECORD = made.record(made.trial())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


def refuse(*_: object) -> None:
    raise ResultsError("no space left")


def test_the_tables_are_saved_beside_the_data(store: Store) -> None:
    drawn = save_report(RECORD, store)
    assert "## Training step" in drawn.tables.read_text()
    assert (drawn.data, drawn.plot, drawn.unsaved, drawn.interrupted) == (store.data, None, "", False)
    interrupted = made.record(made.trial())
    interrupted.stopped_because = INTERRUPTED
    assert save_report(interrupted, store).interrupted


def test_tables_that_the_disk_refuses_can_still_be_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "replace", refuse)
    drawn = save_report(RECORD, store)
    assert (drawn.unsaved, drawn.found.summary.record) == ("no space left", RECORD)


def test_no_tables_are_saved_where_there_is_no_data_that_they_are_of(store: Store) -> None:
    assert save_report(RECORD, store, "no space left").unsaved == "no space left"
    assert not store.tables.exists()


def test_a_sweep_s_chart_lies_beside_its_page_which_shows_it(store: Store) -> None:
    saved = save_report(swept(**CROSSING), store)
    assert saved.plot == store.data.with_suffix(".svg") and saved.plot.read_text().startswith("<svg")
    assert f"]({saved.plot.name})" in saved.tables.read_text()


def test_report_draws_into_a_folder(tmp_path: Path) -> None:
    Store.create(tmp_path, "2026-01-02T03:04:05Z").finish(swept(**CROSSING))
    (file,) = draw([tmp_path], tmp_path / "plots")
    assert file.name.startswith("chip-9-") and file.name.endswith("-sweep.svg")
