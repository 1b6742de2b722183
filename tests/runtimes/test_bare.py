"""What ONNX Runtime and OpenVINO are told, and what is read back; a stand-in of each notes it down."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench import backends, variants
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Exported
from kerasbench.runtimes import Bare, get
from kerasbench.runtimes.onnxruntime import OnnxRuntime
from kerasbench.runtimes.openvino import OpenVino
from tests import made

X: Any = np.ones((1, 2), np.float32)


def runtime(name: str) -> Any:
    kind = get(name)
    assert issubclass(kind, Bare)
    feed: Any = SimpleNamespace(train=np.ones((4, 2)), inputs=lambda rows: rows)
    exported = Exported("", 0, 0.0, [1], 8, "channels_last", {})
    return kind(backends.get("torch"), exported, feed, 0, 3)


class SessionOptions:
    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.get_session_config_entry = self.entries.get
        self.add_session_config_entry = self.entries.__setitem__


def session(file: str, options: SessionOptions, providers: list[str]) -> Any:
    assert providers == ["CPUExecutionProvider"]
    given = [SimpleNamespace(name="a"), SimpleNamespace(name="b")]
    run = lambda outputs, inputs: [inputs["a"] + inputs["b"]]  # noqa: E731
    return SimpleNamespace(get_inputs=lambda: given, get_session_options=lambda: options, run=run)


def test_onnx_runtime_has_its_threads_said_and_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = SimpleNamespace(ORT_SEQUENTIAL="sequential")
    module = SimpleNamespace(SessionOptions=SessionOptions, ExecutionMode=mode, InferenceSession=session)
    monkeypatch.setitem(sys.modules, "onnxruntime", module)
    loaded = runtime("onnxruntime")
    call = loaded.open(Path("1/model.onnx"))
    assert call({"b": 2 * X, "a": X}).tolist() == [[3.0, 3.0]]  # in the order of their names
    assert (loaded.threads(), loaded.options.inter_op_num_threads, loaded.options.execution_mode) == (
        3,
        1,
        "sequential",
    )
    assert loaded.flushes()
    loaded.options.entries.clear()
    assert not loaded.flushes()


@pytest.mark.parametrize(("answers", "dtype"), [("f32", "float32"), ("bf16", "bfloat16")])
def test_openvino_is_asked_for_float32_and_refused_where_it_computes_in_something_else(
    answers: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def compile_model(model: Any, device: str, settings: dict[str, str]) -> Any:
        asked.update(settings, device=device)
        hint = SimpleNamespace(get_type_name=lambda: answers)
        known: dict[str, Any] = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 3}
        known["CPU_DENORMALS_OPTIMIZATION"] = True
        given: list[Any] = []
        data = np.zeros_like(X)
        request = SimpleNamespace(
            set_input_tensor=lambda place, tensor: given.append(tensor),
            infer=lambda: np.multiply(given[-1], 2, out=data),
            get_output_tensor=lambda place: SimpleNamespace(data=data),
        )
        return SimpleNamespace(get_property=known.get, outputs=["y"], create_infer_request=lambda: request)

    shapes: list[dict[int, list[int]]] = []
    model = SimpleNamespace(is_dynamic=lambda: True, reshape=shapes.append)  # as one that PyTorch has exported
    core = SimpleNamespace(compile_model=compile_model, read_model=lambda file: model)
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=lambda: core))
    loaded = runtime("openvino")
    assert loaded.open(Path("1/model.xml"))(X).tolist() == [[2.0, 2.0]]
    assert shapes == [{0: [1, 2]}]
    assert (asked["device"], asked["INFERENCE_PRECISION_HINT"], asked["INFERENCE_NUM_THREADS"]) == ("CPU", "f32", "3")
    assert (loaded.computes_in(), loaded.threads(), loaded.flushes()) == ([dtype], 3, True)
    resolved = made.changed(made.measurement().resolved, compute_dtypes=loaded.computes_in())
    refused = variants.BY_NAME["runtime"].ran_as("openvino", resolved, made.measurement().usage)
    assert refused == ("" if answers == "f32" else "bfloat16")


def test_neither_sends_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    for kind in (OnnxRuntime, OpenVino):
        kind.prepare(tmp_path)
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1" and os.environ["HOME"] == str(tmp_path)
    assert (tmp_path / "intel" / "openvino_telemetry").read_text() == "0"


def test_their_columns_have_an_interpreter_of_their_own() -> None:
    asked = {name: variants.interpreter(Options(runtime=name)) for name in ("onnxruntime", "openvino", "pt2")}
    assert asked == {"onnxruntime": "onnxruntime", "openvino": "openvino", "pt2": ""}
