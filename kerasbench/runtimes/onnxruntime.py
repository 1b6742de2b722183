"""ONNX Runtime, which loads what tf2onnx or PyTorch's exporter has made of the model."""

import os
from pathlib import Path
from typing import Any, ClassVar

from kerasbench.runners import Call
from kerasbench.runners.inputs import leaves
from kerasbench.runtimes import Bare, export_by_keras, written_by_keras

FLUSHES = "session.set_denormal_as_zero"


class OnnxRuntime(Bare):
    name, title, package, file = "onnxruntime", "ONNX Runtime", "onnxruntime", "model.onnx"
    exporters: ClassVar = {"tensorflow": ("tf2onnx", "onnx"), "torch": ("onnxscript", "onnx")}
    lines = (
        written_by_keras("exported.onnx", "onnx"),
        "import os, onnxruntime  # from here on without Keras",
        "options = onnxruntime.SessionOptions()",
        "options.intra_op_num_threads = os.cpu_count()",
        'session = onnxruntime.InferenceSession("exported.onnx", options, providers=["CPUExecutionProvider"])',
        "(outputs,) = session.run(None, {session.get_inputs()[0].name: x})",
    )

    @staticmethod
    def prepare(folder: Path) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"

    @staticmethod
    def export(model: Any, x: Any, file: Path) -> str:
        import onnx

        export_by_keras(model, x, file, "onnx")
        made = onnx.load(file, load_external_data=False)  # Keras takes another exporter where one fails
        return f"{made.producer_name} {made.producer_version.partition(' ')[0]}"

    def open(self, file: Path) -> Call:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.asked_threads, 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.add_session_config_entry(FLUSHES, "1")
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        names = [given.name for given in session.get_inputs()]
        self.options = session.get_session_options()

        def call(x: Any) -> Any:
            outputs = session.run(None, dict(zip(names, (array for _, array in leaves(x)), strict=True)))
            return outputs[0] if len(outputs) == 1 else outputs

        return call

    def threads(self) -> int:
        return int(self.options.intra_op_num_threads)

    def flushes(self) -> bool:
        return bool(self.options.get_session_config_entry(FLUSHES) == "1")


RUNTIME = OnnxRuntime
