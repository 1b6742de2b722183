from pathlib import Path

import pytest

from kerasbench.errors import ResultsError
from kerasbench.results import Store, load
from tests import made

STARTED = "2026-01-02T03:04:05Z"


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path, STARTED)
    record = made.record(made.trial(), made.trial(failure=made.FAILURE))
    store.save(record)
    assert load(store.data) == record


def test_the_tables_lie_beside_the_data(tmp_path: Path) -> None:
    store = Store(tmp_path, STARTED)
    store.save_tables("# table")
    assert store.data.name == "2026-01-02T030405.json"
    assert (tmp_path / "2026-01-02T030405.md").read_text() == "# table"


def test_two_runs_of_one_second_have_files_of_their_own(tmp_path: Path) -> None:
    assert Store(tmp_path, STARTED).data != Store(tmp_path, STARTED).data


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="--results DIR"):
        Store(tmp_path / "file", STARTED)


def test_a_failed_save_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, STARTED)
    store.save(made.record(made.trial()))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResultsError, match="No space left on device; what it held before is kept"):
        store.save(made.record())
    assert len(load(store.data).trials) == 1
    assert [file.name for file in tmp_path.iterdir()] == [store.data.name]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a kerasbench result file"),
        (b"[1, 2", "not a kerasbench result file"),
        (b"\xff\xfe\x00", "not a kerasbench result file"),
        (b'{"schema": 1}', "not a kerasbench result file"),
        (b'{"schema": 99}', "newer kerasbench"),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(ResultsError, match=complaint):
        load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"gone.json: cannot be read: No such file"):
        load(tmp_path / "gone.json")
