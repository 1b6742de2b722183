"""What a race finds, and what is said of it where the golden files do not have it."""

import dataclasses
import math
from collections.abc import Mapping

import pytest

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.summary import summarize
from kerasbench.modes.fastest import MODE, RaceConfig, race, tell
from kerasbench.modes.registry import sentences
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.report.sections import Section
from kerasbench.report.warnings import cautions
from kerasbench.results.run import INTERRUPTED, Run, RunConfig
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH, known
from tests.records import EIGHT, FAST, RACED, candidate, raced
from tests.report.table import plain

MARGIN = 0.05
HALF, LARGER = JAX.with_options(dtype="mixed_bfloat16"), JAX.with_options(batch_size=320)


def compare(times: Mapping[str, float], error: float, disturbed: bool = False) -> race.Compare[str]:
    """Compare candidates whose times are known but for this error."""
    return lambda ours, theirs: LogEstimate(math.log(times[ours] / times[theirs]), error, 30, 3, disturbed=disturbed)


def only(record: Run) -> race.Race:
    (raced,) = tell.races(summarize(record))
    return raced


@pytest.mark.parametrize(
    ("times", "error", "slower", "is_over"),
    [
        ({"a": 1.3, "b": 1.0, "c": 1.04, "d": 1.06}, 0.001, ["a", "d"], True),  # what may be as good stays
        ({"a": 1.2, "b": 1.0}, 0.065, ["a"], True),
        ({"a": 1.2, "b": 1.0}, 0.066, [], True),
        ({"a": 1.01, "b": 1.0}, 0.0285, [], True),
        ({"a": 1.01, "b": 1.0}, 0.029, [], False),
        ({"b": 1.0}, 1.0, [], True),
    ],
)
def test_who_leaves_and_when(times: dict[str, float], error: float, slower: list[str], is_over: bool) -> None:
    for disturbed, seen in (
        (False, race.RaceState("b", slower, is_over)),
        (True, race.RaceState("b", [], len(times) == 1)),
    ):
        assert race.judge_race(list(times), compare(times, error, disturbed), MARGIN) == seen


@pytest.mark.parametrize(
    ("times", "once", "far"),
    [
        ({0: [1.0, 1.0, 3.0], 1: [2.0, 1.6, 1.7], 2: [1.5, 9.0, 9.0]}, 0.0, [1]),  # each of its slices is far behind
        ({0: [1.0, 1.0, 1.0], 1: [9.0, 9.0]}, 0.0, []),  # too few
        ({0: [1.0, 1.0, 1.0], 1: [9.0, 9.0, 9.0]}, 5.0, []),  # the first may cost as much besides
        ({}, 0.0, []),
    ],
)
def test_who_is_far_behind_within_a_block(times: dict[int, list[float]], once: float, far: list[int]) -> None:
    assert race.far_behind(times, MARGIN, once) == far


def test_one_block_is_known_by_what_blocks_differ_by_and_several_by_their_own_scatter_too() -> None:
    single, several = race.interval([0.5], 0.07), race.interval([0.3, 0.5, 0.7], 0.07)
    assert single.log_error == pytest.approx(0.07)
    assert known(several.log_error) > 0.07 / math.sqrt(3)
    assert (single.degrees, several.degrees) == (race.PRIOR_DEGREES, race.PRIOR_DEGREES + 2)


def test_what_others_disturbed_is_not_called_as_good() -> None:
    record = raced(*[{JAX: 1.0, FAST: 1.001, TENSORFLOW: 4.0}] * 4)
    busy = dataclasses.replace(record, trials=[made.disturbed(trial) for trial in record.trials])
    assert (len(only(record).equals), len(only(busy).equals)) == (1, 0)


def test_an_interruption_between_the_blocks_of_a_round_is_not_taken_for_leaving() -> None:
    """Where memory holds two candidates, a round has several blocks."""
    record = raced({TENSORFLOW: 1.05, JAX: 1.0}, {TENSORFLOW: 1.05})
    found = only(dataclasses.replace(record, rounds_completed=1, stopped_because=INTERRUPTED))
    assert [(column, found.rounds_of(column)) for column in found.candidates] == [(JAX, 1), (TENSORFLOW, 1)]
    assert not found.left


def test_two_races_are_told_by_a_sentence_each_and_none_for_all() -> None:
    record = raced({JAX: 1.0, TENSORFLOW: 4.0})
    trials = [dataclasses.replace(trial, scenario=name) for name in ("dense", "conv") for trial in record.trials]
    summary = summarize(dataclasses.replace(made.record(*trials), config=record.config))
    assert sentences(summary) == [tell.sentence(raced) for raced in tell.races(summary)]
    assert len(tell.races(summary)) == 2
    title, told = tell.FastestReport().title(summary), sentences(summary)
    assert not any(line.rstrip(".") in title for line in told)  # each stands above its own table
    first, second = tell.FastestReport().sections(summary, {})
    assert [plain(first.intro[0]), second.title] == told


def section_of(record: Run) -> Section:
    return next(iter(tell.FastestReport().sections(summarize(record), {})))


