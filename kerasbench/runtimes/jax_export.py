"""A program of ``jax.export``: StableHLO, which XLA compiles where it is loaded. Keras has no such format."""

from pathlib import Path
from typing import Any, ClassVar

from kerasbench.runners import Call
from kerasbench.runners.inputs import mapped
from kerasbench.runtimes import Runtime

PROGRAM, WEIGHTS = "program.bin", "weights.npz"


class JaxExport(Runtime):
    name, title, package = "jax_export", "jax.export", "jax"
    exporters: ClassVar = {"jax": ()}
    lines = (
        "import jax, jax.export",
        "state = [[v.value for v in group] for group in (model.trainable_variables, model.non_trainable_variables)]",
        "call = jax.jit(lambda *given: model.stateless_call(*given, training=False)[0])",
        'open("exported.jax", "wb").write(jax.export.export(call)(*state, x).serialize())',
        'program = jax.jit(jax.export.deserialize(open("exported.jax", "rb").read()).call)',
        "outputs = program(*state, x)  # the weights are arguments: np.savez keeps them beside the program",
    )

    @staticmethod
    def export(model: Any, x: Any, file: Path) -> str:
        import jax
        import numpy as np
        from jax import export

        arguments = {"training": False} if model._call_has_training_arg else {}
        groups = (model.trainable_variables, model.non_trainable_variables)
        state = [[np.asarray(variable.value) for variable in group] for group in groups]
        # Weights are arguments: what is closed over becomes a constant of the program.
        call = jax.jit(lambda *arrays: model.stateless_call(*arrays, **arguments)[0])
        program = export.export(call)(*state, x)
        file.mkdir()
        (file / PROGRAM).write_bytes(program.serialize())
        named = ((f"{group}/{place}", array) for group, of in enumerate(state) for place, array in enumerate(of))
        np.savez(file / WEIGHTS, **dict(named))
        return f"jax.export {jax.__version__}"

    def open(self, file: Path) -> Call:
        import jax
        import numpy as np
        from jax import export

        program = export.deserialize((file / PROGRAM).read_bytes())
        state: list[list[Any]] = [[], []]
        with np.load(file / WEIGHTS) as weights:
            for name in weights.files:  # in the order in which they were written
                state[int(name[0])].append(jax.device_put(weights[name]))
        call = jax.jit(program.call)
        return lambda x: jax.block_until_ready(call(*state, x))

    def on_arrays(self, x: Any) -> Any:
        return mapped(self.to_numpy, self.forward(x))  # a call moves them itself, sooner than ``device_put``

    def put(self, array: Any) -> Any:
        import jax

        return jax.device_put(array)


RUNTIME = JaxExport
