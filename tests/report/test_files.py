from pathlib import Path

import pytest

from kerasbench.cli import main
from kerasbench.results import Store
from tests import made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path, "2026-01-02T03:04:05Z")
    store.save(made.record(made.trial()))
    return store


def test_tables_are_made_from_their_data(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(store.data.parent)]) == 0
    assert capsys.readouterr().out == f"{store.tables}\n"
    assert "2.10 ms" in store.tables.read_text()
    assert main(["report", "--check", str(store.data)]) == 0


@pytest.mark.parametrize("text", [None, "", "2.11 ms"])
def test_tables_that_differ_from_their_data_are_named(
    store: Store, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    if text is not None:
        store.save_tables(text)
    assert main(["report", "--check", str(store.data.parent)]) == 1
    assert str(store.tables) in capsys.readouterr().err
    assert (store.tables.read_text() if store.tables.exists() else None) == text


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 2}'])
def test_a_file_that_is_no_result_is_an_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "x.json").write_text(content)
    assert main(["report", str(tmp_path)]) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"kerasbench: {tmp_path / 'x.json'}: ")
    assert complaint.count("\n") == 1


def test_a_folder_without_results_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "no result files here" in capsys.readouterr().err
