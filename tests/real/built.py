"""Say how a workload's model is built, and count what it does in the program that JAX traces for a forward pass.

    python built.py FILE...

prints JSON: for each file and workload the fields of ``Built``. Nothing is computed.
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import keras
import numpy as np
from jax.extend.core import jaxprs_in_params

from kerasbench.scenario import Scenario, load


class Built(NamedTuple):
    """A model as it is built and compiled."""

    parameters: int
    operations: int  # of all products, for one sample
    loss: str
    from_logits: bool
    optimizer: str
    rate: float
    checkpoint: list[str]  # what the scenario's callbacks are asked to do


def main(files: list[str]) -> dict[str, dict[str, dict[str, Any]]]:
    begin_with_zeros()
    models: dict[str, dict[str, dict[str, Any]]] = {}
    for file in map(Path, files):
        scenario, _ = load(file)
        models[file.stem] = {workload.name: built(scenario, workload)._asdict() for workload in scenario.workloads}
    return models


def begin_with_zeros() -> None:
    """Have variables made without random numbers: for each shape JAX would compile what draws them."""
    initialize = keras.Variable.__init__

    def zeros(self: Any, initializer: Any, shape: Any = None, *args: Any, **named: Any) -> None:
        first = initializer if shape is None else lambda shape, dtype=None: np.zeros(shape, dtype)
        initialize(self, first, shape, *args, **named)

    keras.Variable.__init__ = zeros


def built(scenario: Scenario, workload: Any) -> Built:
    model = scenario.build(workload)
    loss, optimizer = model.loss, model.optimizer
    facts = Built(
        parameters=model.count_params(),
        operations=operations_of(model),
        loss=loss if isinstance(loss, str) else type(loss).__name__,
        from_logits=not isinstance(loss, str) and loss.get_config().get("from_logits", False),
        optimizer=type(optimizer).__name__,
        rate=round(float(optimizer.learning_rate), 6),
        checkpoint=checkpoint(scenario),
    )
    keras.backend.clear_session()
    return facts


def checkpoint(scenario: Scenario) -> list[str]:
    callbacks = [vars(callback) for callback in scenario.callbacks("/tmp")] if scenario.callbacks else []
    return [
        name for name in ("monitor", "save_best_only", "save_weights_only") for callback in callbacks if callback[name]
    ]


def operations_of(model: keras.Model) -> int:
    of_weights = [[abstract(weight.shape, weight.dtype) for weight in model.trainable_variables]]
    of_weights.append([abstract(weight.shape, weight.dtype) for weight in model.non_trainable_variables])
    (x,) = [abstract((1, *given.shape[1:]), given.dtype) for given in model.inputs]
    traced = jax.make_jaxpr(lambda *given: model.stateless_call(*given, training=True)[0])(*of_weights, x)
    return sum(operations(traced.jaxpr))


def abstract(shape: tuple[int, ...], dtype: str) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def operations(program: Any) -> Iterator[int]:
    """Yield the operations of each product: two for each element of what comes out and each that is summed up."""
    for equation in program.eqns:
        out, name = equation.outvars[0].aval.shape, equation.primitive.name
        if name == "dot_general":
            (summed, _), _ = equation.params["dimension_numbers"]
            yield 2 * math.prod(out) * math.prod(equation.invars[0].aval.shape[axis] for axis in summed)
        elif name == "conv_general_dilated":
            kernel = equation.invars[1].aval.shape
            outputs, *_ = equation.params["dimension_numbers"].rhs_spec
            yield 2 * math.prod(out) * math.prod(kernel) // kernel[outputs]
        repeated = equation.params["length"] if name == "scan" else 1
        for inner in jaxprs_in_params(equation.params):
            yield from (repeated * count for count in operations(inner))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
