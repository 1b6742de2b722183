"""What one child leaves and another measures: whole children, whose JAX is a stand-in of a few lines."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerasbench.processes import block
from kerasbench.processes.block import BlockMember, BlockPolicy
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Exported, Slice
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Sizes, TrialPlan, TrialRequest
from kerasbench.protocol.stages import BATCH, ONE
from kerasbench.runtimes.jax_export import PROGRAM, WEIGHTS
from kerasbench.worker import exported
from tests import made

pytestmark = pytest.mark.processes

# Of JAX what the child of an exported program uses. The program multiplies, or has the process die as it is loaded.
JAX = """
import os, types
import numpy as np
__version__ = "0.10.2"
monitoring = types.SimpleNamespace(register_event_duration_secs_listener=lambda listener: None)
devices, default_backend = list, lambda: "cpu"
device_put, block_until_ready, jit = np.asarray, lambda outputs: outputs, lambda function: function
"""
EXPORT = """
import os, types
def deserialize(program):
    if program == b"dies":
        os.abort()
    return types.SimpleNamespace(call=lambda trained, others, x: x @ trained[0])
"""
SHORTEST = TrialPlan(slice_ns=1_000_000, predict_warmup_ns=0, slices_max_ns=1, min_cycles=2, sizes=made.SIZES).of_kind(
    "predictions"
)
X, W = np.random.default_rng(0).random((64, 3), np.float32), np.random.default_rng(1).random((3, 3), np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an exporting child has left."""
    folder = tmp_path / "exported"
    for size in (1, 4):
        (folder / str(size) / "model").mkdir(parents=True)
        (folder / str(size) / "model" / PROGRAM).write_bytes(b"multiplies")
        np.savez(folder / str(size) / "model" / WEIGHTS, allow_pickle=False, **{"0/0": W})
        exported._write(folder / exported.OUTPUTS.format(size), X[:size] @ W)
    exported._write(folder / exported.ROWS, [[X, X], [X[:10], X[:10]]])
    said = Exported("jax.export 0.10.2", 100, 0.5, [1, 4], 9, "channels_last", {"keras": "3.15.1"})
    workload = {"name": "default", "train": 64, "batch": 4, "validation": 0, "test": 10, "predict_batch": None}
    facts = [dataclasses.asdict(said), workload, 0]
    (folder / exported.FACTS).write_text(json.dumps(facts))
    return folder


@pytest.fixture
def measure(tmp_path: Path, folder: Path) -> Callable[[], Outcome]:
    (tmp_path / "site" / "jax").mkdir(parents=True)
    (tmp_path / "site" / "jax" / "__init__.py").write_text(JAX)
    (tmp_path / "site" / "jax" / "export.py").write_text(EXPORT)
    paths = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    request = TrialRequest(
        "mine", "gone.py", "", "default", "jax", Device("cpu"), 0, "synthetic", SHORTEST, Options(runtime="jax_export")
    )
    request = dataclasses.replace(request, caches=str(folder))
    member = BlockMember(sys.executable, request, Limits(60.0, "--timeout 60 s"))

    class TwoCycles(BlockPolicy):
        def enough(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> bool:
            return len(slices[0]) > 1

        def sizes(self, steps_ns: Mapping[int, Sequence[int]]) -> Sizes:
            return made.SIZES

    def run() -> Outcome:
        (outcome,) = block.measure([member], TwoCycles(), lambda event: None, 1, {"PYTHONPATH": paths})
        return made.known(outcome)

    return run


def test_a_child_without_keras_measures_what_another_has_exported(measure: Callable[[], Outcome]) -> None:
    outcome = measure()
    assert outcome.failure is None, outcome.failure
    measurement = made.known(outcome.measurement)
    assert {stage: calls.batch for stage, calls in measurement.calls.items()} == {ONE: 1, BATCH: 4}
    assert made.known(measurement.passes).samples == 10
    assert made.known(made.known(measurement.exported).first_ns) > 0
    assert (measurement.parameters, measurement.resolved.compute_dtypes) == (9, ["float32"])
    assert "keras" not in measurement.resolved.versions
    assert {"load", "compare"} <= {phase.name for phase in outcome.phases}


def wrong_weight(folder: Path) -> None:
    np.savez(folder / "4" / "model" / WEIGHTS, allow_pickle=False, **{"0/0": W + np.float32(0.01)})


def wrong_layout(folder: Path) -> None:
    np.savez(folder / "4" / "model" / WEIGHTS, allow_pickle=False, **{"0/0": np.ascontiguousarray(W.T)})


def broken(folder: Path) -> None:
    (folder / "1" / "model" / PROGRAM).unlink()


def dies(folder: Path) -> None:
    (folder / "1" / "model" / PROGRAM).write_bytes(b"dies")


@pytest.mark.parametrize(
    ("plant", "code", "cause"),
    [
        (wrong_weight, Code.PARITY, "the exported model is another one: output lies 0.0"),
        (wrong_layout, Code.PARITY, "the exported model is another one: output lies 0."),
        (broken, Code.UNSUPPORTED, "jax_export cannot load what jax.export 0.10.2 has made: FileNotFoundError: "),
        (dies, Code.CRASH, "died from SIGABRT in phase 'load'"),
    ],
)
def test_what_is_wrong_with_it_is_a_row_with_its_cause(
    plant: Callable[[Path], None], code: Code, cause: str, folder: Path, measure: Callable[[], Outcome]
) -> None:
    plant(folder)
    failure = made.known(measure().failure)
    assert failure.code is code and failure.cause.startswith(cause)


def test_rows_come_back_in_their_structure(tmp_path: Path) -> None:
    rows: Any = [{"a": X, "b": [X[:2], X[:3]]}, X]
    exported._write(tmp_path / "rows.npz", rows)
    back = exported._read(tmp_path / "rows.npz")
    assert back[0]["b"][1].tolist() == X[:3].tolist() and back[1].dtype == np.float32


def test_a_report_of_many_lines_is_a_sentence() -> None:
    report = (
        "Check 'false' failed\nSummary:\n-- No conversion rule found for operations: TensorListReserve\n" + "x" * 500
    )
    said = exported._reason(RuntimeError(report), Path("/scratch"))
    assert said.startswith("RuntimeError: No conversion rule found for operations: TensorListReserve x")
    assert len(said) <= exported.MOST_CHARACTERS + len("RuntimeError: ") and "\n" not in said
    of_file = exported._reason(RuntimeError("/scratch/1/model.onnx failed"), Path("/scratch"))
    assert of_file == "RuntimeError: 1/model.onnx failed"
