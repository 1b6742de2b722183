"""A run's files: how they are written, which are read, and what cannot be in them."""

import dataclasses
import json
import os
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError
from kerasbench.pages import page
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.protocol.stages import ALL, BATCH, EPOCH, ONE, PARTS_OF_STEP
from kerasbench.results.checks import TICK_NS, require_possible_times
from kerasbench.results.run import MAX_COLUMNS, MAX_ROUNDS, Trial
from kerasbench.results.store import MAX_FILE_BYTES, Store, as_json, as_line, clear_leftovers, load, result_files
from tests import made

STARTED = "2026-01-02T03:04:05Z"


def test_a_record_is_read_as_it_was_written(store: Store) -> None:
    record = made.record(made.trial(), made.trial(failure=made.FAILURE))
    store.begin(made.record())
    store.finish(record)
    assert load(store.data) == record
    assert not store.journal.exists()


def test_what_is_empty_by_default_is_left_out_and_a_default_that_says_something_is_written(store: Store) -> None:
    record = made.record(made.trial())
    store.finish(record)
    written, whole = msgspec.json.decode(store.data.read_bytes()), msgspec.to_builtins(record, enc_hook=dict)
    left_out = whole["trials"][0].keys() - written["trials"][0].keys()
    assert "failure" in left_out and not any(whole["trials"][0][name] for name in left_out)
    assert written["config"]["effort"]["max_rounds"] == MAX_ROUNDS


def test_what_was_computed_of_a_run_while_it_went_on_is_not_written(store: Store) -> None:
    """A value that was cached stands in ``vars`` as a field does."""
    fresh, read = (made.record(made.trial()) for _ in range(2))
    page.whole(summarize(read))
    assert "median_ns" in vars(made.known(read.trials[0].measurement))
    store.finish(fresh)
    expected = store.data.read_bytes()
    store.finish(read)
    assert store.data.read_bytes() == expected


