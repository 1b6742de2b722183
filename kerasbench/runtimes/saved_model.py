"""TensorFlow's SavedModel: one graph, which its endpoint ``serve`` calls."""

from pathlib import Path
from typing import Any, ClassVar

from kerasbench.runners import Call
from kerasbench.runtimes import Runtime, export_by_keras, written_by_keras


class SavedModel(Runtime):
    name, title, package = "saved_model", "SavedModel", "tensorflow"
    exporters: ClassVar = {"tensorflow": ()}
    lines = (
        written_by_keras("exported", "tf_saved_model"),
        "import tensorflow as tf  # from here on without Keras",
        'loaded = tf.saved_model.load("exported")',
        "outputs = loaded.serve(x)",
    )

    @staticmethod
    def export(model: Any, x: Any, file: Path) -> str:
        return export_by_keras(model, x, file, "tf_saved_model")

    def open(self, file: Path) -> Call:
        import tensorflow as tf

        loaded = tf.saved_model.load(str(file))

        def call(x: Any) -> Any:
            return loaded.serve(x)  # its function alone would die with ``loaded``

        return call

    def put(self, array: Any) -> Any:
        import tensorflow as tf

        return tf.constant(array)


RUNTIME = SavedModel
