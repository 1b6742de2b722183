"""A program of ``torch.export``, called as it is loaded: its operations run one after another."""

from pathlib import Path
from typing import Any, ClassVar

from kerasbench.runners import Call
from kerasbench.runtimes import Runtime, export_by_keras, written_by_keras


class Pt2(Runtime):
    name, title, package, file = "pt2", "torch.export", "torch", "model.pt2"
    exporters: ClassVar = {"torch": ()}
    lines = (
        written_by_keras("exported.pt2", "torch"),
        "import torch  # from here on without Keras",
        'program = torch.export.load("exported.pt2").module()',
        "with torch.inference_mode(): outputs = program(torch.from_numpy(x))",
    )

    @staticmethod
    def export(model: Any, x: Any, file: Path) -> str:
        import torch

        export_by_keras(model, x, file, "torch")
        return f"torch.export {torch.__version__}"

    def open(self, file: Path) -> Call:
        import torch

        module = torch.export.load(file).module()

        def call(x: Any) -> Any:
            with torch.inference_mode():
                return module(x)

        return call

    def put(self, array: Any) -> Any:
        import torch

        return torch.from_numpy(array)


RUNTIME = Pt2
