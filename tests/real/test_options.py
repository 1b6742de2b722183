"""Options, asked for and got, in real children; callbacks, the published epochs, and what cannot be compared."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerasbench.protocol.columns import Options, has_glibc
from kerasbench.protocol.messages import Code
from kerasbench.protocol.stages import EPOCH
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real


@pytest.fixture
def all_processors() -> Iterator[None]:
    """Let children choose from all processors, although tests that run side by side have one each."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    yield
    os.sched_setaffinity(0, mine)


@pytest.mark.usefixtures("all_processors")
@pytest.mark.parametrize(
    ("backend", "dtype", "jit", "threads"),
    [
        ("tensorflow", "float64", True, None),
        ("torch", "mixed_bfloat16", False, 1),
        pytest.param("jax", "mixed_bfloat16", False, 1, marks=pytest.mark.weekly),
    ],
)
def test_a_step_computes_in_the_dtype_by_the_threads_and_with_the_memory_and_compiler_that_were_asked_for(
    faults: Path, backend: str, dtype: str, jit: bool, threads: int | None
) -> None:
    asked = Options(dtype=dtype, jit=jit, threads=threads, malloc="keep" if has_glibc() else None)
    outcome = trials.run(faults / "fine.py", backend, options=asked, plan=trials.STEPS_ALONE)
    measurement = trials.measured(outcome)
    resolved = measurement.resolved
    assert (resolved.subnormals, resolved.malloc) == ("flushed", asked.get("malloc"))
    assert (resolved.dtype_policy, resolved.jit) == (dtype, jit)
    if threads == 1 and hasattr(os, "sched_setaffinity"):  # elsewhere a process cannot be bound to processors
        assert resolved.threads == 1
        assert resolved.processors.isdecimal()
        assert measurement.usage.processors < 1.1
    assert resolved.compute_dtypes == [dtype.removeprefix("mixed_")]
    assert resolved.weight_dtypes == ["float64" if dtype == "float64" else "float32"]


@pytest.mark.weekly
def test_a_soak_leaves_subnormal_numbers_as_torch_has_them(faults: Path) -> None:
    plan = dataclasses.replace(trials.STEPS_ALONE, fixed_time=True, keeps_subnormals=True)
    measurement = trials.measured(trials.run(faults / "fine.py", "torch", plan=plan))
    assert measurement.resolved.subnormals == "kept"


@pytest.mark.parametrize(
    ("backend", "options", "cause"),
    [
        ("torch", Options(steps_per_execution=2), "cannot run 2 steps in one execution on torch"),
        (
            "jax",
            Options(dtype="mixed_bfloat16"),
            "asked for --dtype mixed_bfloat16, but it ran with mixed_bfloat16, layers in float32, weights in float32",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(faults: Path, backend: str, options: Options, cause: str) -> None:
    outcome = trials.run(faults / "strange.py", backend, options, workload="insists_on_float32")
    failure = made.known(outcome.failure)
    assert failure.code is Code.UNSUPPORTED and cause in failure.cause


@pytest.mark.weekly
def test_tensorflow_is_fed_batches_that_are_made_once(faults: Path) -> None:
    asked = Options(feed="tf.data-cached", steps_per_execution=2)
    measured = trials.measured(trials.run(faults / "fine_lists.py", "tensorflow", asked, plan=trials.SHORTEST))
    assert measured.resolved.feed == "tf.data" and made.known(measured.parity).losses
    from_arrays = trials.measured(trials.run(faults / "fine_lists.py", "tensorflow", plan=trials.SHORTEST))
    assert from_arrays.resolved.feed == "arrays"
    assert made.known(measured.parity).losses == pytest.approx(made.known(from_arrays.parity).losses, rel=1e-4)


def test_a_second_process_finds_what_the_first_has_compiled(faults: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"options": Options(warm_cache=True), "caches": str(tmp_path)}
    first, second = (
        trials.run(faults / "fine.py", "jax", plan=trials.STEPS_ALONE, fills_caches=fills, **asked)
        for fills in (True, False)
    )
    assert trials.measured(first).resolved.cached == 0
    assert trials.measured(second).resolved.cached != 0  # None: the disk keeps no times of access


def test_a_scenario_s_callbacks_and_its_validation_are_part_of_timed_training(faults: Path) -> None:
    failure = trials.run(faults / "needs_its_callback.py", "jax").failure
    assert failure is not None and (failure.code, failure.phase) == (Code.ERROR, "train")
    assert "RuntimeError: saw ['loss', 'val_loss']" in failure.cause


@pytest.mark.weekly
def test_the_published_protocol_runs_every_epoch() -> None:
    plan = trials.SHORTEST.of_kind("published")
    measurement = trials.measured(trials.builtin("tabular_conv1d", "default", "jax", plan=plan))
    published = made.known(measurement.published)
    assert len(published.epochs_ns) == 10
    assert sum(published.epochs_ns) <= published.total_ns
    assert {name: len(values) for name, values in published.history.items()} == dict.fromkeys(
        ("loss", "accuracy", "val_loss", "val_accuracy"), 10
    )
    assert len(published.predict_ns) == 2
    assert made.taught(measurement).steps == 250
    assert made.trained(measurement).first_step_ns is None
    assert len(measurement.samples[EPOCH]) >= 1


# Random numbers that cannot be switched off; a second model that cannot be built.
@pytest.mark.parametrize("name", ["distorts_pictures", "builds_once"])
def test_what_cannot_be_judged_is_measured_all_the_same(faults: Path, name: str) -> None:
    outcome = trials.run(faults / "strange.py", "jax", workload=name, plan=trials.STEPS_ALONE)
    assert trials.measured(outcome).parity is None
