"""Every way to predict on every backend, with Keras and without, and what compilers tell of it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.analysis.generation import divergences, written
from kerasbench.plan import catalog
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import TrialPlan
from kerasbench.protocol.stages import BATCH, CALL, COMPILED_CALL, stage_of, text_stage
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

WRITES = dataclasses.replace(
    trials.CALLS,
    stages=(BATCH, text_stage(CALL), text_stage(COMPILED_CALL)),
    sizes=dataclasses.replace(made.SIZES, warmup_calls=2),
)
COMPILED = {"jax": None, "tensorflow": True, "torch": None}  # torch compiles for half a minute: once is enough


def with_and_without_keras(
    scenario: str, backend: str, plan: TrialPlan, jit: bool | None = None, natives: Sequence[bool | None] = (None, True)
) -> dict[Column, Measurement]:
    columns = [Column(backend, "cpu", Options(jit=jit, native=native)) for native in natives]
    file = catalog.builtin_folder() / "tiny" / f"{scenario}.py"
    return {column: trials.measured(trials.run(file, backend, options=column.options, plan=plan)) for column in columns}


@pytest.mark.parametrize(
    ("backend", "natives"),
    [
        ("jax", [None]),
        *(pytest.param(name, [None, True], marks=pytest.mark.weekly) for name in backends.built_in()),
    ],
)
def test_every_way_to_predict_with_keras_and_without(backend: str, natives: list[bool | None]) -> None:
    measured = with_and_without_keras("small_cnn", backend, trials.CALLS, COMPILED[backend], natives)
    ways = {"predict_on_batch", "call", "predict_call"} | ({"compiled_call"} if backend != "torch" else set())
    for measurement in measured.values():
        assert measurement.training is None
        assert measurement.calls.keys() == {stage_of(way, batched) for way in ways for batched in (False, True)}
        assert {calls.batch for calls in measurement.calls.values()} == {1, 4}
        assert all(calls.calls_ns and measurement.samples[stage].count for stage, calls in measurement.calls.items())
    assert trials.disagreements(measured) == {}


@pytest.mark.weekly
@pytest.mark.parametrize("backend", backends.built_in())
def test_a_language_model_and_its_baseline_write_the_same(backend: str) -> None:
    measured = with_and_without_keras("tiny_transformer", backend, WRITES)
    wrote = written({column: [measurement] for column, measurement in measured.items()})
    assert {way for _, way in wrote} == ({"call"} if backend == "torch" else {"call", "compiled_call"})
    assert {(len(texts), len(texts[0])) for texts in wrote.values()} == {(4, 32)}
    assert divergences(wrote) == []
    assert trials.disagreements(measured) == {}
    for measurement in measured.values():
        assert measurement.compiler is None or measurement.compiler.while_measured == 0
        assert all(texts.counts == list(range(1, 33)) and texts.batch == 4 for texts in measurement.texts.values())


@pytest.mark.weekly  # a language model on torch is compared with its baseline above
@pytest.mark.parametrize("backend", backends.built_in())
def test_a_transformer_s_baseline_learns_as_keras_does(backend: str) -> None:
    measured = with_and_without_keras("tiny_transformer", backend, trials.STEPS_ALONE)
    assert trials.disagreements(measured) == {}
    assert all(measurement.parity is not None for measurement in measured.values())


@pytest.mark.weekly  # it compiles for a minute
def test_torch_says_where_its_graphs_break(faults: Path) -> None:
    compiled = Options(jit=True)
    outcome = trials.run(faults / "strange.py", "torch", compiled, workload="breaks_its_graph", plan=trials.CALLS)
    measurement = trials.measured(outcome)
    assert measurement.calls.keys() >= {"call_one", "compiled_call_one"}
    compiler = made.known(measurement.compiler)
    assert sum(compiler.breaks.values()) >= 1 and made.known(compiler.programs) >= 2
    assert compiler.seconds and compiler.while_measured == 0


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_a_column_that_compiles_while_it_is_measured_is_found(faults: Path, backend: str) -> None:
    plan = dataclasses.replace(trials.STEPS_ALONE, slice_ns=20_000_000, min_cycles=4)  # ten steps at least
    measurement = trials.measured(trials.run(faults / "compiles_again.py", backend, plan=plan))
    assert made.known(measurement.compiler).while_measured > 0
    assert "again while it was measured" in measurement.facts["compiled"]
