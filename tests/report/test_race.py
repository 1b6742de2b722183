import dataclasses

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.report import markdown, page, race, svg
from kerasbench.report.answer import sentences
from kerasbench.report.sections import BarChart
from tests import made
from tests.analysis.test_race import EIGHT, JAX, TENSORFLOW, TORCH, measured, raced

FAST = Column("jax", "cpu", EIGHT)
EVEN = Column("jax", "cpu", Options(steps_per_execution=32))
HALF = Column("jax", "cpu", Options(dtype="mixed_bfloat16"))
LARGER = Column("jax", "cpu", Options(batch_size=320))
RECORD = raced({JAX: 1.04, FAST: 1.0, TENSORFLOW: 4.0, TORCH: 9.0}, {JAX: 1.04, FAST: 1.0, TENSORFLOW: 4.1})


def test_the_answer_says_what_is_fastest_what_to_write_what_is_as_good_and_what_left() -> None:
    text = markdown.rendered(page.screen(findings(RECORD)))
    assert "JAX with steps-per-execution=8 trains dense 4." in text
    assert "as fast as Keras does here without settings (TensorFlow)." in text
    assert "To use it: export KERAS_BACKEND=jax; model.compile(..., steps_per_execution=8)." in text
    assert "| undecided " in text
    assert "4 candidates, 2 rounds; 1 of them dropped out after the first." in text
    assert "## Training step" not in text
    assert "| too slow (Keras without settings, measured to the end)" in text


def test_the_index_has_the_winner_and_what_keras_takes_without_settings() -> None:
    (found,) = findings(raced(*[{JAX: 1.3, FAST: 1.0, TENSORFLOW: 4.1}] * 2)).races
    winner, others = race.in_brief(found)
    assert winner == "JAX with steps-per-execution=8"
    assert others.startswith("without settings (TensorFlow) 4.")
    (level,) = findings(raced({JAX: 1.03, TENSORFLOW: 1.0})).races
    assert race.in_brief(level) == ["TensorFlow (not proven)", "–"]


def test_where_keras_is_fastest_as_it_is_there_is_nothing_to_write() -> None:
    (found,) = findings(raced({JAX: 2.0, TENSORFLOW: 1.0})).races
    assert race.sentence(found) == "TensorFlow trains dense fastest here: it is what Keras does without settings."
    assert not any(line.startswith("To use it") for line in race.details(found))


def test_a_backend_that_keras_does_not_take_by_itself_is_written_down() -> None:
    (found,) = findings(raced({JAX: 1.0, TORCH: 2.0})).races  # Keras would take TensorFlow, which is not among them
    assert race.sentence(found).endswith("JAX trains dense fastest here, with no other setting.")
    assert "To use it: export KERAS_BACKEND=jax." in race.details(found)
    (faster,) = findings(raced({FAST: 1.0, TORCH: 2.0})).races
    assert " as fast as torch does here without settings." in race.sentence(faster)
    assert "(without settings, measured to the end)" in markdown.rendered(
        page.screen(findings(raced({FAST: 1.0, TORCH: 2.0})))
    )


def test_what_is_not_proven_is_said() -> None:
    found = findings(raced({JAX: 1.0, TENSORFLOW: 1.03}))
    (line,) = sentences(found)
    assert "This is not proven: another may be faster by more than 5 %." in line


def test_a_larger_batch_is_told_by_its_samples_and_with_what_it_changes() -> None:
    (found,) = findings(raced({JAX: 1.0, LARGER: 5.0, TENSORFLOW: 2.0}, tries="batch-size")).races
    assert "as fast, in samples a second, as Keras does here without settings (TensorFlow)." in race.sentence(found)
    samples = made.changed(found, baseline=found.leader)
    assert "fastest here, in samples a second, with no other setting." in race.sentence(samples)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({FAST: 1.0, EVEN: 1.001, TENSORFLOW: 4.0}, "Within 5 % of it: JAX with steps-per-execution=32."),
        ({HALF: 1.0, TENSORFLOW: 4.0}, "A dtype of fewer digits changes the results"),
        ({LARGER: 5.0, TENSORFLOW: 2.0}, "A larger batch changes how the model learns"),
    ],
)
def test_what_else_to_know_of_the_fastest_is_said(times: dict[Column, float], said: str) -> None:
    (found,) = findings(raced(*[times] * 4, tries="batch-size" if LARGER in times else "jit")).races
    assert any(line.startswith(said) for line in race.details(found))


def test_more_memory_is_told() -> None:
    record = raced({FAST: 1.0, TENSORFLOW: 4.0})
    for index, trial in enumerate(record.trials):
        peak_bytes = 2 << 30 if trial.backend == "jax" else 1 << 30
        record.trials[index] = made.changed(trial, measurement={"peak_rss_bytes": peak_bytes})
    (found,) = findings(record).races
    assert "It needs more memory: 2,048 MiB, against 1,024 MiB of TensorFlow." in race.details(found)


@pytest.mark.parametrize(
    ("column", "lines"),
    [
        (
            Column("jax", "cpu", Options(batch_size=128)),
            ["export KERAS_BACKEND=jax", "model.fit(..., batch_size=128)"],
        ),
        (TENSORFLOW, []),
        (
            Column("tensorflow", "cpu", Options(jit=True, steps_per_execution=32)),
            ["model.compile(..., jit_compile=True, steps_per_execution=32)"],
        ),
        (
            Column("tensorflow", "cpu", Options(malloc="keep")),
            ["export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_ARENA_MAX=1"],
        ),
        (
            Column("torch", "cpu", Options(dtype="mixed_bfloat16")),
            ["export KERAS_BACKEND=torch", 'keras.config.set_dtype_policy("mixed_bfloat16")'],
        ),
    ],
)
def test_the_lines_that_choose_a_candidate(column: Column, lines: list[str]) -> None:
    (found,) = findings(RECORD).races
    assert race.to_write(column, found) == lines


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
    trials = [made.changed(one, measurement={"resolved": {"processors": processors}}) for one in record.trials]
    (found,) = findings(dataclasses.replace(record, trials=trials)).races
    assert race.to_write(column, found)[-1] == line


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
    record.trials.append(made.in_block(1, measured(JAX, 5.0), backend="jax", device=Device(platform)))
    (found,) = findings(record).races
    assert race.to_write(column, found)[-1] == line


def test_the_ladder_has_a_bar_for_each_candidate_that_was_measured_and_one_scale() -> None:
    (near,), (far,) = (findings(one).races for one in (RECORD, raced({JAX: 1.0, TENSORFLOW: 90.0})))
    section = race.section([near, far])
    chart = section.chart
    assert isinstance(chart, BarChart) and chart.logarithmic
    assert "with steps-per-execution=8" in svg.file(chart)
    (end,) = {group.end for group in chart.groups}
    assert end > max(bar.size for group in chart.groups for bar in group.bars) > 80