def test_a_journal_holds_every_trial_that_was_added(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = made.record(made.trial(1), rounds=0)
    store.begin(record)
    synced = Mock()
    monkeypatch.setattr("os.fsync", synced)
    store.add([made.trial(1, backend="jax"), made.trial(2)])
    assert synced.call_count == 1  # a block is written at once
    read = load(store.journal)
    assert [(trial.round, trial.backend) for trial in read.trials] == [(1, "torch"), (1, "jax"), (2, "torch")]
    assert (read.rounds_completed, read.machine) == (1, made.MACHINE)


@pytest.mark.parametrize("cut", [1, 2, 500, 1000])
def test_a_journal_that_was_cut_off_loses_the_last_trial_alone(store: Store, cut: int) -> None:
    store.begin(made.record(made.trial(1), made.trial(2), rounds=0))
    store.journal.write_bytes(store.journal.read_bytes()[:-cut])
    assert [trial.round for trial in load(store.journal).trials] == [1]


FAILED = made.trial(2, backend="jax", failure=made.FAILURE)
CROWDED = dataclasses.replace(FAILED, crowded=True)
PAIR = [made.trial(1), made.trial(1, backend="jax")]
DECIDED = [made.trial(index, "quiet") for index in (1, 2, 3)]
LOUD = [made.trial(index, "loud") for index in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(
    ("trials", "cases", "rounds"),
    [
        ([], 0, 0),
        (PAIR[:1], 0, 1),
        (PAIR[:1], 2, 0),  # so many were planned
        (PAIR, 2, 1),
        ([*PAIR, made.trial(2)], 0, 1),
        ([*PAIR, made.trial(2), FAILED], 0, 2),
        ([*PAIR, made.trial(2), FAILED, made.trial(3)], 0, 3),  # what has failed holds no further round up
        ([*PAIR, made.trial(2), CROWDED], 0, 1),  # it ran out of memory beside others, and is tried again
        ([*PAIR, made.trial(2), CROWDED, made.trial(2, backend="jax")], 0, 2),
        ([*DECIDED, *LOUD[:3]], 0, 3),
        ([*DECIDED, *LOUD[:4]], 0, 3),  # the fourth passes for open while it is the last
        ([*DECIDED, *LOUD], 0, 5),
    ],
)
def test_a_round_is_complete_with_all_its_cases(store: Store, trials: list[Trial], cases: int, rounds: int) -> None:
    store.begin(dataclasses.replace(made.record(*trials, rounds=0), cases=cases))
    assert load(store.journal).rounds_completed == rounds


def test_runs_of_one_second_have_files_of_their_own_whether_they_are_over_or_not(store: Store, tmp_path: Path) -> None:
    second = Store.create(tmp_path, STARTED)
    store.finish(made.record())
    assert len({store.data, second.data, Store.create(tmp_path, STARTED).data}) == 3
    second.journal.unlink()
    for suffix in (".json", ".md", ".svg"):
        link = second.data.with_suffix(suffix)
        link.symlink_to("elsewhere")  # where nothing is
        assert Store.create(tmp_path, STARTED).data not in (store.data, second.data)
        link.unlink()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="--results DIR"):
        Store.create(tmp_path / "file", STARTED)


def test_a_failed_save_keeps_what_was_there(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.begin(made.record(made.trial(1)))
    monkeypatch.setattr("os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(ResultsError, match="No space left on device; its old content is kept"):
        store.finish(made.record())
    with pytest.raises(ResultsError, match="No space left on device; all before this block is kept"):
        store.add([made.trial(2)])
    assert load(store.journal).trials[0].round == 1
    assert list(tmp_path.iterdir()) == [store.journal]


def test_what_killed_runs_have_left_is_removed_after_a_while_and_no_file_of_others(tmp_path: Path) -> None:
    written = Store.create(tmp_path, STARTED)
    written.begin(made.record())
    reserved = Store.create(tmp_path, STARTED).journal
    half = tmp_path / f"{written.data.name}.partial"
    half.write_text("{")
    clear_leftovers(tmp_path)
    assert reserved.exists() and half.exists()
    others = ["movie.mp4.partial", "README.md.partial", "empty.jsonl", "2026-01-02.jsonl"]
    others += ["2026-01-02T030405-old.json.partial", "２０２６-01-02T030405.jsonl"]
    for name in others:
        (tmp_path / name).touch()
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    clear_leftovers(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {written.journal.name, *others}


def test_a_run_that_goes_on_stands_for_itself_once(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no result files here"):  # it may have been killed before it had begun
        result_files(tmp_path)
    store.finish(made.record())
    assert result_files(tmp_path) == [store.data]
    store.begin(made.record())
    assert result_files(tmp_path) == [store.journal]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        *(("x.json", content, "not a kerasbench result") for content in (b"", b"[1, 2", b"\xff", b'{"schema": 7}')),
        ("x.json", b'{"schema": 1}', r"older kerasbench \(schema 1, not 7\); read it with that version, or measure"),
        ("x.json", b'{"schema": 99}', "newer kerasbench"),
        ("x.json", as_line(made.record()).replace(b'"schema":7', b'"cases":0'), "missing required field `schema`"),
        *(("x.jsonl", content, "not a kerasbench result") for content in (b"", b"{}\n", b"[1, 2\n", b"\xff\n")),
        ("x.jsonl", b'{"schema": 99}\n', "newer kerasbench"),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ResultsError, match=complaint):
        load(file)
    os.truncate(file, MAX_FILE_BYTES + 1)
    with pytest.raises(ResultsError, match="larger than"):
        load(file)


FIRST = "trials/0"
MEASURED = f"{FIRST}/measurement"
SAMPLES = f"{MEASURED}/samples"
TRAINED = f"{SAMPLES}/train"
PUBLISHED = {"total_ns": 2, "epochs_ns": [1, 1], "history": {}, "predict_ns": [1]}
NO_SLICES: dict[str, list[int]] = {"count": [], "ns": []}
SLICES = {"count": [1, 1], "ns": [5, 5]}
PARTS: dict[str, object] = {f"{SAMPLES}/{part}": SLICES for part in PARTS_OF_STEP} | {f"{MEASURED}/peak_flops": 1e9}
FLOPS = {"scenario": "dense", "workload": "default", "operations": 1e308}
STEPS = "scenarios/0/description/workloads/0/steps"
Edits = dict[str, object]  # values by the keys and indexes that lead to them


def edited(store: Store, edits: Edits, measured: Measurement | None = None) -> Path:
    """Write a run of which somebody has changed these values; return its file."""
    trials = [made.trial(index, backend=backend, found=measured) for backend in ("jax", "torch") for index in (1, 2, 3)]
    content = msgspec.to_builtins(made.record(*trials, rounds=3), enc_hook=dict)
    for path, value in edits.items():
        part, (*steps, name) = content, path.split("/")
        for step in steps:
            part = part[int(step) if step.isdigit() else step]
        part[name] = value
    store.data.write_bytes(msgspec.json.encode(content))
    return store.data


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (TRAINED, NO_SLICES, "computed is empty"),
        (f"{MEASURED}/passes/passes_ns", [], "computed is empty"),
        (f"{MEASURED}/published", PUBLISHED | {"history": {"loss": []}}, "computed is empty"),
        (f"{MEASURED}/published", PUBLISHED | {"epochs_ns": []}, "computed is empty"),
        (TRAINED, SLICES | {"count": [1, 0]}, "count is out of range"),
        (f"{SAMPLES}/predict_all", SLICES | {"ns": [5, 0]}, "ns is out of range"),
        (f"{SAMPLES}/predict_all", SLICES | {"cpu_ns": [None, 10**19]}, "cpu_ns is out of range"),
        (TRAINED, SLICES | {"cpu_ns": [5]}, r"differ in length.*samples"),
        (TRAINED, SLICES | {"ns": ["5", 5]}, r"Expected `int`.*samples"),
        (f"{MEASURED}/peak_flops", 1e308, "peak_flops is out of range"),
        (f"{MEASURED}/calls/predict_one/calls_ns", [5, 0, 7], "calls_ns is out of range"),
        (f"{MEASURED}/short_epoch/steps", 10**18 + 1, "steps is out of range"),
        (f"{MEASURED}/published", PUBLISHED | {"history": {"loss": [1e308]}}, "history is out of range"),
        (f"{MEASURED}/peak_rss_bytes", -1, "peak_rss_bytes is out of range"),
        (f"{MEASURED}/steps_per_epoch", 0, "steps_per_epoch is out of range"),
        (f"{MEASURED}/full_steps_per_epoch", 10**6, "more full steps than steps"),
        (MEASURED, None, "either a measurement or a failure"),
        (f"{FIRST}/scenario", "other", "trials of other, which is not one of its scenarios"),
        (f"{FIRST}/ended", "2026-01-02T03:04:05+01:00", "'2026-01-02T03:04:05\\+01:00' is not a time"),
        (f"{FIRST}/options/width", 0.0, "width is out of range"),
        (
            f"{FIRST}/backend",
            "<img src=x>",
            "'<img src=x>' is none of the backends jax, mlx, tensorflow, torch; if a newer",
        ),
        ("config/backends", ["mxnet"], "'mxnet' is none of the backends"),
        ("config/environments", ["mxnet@old"], "'mxnet' is none of the backends"),
        ("flops", [FLOPS], "operations is out of range"),
        ("machine/memory_bytes", -1, "memory_bytes is out of range"),
        (STEPS, 0, "steps is out of range"),
        ("minimal_effect", 0, "minimal_effect is out of range"),
        (
            "config",
            {"mode": "fastest", "own": {"margin": -1}},
            "options of its mode are not allowed: Expected `float` > 0",
        ),
        ("config", {"mode": "fastest", "own": {"purpose": "build"}}, "Invalid enum value 'build'"),
        ("config/mode", "x" * 99, f"its mode is unknown: '{'x' * 40}'"),
        ("machine/identifier", "x {: onfocus=a }", "the name of its machine is not allowed: 'x "),
        ("machine/identifier", "x" * 65, "the name of its machine is not allowed: 'x"),
        ("finished", "soon", "'soon' is not a time"),
        ("resumed", ["2026-01-02T03:04:05Z", "x"], "'x' is not a time"),
    ],
)
def test_values_that_cannot_be_are_named(store: Store, path: str, value: object, complaint: str) -> None:
    with pytest.raises(ResultsError, match=complaint):
        load(edited(store, {path: value}))


def test_a_model_that_only_predicts_has_a_prediction_of_a_way_that_there_is(store: Store) -> None:
    strange = made.with_samples(made.without(made.predicting(), ONE, BATCH, ALL), x=Samples([1], [1]))
    store.finish(made.record(made.trial(found=strange)))
    with pytest.raises(ResultsError, match="computed is empty"):
        load(store.data)


@pytest.mark.parametrize(
    ("cpu_ns", "is_possible"),
    [(None, True), (0, True), (2 * 100 * made.MS + 2 * TICK_NS, True), (2 * 100 * made.MS + 2 * TICK_NS + 1, False)],
)
def test_no_slice_uses_more_processor_time_than_the_logical_cpus_have(cpu_ns: int | None, is_possible: bool) -> None:
    """Wherever in a measurement it is."""
    slices = Samples.of([Slice(50, 100 * made.MS, 0, 0, 0), Slice(50, 100 * made.MS, 1, 0, cpu_ns)])
    predicting = made.predicting()
    for measured in (
        made.changed(made.measurement(), training={"warmup": slices}),
        made.with_samples(made.measurement(), epoch=slices),
        made.with_samples(predicting, predict_one=slices),
    ):
        run = made.record(made.trial(), made.trial(2, found=measured))  # on two logical CPUs
        with nullcontext() if is_possible else pytest.raises(ResultsError) as refused:
            require_possible_times(run, "x.json")
        if refused is not None:
            said = "x.json: trial 2 (dense, torch): a slice of 100.0 ms used 220.0 ms of processor time, more than 2"
            assert str(refused.value).startswith(said)


def test_a_run_may_have_as_many_columns_as_eight_cards_race_with_and_no_more(store: Store) -> None:
    trials = [made.trial(device=Device("cuda", number)) for number in range(MAX_COLUMNS + 1)]
    store.finish(made.record(*trials[:-1]))
    assert len(load(store.data).trials) == MAX_COLUMNS
    store.finish(made.record(*trials))
    with pytest.raises(ResultsError, match=f"{MAX_COLUMNS + 1} configurations, and a run has"):
        load(store.data)


def test_json_moves_no_cursor_and_holds_the_same() -> None:
    text = "\x9b31m\x7f\u202e\U000e0041 Größe 日"
    failure = dataclasses.replace(made.FAILURE, cause=text)
    shown = as_json([made.record(made.trial(failure=failure))])
    assert all(character.isprintable() or character == "\n" for character in shown) and "Größe 日" in shown
    assert json.loads(shown)[0]["trials"][0]["failure"]["cause"] == text


def test_what_is_not_trained_has_other_things(store: Store) -> None:
    predicting = made.without(made.predicting(), ALL)
    slices = Samples.of([Slice(3, 30, done=3, rss_bytes=1 << 20)])
    for measured in (made.with_samples(made.without(predicting, ONE, BATCH), build=slices), predicting):
        assert load(edited(store, {}, measured)).trials[0].measurement == measured
        emptied: list[Edits] = [{SAMPLES: {}}, {f"{SAMPLES}/{next(iter(measured.samples))}": NO_SLICES}]
        for edits in emptied:
            with pytest.raises(ResultsError, match="computed is empty"):
                load(edited(store, edits, measured))


def test_a_step_that_was_taken_apart_has_all_its_parts(store: Store) -> None:
    assert load(edited(store, PARTS)).trials[0].measurement is not None
    for part in (f"{SAMPLES}/{name}" for name in PARTS_OF_STEP):
        with pytest.raises(ResultsError, match="computed is empty"):
            load(edited(store, PARTS | {part: NO_SLICES}))


@pytest.mark.parametrize("stages", [(EPOCH,), (EPOCH, ONE, BATCH)])  # a race for predictions, and a later trial
def test_a_trial_may_have_left_out_short_epochs(store: Store, stages: tuple[str, ...]) -> None:
    measured = made.known(load(edited(store, {}, made.without(made.measurement(), *stages))).trials[0].measurement)
    assert measured.short_epoch is None and bool(measured.calls) is (ONE not in stages)
