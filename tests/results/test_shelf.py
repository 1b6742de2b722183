import dataclasses
from pathlib import Path

import pytest

from kerasbench.errors import ResultsError
from kerasbench.results.folder import UnreadableFile, records, refuse_damaged
from kerasbench.results.store import Store
from tests import made

STARTS = ["2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", "2026-01-04T03:04:05Z"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for start in STARTS:
        Store.create(tmp_path, start).finish(dataclasses.replace(made.record(made.trial()), started=start))
    return tmp_path


def started(place: Path, newest_first: bool = False) -> list[str]:
    return [record.started for _, record in records(place, newest_first=newest_first)]


def test_a_folder_is_read_from_the_oldest_on_or_from_the_newest(folder: Path) -> None:
    assert started(folder) == STARTS
    assert started(folder, newest_first=True) == STARTS[::-1]


def test_a_file_that_is_named_is_read_alone(folder: Path) -> None:
    file = folder / "2026-01-03T030405.json"
    assert [found for found, _ in records(file)] == [file]


def test_a_file_of_others_is_passed_over_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "package.json").write_text("{}")
    assert started(folder) == STARTS
    err = capsys.readouterr().err
    assert err.startswith(f"kerasbench: {folder / 'package.json'}: not a kerasbench result file")
    assert err.endswith("; passed over\n")


def test_a_damaged_result_ends_the_reading_unless_somebody_takes_it(folder: Path) -> None:
    damaged = folder / "2026-01-03T030405.json"
    damaged.write_text("{")
    with pytest.raises(ResultsError, match=f"move it out of {folder} to go on without it"):
        started(folder)
    told: list[UnreadableFile] = []
    found = [record.started for _, record in records(folder, told.append)]
    assert (found, [unread.file for unread in told]) == ([STARTS[0], STARTS[2]], [damaged])
    assert told[0].is_damaged


def test_a_folder_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    with pytest.raises(ResultsError, match="no result files here that can be read"):
        started(tmp_path)


def test_reading_is_one_file_at_a_time(folder: Path) -> None:
    """Nobody holds a year of results in memory: what comes after the first is not read yet."""
    reading = records(folder)
    next(reading)
    (folder / "2026-01-03T030405.json").write_text("{")
    with pytest.raises(ResultsError, match="2026-01-03T030405"):
        next(reading)


@pytest.mark.parametrize(
    ("name", "damaged"), [("2026-01-03T030405.json", True), ("2026-01-03T030405-2.jsonl", True), ("notes.json", False)]
)
def test_what_is_damaged_goes_by_the_names_that_runs_give(tmp_path: Path, name: str, damaged: bool) -> None:
    unread = UnreadableFile(tmp_path / name, "why")
    assert unread.is_damaged is damaged
    if damaged:
        with pytest.raises(ResultsError, match=r"why; move it out of"):
            refuse_damaged(unread)
