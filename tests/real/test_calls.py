"""Every way to predict on every backend, with Keras and without, and what compilers tell of it."""

import dataclasses
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.analysis import parity
from kerasbench.analysis.generation import divergences, written
from kerasbench.plan import catalog
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.stages import CALLS as WAYS
from tests import made
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.traced]

CALLS = dataclasses.replace(trials.SHORTEST, kind="calls")
TINY = catalog.builtin_folder() / "tiny"
COMPILED = {"jax": None, "tensorflow": True, "torch": None}  # torch compiles for half a minute: once is enough


def called(backend: str, options: Options) -> Measurement:
    return trials.measured(trials.run(TINY / "small_cnn.py", backend, options=options, protocol=CALLS))


@pytest.mark.parametrize("backend", backends.names())
def test_every_way_to_predict_with_keras_and_without(backend: str) -> None:
    modes = [Options(jit=COMPILED[backend], native=native) for native in (False, True)]
    found = {Column(backend, "cpu", options): called(backend, options) for options in modes}
    ways = {"predict_on_batch", "call", "predict_call"} | ({"compiled_call"} if backend != "torch" else set())
    for measurement in found.values():
        assert measurement.training is None
        assert {(one.way, one.batch) for one in measurement.prediction} == {
            (way, batch) for way in ways for batch in (1, 4)
        }
        assert all(one.calls_ns and one.slices.count for one in measurement.prediction)
    assert parity.judge_parity({column: ("cpu", one) for column, one in found.items()}) == {}


WRITES = dataclasses.replace(
    CALLS, sizes=dataclasses.replace(made.SIZES, left_out=["predict_one", "predict_all", *WAYS], warmup_calls=2)
)


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.weekly] * (name != "torch")) for name in backends.names()]
)
def test_a_language_model_and_its_baseline_write_the_same(backend: str) -> None:
    modes = [Options(native=native) for native in (False, True)]
    file = TINY / "tiny_transformer.py"
    found = {
        Column(backend, "cpu", options): [trials.measured(trials.run(file, backend, options=options, protocol=WRITES))]
        for options in modes
    }
    wrote = written(found)
    assert {way for _, way in wrote} == ({"call"} if backend == "torch" else {"call", "compiled_call"})
    assert {(len(texts), len(texts[0])) for texts in wrote.values()} == {(4, 32)}
    assert divergences(wrote) == []
    for measurement in (one for (one,) in found.values()):
        assert measurement.compiler is None or measurement.compiler.while_measured == 0
        assert all(one.counts == list(range(1, 33)) and one.batch == 4 for one in measurement.generations)


@pytest.mark.weekly  # it compiles for a minute
def test_torch_says_where_its_graphs_break(faults: Path) -> None:
    found = trials.measured(
        trials.run(faults / "breaks_its_graph.py", "torch", options=Options(jit=True), protocol=CALLS)
    )
    assert {one.way for one in found.prediction} >= {"call", "compiled_call"}
    assert found.compiler is not None
    assert sum(found.compiler.breaks.values()) >= 1
    assert (found.compiler.programs or 0) >= 2
    assert found.compiler.seconds
    assert found.compiler.while_measured == 0


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_a_column_that_compiles_while_it_is_measured_is_found(faults: Path, backend: str) -> None:
    again = trials.measured(trials.run(faults / "compiles_again.py", backend, protocol=trials.STEPS_ALONE))
    once = trials.measured(trials.run(faults / "fine.py", backend, protocol=trials.STEPS_ALONE))
    assert again.compiler is not None and once.compiler is not None
    assert again.compiler.while_measured > 0
    assert once.compiler.while_measured == 0


@pytest.mark.parametrize("backend", backends.names())
def test_a_transformer_s_baseline_learns_as_keras_does(backend: str) -> None:
    found = {
        Column(backend, "cpu", options): trials.measured(
            trials.run(TINY / "tiny_transformer.py", backend, options=options, protocol=trials.STEPS_ALONE)
        )
        for options in (Options(), Options(native=True))
    }
    assert parity.judge_parity({column: ("cpu", one) for column, one in found.items()}) == {}
    assert all(one.parity is not None for one in found.values())
