"""What is said of a race, where the golden files do not have it."""

import dataclasses

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.modes.fastest import tell
from kerasbench.modes.fastest.race import Race
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.results.run import Run
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH
from tests.records import FAST, RACED, candidate, raced
from tests.report.table import plain

EVEN = Column("jax", "cpu", Options(steps_per_execution=32))
HALF = Column("jax", "cpu", Options(dtype="mixed_bfloat16"))
LARGER = Column("jax", "cpu", Options(batch_size=320))


def race(run: Run) -> Race:
    (result,) = tell.races(Findings.of(run))
    return result


def test_the_index_has_the_winner_and_what_keras_takes_without_settings() -> None:
    result = race(raced(*[{JAX: 1.3, FAST: 1.0, TENSORFLOW: 4.1}] * 2))
    winner, others = tell.in_brief(result)
    assert winner == "JAX (steps_per_execution=8)"
    assert others.startswith("TensorFlow 4.")
    level = race(raced({JAX: 1.03, TENSORFLOW: 1.0}))
    assert tell.in_brief(level) == ["TensorFlow (undecided)", "–"]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({HALF: 1.0, TENSORFLOW: 4.0}, "A dtype of fewer digits changes the results"),
        ({LARGER: 5.0, TENSORFLOW: 2.0}, "A larger batch changes how the model learns"),
    ],
)
def test_what_else_to_know_of_the_fastest_is_said(times: dict[Column, float], said: str) -> None:
    result = race(raced(*[times] * 4, tries="batch-size" if LARGER in times else "jit"))
    assert any(plain(line).startswith(said) for line in tell.before_use(result))


def test_more_memory_is_told() -> None:
    run = raced({FAST: 1.0, TENSORFLOW: 4.0})
    peaks = zip(run.trials, (2 << 30, 1 << 30), strict=True)
    trials = [made.changed(trial, measurement={"peak_rss_bytes": peak}) for trial, peak in peaks]
    result = race(made.changed(run, trials=trials))
    assert "It needs more memory: 2,048 MiB; TensorFlow needs 1,024 MiB." in [*tell.before_use(result)]


def test_who_is_neither_near_nor_the_best_of_a_backend_nor_keras_default_is_folded_away() -> None:
    assert list(tell.TELLER.details(Findings.of(RACED))) == []
    (many,) = tell.TELLER.details(Findings.of(raced({FAST: 1.0, EVEN: 2.0, JAX: 3.0, TENSORFLOW: 4.0})))
    assert [row[0].text for row in made.known(many.table).rows] == ["JAX (steps_per_execution=32)", "JAX"]
    assert many.folded


@pytest.mark.parametrize(
    ("backend", "options", "lines"),
    [
        ("jax", Options(batch_size=128), ["export KERAS_BACKEND=jax", "model.fit(..., batch_size=128)"]),
        ("tensorflow", Options(), []),
        (
            "tensorflow",
            Options(jit=True, steps_per_execution=32),
            ["model.compile(..., jit_compile=True, steps_per_execution=32)"],
        ),
        (
            "tensorflow",
            Options(malloc="keep"),
            ["export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_ARENA_MAX=1"],
        ),
        (
            "torch",
            Options(dtype="mixed_bfloat16"),
            ["export KERAS_BACKEND=torch", 'keras.config.set_dtype_policy("mixed_bfloat16")'],
        ),
    ],
)
def test_the_lines_that_choose_a_candidate(backend: str, options: Options, lines: list[str]) -> None:
    result = race(RACED)
    assert tell.to_write(Column(backend, "cpu", options), result) == lines


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
    result = race(dataclasses.replace(record, trials=trials))
    assert tell.to_write(column, result)[-1] == line


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
    result = race(record)
    assert tell.to_write(column, result)[-1] == line
