"""OpenVINO. By itself it computes a float32 model in bfloat16 where a processor has that."""

import os
from pathlib import Path
from typing import Any, ClassVar

from kerasbench.runners import Call
from kerasbench.runners.inputs import leaves, mapped
from kerasbench.runtimes import Bare, export_by_keras, written_by_keras

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
CONFIGURATION = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_PRECISION_HINT": "f32"}
FLUSHES = "CPU_DENORMALS_OPTIMIZATION"


class OpenVino(Bare):
    name, title, package, file = "openvino", "OpenVINO", "openvino", "model.xml"
    exporters: ClassVar = {"tensorflow": ("openvino",), "torch": ("openvino",)}
    lines = (
        written_by_keras("exported.xml", "openvino"),
        "import openvino  # from here on without Keras",
        'settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}',
        'compiled = openvino.Core().compile_model("exported.xml", "CPU", settings)',
        "outputs = compiled(x)[0]",
    )

    @staticmethod
    def prepare(folder: Path) -> None:
        """Opt out of its telemetry, in a home of its own: it sends as it is imported."""
        (folder / "intel").mkdir(exist_ok=True)
        (folder / "intel" / "openvino_telemetry").write_text("0")
        os.environ["HOME"] = str(folder)

    @staticmethod
    def export(model: Any, x: Any, file: Path) -> str:
        import openvino

        return f"{export_by_keras(model, x, file, 'openvino')}, openvino {openvino.__version__.partition('-')[0]}"

    def open(self, file: Path) -> Call:
        import openvino

        settings = CONFIGURATION | {"INFERENCE_NUM_THREADS": str(self.asked_threads), FLUSHES: "YES"}
        core, size = openvino.Core(), int(file.parent.name)
        model = core.read_model(str(file))
        if model.is_dynamic():  # as PyTorch's is, whatever signature it was exported with
            arrays = (array for _, array in leaves(self.feed.inputs(self.feed.train[:size])))
            model.reshape({place: list(array.shape) for place, array in enumerate(arrays)})
        self.compiled = compiled = core.compile_model(model, "CPU", settings)
        request = compiled.create_infer_request()
        outputs = [request.get_output_tensor(place).data for place in range(len(compiled.outputs))]
        predicted = outputs[0] if len(outputs) == 1 else outputs  # static shapes: always in the same memory

        def call(x: Any) -> Any:
            """Return what the next call overwrites."""
            for place, (_, tensor) in enumerate(leaves(x)):
                request.set_input_tensor(place, tensor)
            request.infer()
            return predicted

        return call

    def put(self, array: Any) -> Any:
        import openvino

        return openvino.Tensor(array, shared_memory=True)

    def on_arrays(self, x: Any) -> Any:
        return mapped(lambda array: array.copy(), self.forward(self.place(x)))

    def computes_in(self) -> list[str]:
        hint = str(self.compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name())
        return [DTYPES.get(hint, hint)]

    def threads(self) -> int:
        return int(self.compiled.get_property("INFERENCE_NUM_THREADS"))

    def flushes(self) -> bool:
        return bool(self.compiled.get_property(FLUSHES))


RUNTIME = OpenVino