def test_lines_to_paste_have_a_place_and_what_is_undecided_has_none_but_says_what_decides() -> None:
    decided, undecided = raced(*[{FAST: 1.0, TENSORFLOW: 4.0}] * 4), raced({JAX: 1.03, FAST: 1.0, TENSORFLOW: 4.0})
    section = section_of(decided)
    assert section.code and list(section.intro) == [
        "Paste this into your script (export: into the shell that starts it):"
    ]
    (scenario,) = decided.scenarios
    script = dataclasses.replace(scenario, description=dataclasses.replace(scenario.description, script=True))
    _, more = section_of(dataclasses.replace(decided, scenarios=[script])).intro
    assert plain(more).startswith("If the script sets KERAS_BACKEND itself, change it there")
    section, summary = section_of(undecided), summarize(undecided)
    assert (list(section.code), list(section.intro)) == ([], [])
    title = tell.FastestReport().title(summary)
    assert title.startswith("dense: undecided which is fastest; JAX (steps_per_execution=8) leads so far")
    (line,) = map(plain, tell.FastestReport().advice(summary))
    assert line.startswith(
        "Undecided: another candidate may be faster by more than 5 %. To decide it: kerasbench fastest "
    )
    assert line.endswith("--rounds 8.")


def test_what_other_programs_disturbed_is_not_sent_into_more_rounds() -> None:
    record = raced({JAX: 1.03, TENSORFLOW: 1.0})
    busy = dataclasses.replace(record, trials=[made.disturbed(trial) for trial in record.trials])
    summary = summarize(busy)
    assert list(tell.FastestReport().advice(summary)) == []
    slow = raced({JAX: 1.03, TENSORFLOW: 1.0, TORCH: 40.0})
    trials = [made.disturbed(trial) if trial.backend == "torch" else trial for trial in slow.trials]
    assert list(tell.FastestReport().advice(summarize(dataclasses.replace(slow, trials=trials)))) == []
    warned = [plain(line) for line in cautions(summary)[0]]
    assert sum("ther programs used the CPU" in line for line in warned) == 1  # which says what to do


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (["export KERAS_BACKEND=jax"], "Paste this into the shell that starts your script:"),
        (["model.compile(..., jit_compile=False)"], "Paste this into your script:"),
    ],
)
def test_lines_of_one_kind_are_pasted_in_one_place(lines: list[str], place: str) -> None:
    assert tell.place_of(lines) == place


def test_another_backend_than_keras_takes_is_named_before_its_settings() -> None:
    record = raced(*[{FAST: 1.0, JAX: 4.0}] * 4)
    assert "; JAX without settings takes 4.0×" in tell.sentence(only(record))


def test_larger_batches_are_compared_by_the_time_of_a_sample() -> None:
    found = only(raced({JAX: 1.0, LARGER: 5.0, TENSORFLOW: 2.0}, tries="batch-size"))
    assert (found.metric, found.candidates) == ("train_samples_per_s", [LARGER, JAX, TENSORFLOW])
    assert [contrast.ratio.value for contrast in found.contrasts.values()] == pytest.approx([2, 4])
    assert known(found.gain).value == pytest.approx(4)
    assert found.longer_start is None  # its steps are of other samples


def test_a_longer_first_step_pays_after_some_steps_and_more_memory_is_told() -> None:
    record = raced({JAX: 1.0, TENSORFLOW: 4.0})
    costly = {"training": {"first_step_ns": 3300 * made.MS}, "peak_rss_bytes": 2 << 30}
    record.trials[0] = made.changed(record.trials[0], measurement=costly)
    found = only(record)
    assert found.longer_start == pytest.approx((3300, 300, 3000 / 3.1), rel=0.05)
    lines = [plain(line) for line in tell.before_use(found)]
    assert any(line.startswith("Its first step takes 3.30 s, that of TensorFlow 0.300 s.") for line in lines)
    assert "It needs more memory: 2,048 MiB; TensorFlow needs 512 MiB." in lines


@pytest.mark.parametrize(("batch", "metric"), [(32, "predict_batch_p50_ms"), (1, "predict_p50_ms")])
def test_where_a_batch_is_one_sample_a_race_for_predictions_is_about_single_ones(batch: int, metric: str) -> None:
    workload = dataclasses.replace(made.workload(), batch=batch)
    assert race.metric_of(RaceConfig("predict"), workload, "train_step_ms") == metric


def test_where_all_have_failed_or_nobody_was_measured_by_it_there_is_no_race() -> None:
    assert race.judge_race([], compare({}, 0.1), MARGIN) is None
    predicting = raced({JAX: 1.0, TENSORFLOW: 4.0})
    predicting.config = MODE.configured(RunConfig(), RaceConfig("predict"))
    predicting.trials = [
        dataclasses.replace(trial, measurement=made.with_predictions(made.known(trial.measurement)))
        for trial in predicting.trials
    ]
    for record in (raced(failed=TORCH), raced({}, failed=TORCH), predicting):
        assert tell.races(summarize(record)) == []


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([JAX, TENSORFLOW, Column("tensorflow", "cpu", EIGHT)], TENSORFLOW),
        ([Column("tensorflow", "gpu"), TENSORFLOW], Column("tensorflow", "gpu")),
        ([FAST, JAX], JAX),  # the backend that Keras would take is not there
        ([FAST], None),
    ],
)
def test_the_baseline_is_keras_without_settings(columns: list[Column], expected: Column | None) -> None:
    assert race.baseline_of(columns, RaceConfig(baseline="tensorflow")) == expected


