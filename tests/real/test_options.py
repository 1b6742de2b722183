"""Options, asked for and got, in real children."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerasbench.protocol.columns import Options, has_glibc
from kerasbench.protocol.messages import Code
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
        ("jax", "mixed_bfloat16", False, 1),
    ],
)
def test_a_step_computes_in_the_dtype_by_the_threads_and_with_the_memory_and_compiler_that_were_asked_for(
    faults: Path, backend: str, dtype: str, jit: bool, threads: int | None
) -> None:
    asked = Options(dtype=dtype, jit=jit, threads=threads, malloc="keep" if has_glibc() else None)
    outcome = trials.run(faults / "fine.py", backend, options=asked, protocol=trials.STEPS_ALONE)
    measurement = trials.measured(outcome)
    resolved = measurement.resolved
    assert (resolved.subnormals, resolved.malloc) == ("flushed", asked.malloc)
    assert (resolved.dtype_policy, resolved.jit) == (dtype, jit)
    if threads == 1 and hasattr(os, "sched_setaffinity"):  # elsewhere a process cannot be bound to processors
        assert resolved.threads == 1
        assert resolved.processors.isdecimal()
        assert measurement.usage.processors < 1.1
    assert resolved.compute_dtypes == [dtype.removeprefix("mixed_")]
    assert resolved.weight_dtypes == ["float64" if dtype == "float64" else "float32"]


@pytest.mark.weekly
def test_a_soak_leaves_subnormal_numbers_as_torch_has_them(faults: Path) -> None:
    protocol = dataclasses.replace(trials.STEPS_ALONE, soaks=True)
    measurement = trials.measured(trials.run(faults / "fine.py", "torch", protocol=protocol))
    assert measurement.resolved.subnormals == "kept"


@pytest.mark.parametrize(
    ("file", "backend", "options", "cause"),
    [
        ("fine.py", "torch", Options(steps_per_execution=2), "cannot run 2 steps in one execution on torch"),
        (
            "insists_on_float32.py",
            "jax",
            Options(dtype="mixed_bfloat16"),
            "asked for --dtype mixed_bfloat16, but it ran with mixed_bfloat16, layers in float32, weights in float32",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(faults: Path, file: str, backend: str, options: Options, cause: str) -> None:
    failure = made.known(trials.run(faults / file, backend, options=options).failure)
    assert failure.code is Code.UNSUPPORTED and cause in failure.cause


def test_a_second_process_finds_what_the_first_has_compiled(faults: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"options": Options(warm_cache=True), "caches": str(tmp_path)}
    first, second = (
        trials.run(faults / "fine.py", "jax", protocol=trials.STEPS_ALONE, fills_caches=fills, **asked)
        for fills in (True, False)
    )
    assert trials.measured(first).resolved.cached == 0
    assert trials.measured(second).resolved.cached != 0  # None: the disk keeps no times of access
