import dataclasses
import os
from pathlib import Path

import pytest

from kerasbench.errors import ResultsError
from kerasbench.results.store import MAX_FILE_BYTES, Store, clear_leftovers, load, result_files
from tests import made

GOLDEN = Path(__file__).parents[1] / "golden"
STARTED = "2026-01-02T03:04:05Z"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, STARTED)


def test_a_record_is_read_as_it_was_written(store: Store) -> None:
    record = made.record(made.trial(), made.trial(failure=made.FAILURE))
    store.begin(made.record())
    store.finish(record)
    assert load(store.data) == record
    assert not store.journal.exists()


def test_a_journal_holds_every_trial_that_was_added(store: Store) -> None:
    record = made.record(made.trial(1), rounds=0)
    store.begin(record)
    store.add([made.trial(1, backend="jax"), made.trial(2)])
    found = load(store.journal)
    assert [(trial.round, trial.backend) for trial in found.trials] == [(1, "torch"), (1, "jax"), (2, "torch")]
    assert (found.rounds_completed, found.machine) == (1, made.MACHINE)


@pytest.mark.parametrize("cut", [1, 2, 500, 1000])
def test_a_journal_that_was_cut_off_loses_the_last_trial_alone(store: Store, cut: int) -> None:
    store.begin(made.record(made.trial(1), made.trial(2), rounds=0))
    content = store.journal.read_bytes()
    store.journal.write_bytes(content[:-cut])
    assert [trial.round for trial in load(store.journal).trials] == [1]


def test_rounds_are_complete_when_every_case_that_still_runs_has_a_trial(store: Store) -> None:
    failed = made.trial(2, backend="jax", failure=made.FAILURE)
    trials = [made.trial(1), made.trial(1, backend="jax"), made.trial(2), failed, made.trial(3)]
    for upto, rounds in ((0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (5, 3)):
        store.begin(made.record(*trials[:upto], rounds=0))
        assert load(store.journal).rounds_completed == rounds


def test_a_column_that_has_only_run_out_of_memory_beside_others_is_not_through_with_a_round(store: Store) -> None:
    crowded = dataclasses.replace(made.trial(2, backend="jax", failure=made.FAILURE), crowded=True)
    trials = [made.trial(1), made.trial(1, backend="jax"), made.trial(2), crowded, made.trial(2, backend="jax")]
    for upto, rounds in ((3, 1), (4, 1), (5, 2)):
        store.begin(made.record(*trials[:upto], rounds=0))
        assert load(store.journal).rounds_completed == rounds


def test_a_first_round_is_complete_when_it_has_every_case_that_was_planned(store: Store) -> None:
    record = dataclasses.replace(made.record(made.trial(1), rounds=0), cases=2)
    store.begin(record)
    assert load(store.journal).rounds_completed == 0
    store.add([made.trial(1, backend="jax")])
    assert load(store.journal).rounds_completed == 1


def test_a_row_that_is_decided_holds_no_round_up(store: Store) -> None:
    decided = [made.trial(index, "quiet") for index in (1, 2, 3)]
    loud = [made.trial(index, "loud") for index in (1, 2, 3, 4, 5)]
    for upto, rounds in ((3, 3), (4, 3), (5, 5)):  # the fourth passes for open while it is the last
        store.begin(made.record(*decided, *loud[:upto], rounds=0))
        assert load(store.journal).rounds_completed == rounds


def test_a_block_is_written_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.begin(made.record(made.trial(1, backend="tensorflow"), rounds=0))
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    store.add([made.trial(1), made.trial(1, backend="jax")])
    assert len(synced) == 1
    assert len(load(store.journal).trials) == 3


def test_the_tables_lie_beside_the_data(store: Store, tmp_path: Path) -> None:
    store.save_tables("# table")
    assert store.data.name == "2026-01-02T030405.json"
    assert (tmp_path / "2026-01-02T030405.md").read_text() == "# table"


def test_two_runs_of_one_second_have_files_of_their_own(tmp_path: Path) -> None:
    assert len({Store.create(tmp_path, STARTED).data for _ in range(3)}) == 3


def test_a_finished_run_of_the_same_second_is_not_written_over(store: Store, tmp_path: Path) -> None:
    store.finish(made.record())
    assert Store.create(tmp_path, STARTED).data != store.data


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="--results DIR"):
        Store.create(tmp_path / "file", STARTED)


def test_a_failed_save_keeps_what_was_there(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.begin(made.record(made.trial(1)))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResultsError, match="No space left on device; what it held before is kept"):
        store.finish(made.record())
    with pytest.raises(ResultsError, match="No space left on device; it ends before this block"):
        store.add([made.trial(2)])
    assert load(store.journal).trials[0].round == 1
    assert [file.name for file in tmp_path.iterdir()] == [store.journal.name]


def test_a_run_that_was_killed_before_it_had_begun_is_no_result(store: Store, tmp_path: Path) -> None:
    assert store.journal.exists()
    with pytest.raises(ResultsError, match="no result files here"):
        result_files(tmp_path)


def test_what_killed_runs_have_left_is_removed_after_a_while(tmp_path: Path) -> None:
    written = Store.create(tmp_path, STARTED)
    written.begin(made.record())
    reserved = Store.create(tmp_path, STARTED).journal
    half = tmp_path / f"{written.data.name}.partial"
    half.write_text("{")
    clear_leftovers(tmp_path)
    assert reserved.exists() and half.exists()
    for file in (written.journal, reserved, half):
        os.utime(file, (0, 0))
    clear_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [written.journal]


@pytest.mark.parametrize(
    "name",
    ["movie.mp4.partial", "README.md.partial", "empty.jsonl", "2026-01-02.jsonl", "2026-01-02T030405-old.json.partial"],
)
def test_a_file_of_others_is_never_removed(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.touch()
    os.utime(file, (0, 0))
    clear_leftovers(tmp_path)
    assert file.exists()


def test_a_run_that_goes_on_stands_for_itself_once(store: Store, tmp_path: Path) -> None:
    store.finish(made.record())
    assert result_files(tmp_path) == [store.data]
    store.begin(made.record())
    assert result_files(tmp_path) == [store.journal]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a kerasbench result file"),
        (b"[1, 2", "not a kerasbench result file"),
        (b"\xff\xfe\x00", "not a kerasbench result file"),
        (b'{"schema": 5}', "not a kerasbench result file"),
        (b'{"schema": 1}', r"older kerasbench \(schema 1, not 5\); read it with that one, or measure again"),
        (b'{"schema": 99}', "newer kerasbench"),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(ResultsError, match=complaint):
        load(file)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[1, 2\n", b"\xff\n", b'{"schema": 99}\n', b"\x00" * 99])
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)
    with pytest.raises(ResultsError, match=r"not a kerasbench result file|newer kerasbench"):
        load(file)


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ResultsError, match="larger than"):
        load(file)


def test_deeply_nested_brackets_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b"[" * 100_000)
    with pytest.raises(ResultsError, match="not a kerasbench result file"):
        load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"gone.json: cannot be read: No such file"):
        load(tmp_path / "gone.json")