@pytest.mark.parametrize(
    ("error", "is_over", "choice"),
    [(0.005, True, "b"), (0.022, True, "a"), (0.022, False, "b")],  # until it is over nothing is said to be proven
)
def test_of_two_about_as_fast_the_simpler_is_chosen(error: float, is_over: bool, choice: str) -> None:
    beside = compare({"a": 1.0, "b": 1.02}, error)
    found = race.RaceState("a", [], is_over)
    assert race.simplest(found, ["a", "b"], beside, MARGIN, lambda candidate: (candidate == "a", 0)) == choice


def test_the_index_has_the_winner_and_what_keras_takes_without_settings() -> None:
    record = raced(*[{JAX: 1.3, FAST: 1.0, TENSORFLOW: 4.1}] * 2)
    ((_, kind, (winner, others)),) = tell.FastestReport().briefs(summarize(record))
    assert (kind, winner) == ("race", "JAX (steps_per_execution=8)")
    assert others.startswith("TensorFlow 4.")
    ((_, _, level),) = tell.FastestReport().briefs(summarize(raced({JAX: 1.03, TENSORFLOW: 1.0})))
    assert level == ["TensorFlow (undecided)", "–"]


def test_what_else_a_setting_changes_is_said() -> None:
    lines = tell.before_use(only(raced(*[{HALF: 1.0, TENSORFLOW: 4.0}] * 4)))
    assert any(plain(line).startswith("A dtype of fewer digits changes the results") for line in lines)


def test_who_is_neither_near_nor_the_best_of_a_backend_nor_keras_default_is_folded_away() -> None:
    assert list(tell.FastestReport().details(summarize(RACED))) == []
    even = JAX.with_options(steps_per_execution=32)
    (many,) = tell.FastestReport().details(summarize(raced({FAST: 1.0, even: 2.0, JAX: 3.0, TENSORFLOW: 4.0})))
    assert [row[0].text for row in known(many.table).rows] == ["JAX (steps_per_execution=32)", "JAX"]
    assert many.folded


@pytest.mark.parametrize(
    ("column", "lines"),
    [
        (JAX.with_options(batch_size=128), ["export KERAS_BACKEND=jax", "model.fit(..., batch_size=128)"]),
        (TENSORFLOW, []),
        (
            TENSORFLOW.with_options(jit=True, steps_per_execution=32, malloc="keep"),
            [
                "export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_ARENA_MAX=1",
                "model.compile(..., jit_compile=True, steps_per_execution=32)",
            ],
        ),
        (HALF, ["export KERAS_BACKEND=jax", 'keras.config.set_dtype_policy("mixed_bfloat16")']),
    ],
)
def test_the_lines_that_choose_a_candidate(column: Column, lines: list[str]) -> None:
    assert tell.to_write(column, only(RACED)) == lines


@pytest.mark.parametrize(
    ("backend", "processors", "line"),
    [
        ("torch", "0,2", "taskset --cpu-list 0,2 python your_script.py"),
        ("torch", "", "export OMP_NUM_THREADS=2"),  # no program of macOS keeps one on some processors
        ("tensorflow", "", "tf.config.threading.set_intra_op_parallelism_threads(2)"),
    ],
)
def test_fewer_threads_are_had_as_they_were_measured(backend: str, processors: str, line: str) -> None:
    column = Column(backend, "cpu", Options(threads=2))
    record = raced({column: 1.0, TENSORFLOW: 4.0}, tries="threads")
    trials = [made.changed(trial, measurement={"resolved": {"processors": processors}}) for trial in record.trials]
    assert tell.to_write(column, only(dataclasses.replace(record, trials=trials)))[-1] == line


@pytest.mark.parametrize(
    ("platform", "column", "line"),
    [
        ("cuda", JAX, "export CUDA_VISIBLE_DEVICES=-1"),
        ("mps", JAX, "export JAX_PLATFORMS=cpu"),
        ("mps", TORCH, "export KERAS_TORCH_DEVICE=cpu"),
        ("mps", TENSORFLOW, 'tf.config.set_visible_devices([], "GPU")'),
        ("cuda", Column("jax", "gpu:1"), "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1"),
    ],
)
def test_what_is_not_the_first_device_has_to_be_chosen(platform: str, column: Column, line: str) -> None:
    record = raced({TENSORFLOW: 1.0, JAX: 3.0})
    record.trials.append(made.in_block(1, candidate(JAX, 5.0), backend="jax", device=Device(platform)))
    assert tell.to_write(column, only(record))[-1] == line
