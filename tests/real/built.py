"""Say how a workload's model is built, and count what it does in the program that JAX traces for a forward pass.

    python built.py FILE...

prints JSON: for each file and workload what ``built`` returns. Nothing is computed.
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
from jax.extend.core import jaxprs_in_params

from kerasbench.scenario import Scenario, Workload, load


def begin_with_zeros() -> None:
    """Have variables made without random numbers: for each shape JAX would compile what draws them."""
    initialize = keras.Variable.__init__

    def zeros(self: Any, initializer: Any, shape: Any = None, *args: Any, **named: Any) -> None:
        first = initializer if shape is None else lambda shape, dtype=None: np.zeros(shape, dtype)
        initialize(self, first, shape, *args, **named)

    keras.Variable.__init__ = zeros


def built(scenario: Scenario, workload: Workload) -> list[Any]:
    model = scenario.build(workload)
    loss, optimizer = model.loss, model.optimizer
    is_named = isinstance(loss, str)
    callbacks = [vars(callback) for callback in scenario.callbacks(Path("/tmp"))] if scenario.callbacks else []
    asked = ("monitor", "save_best_only", "save_weights_only")  # of the scenario's callbacks
    facts = [
        model.count_params(),
        operations_of(model),
        loss if is_named else type(loss).__name__,
        not is_named and loss.get_config().get("from_logits", False),
        type(optimizer).__name__,
        round(float(optimizer.learning_rate), 6),
        [name for name in asked for callback in callbacks if callback[name]],
    ]
    keras.backend.clear_session()
    return facts


def operations_of(model: keras.Model) -> int:
    """Return the operations of all products, for one sample."""
    weights = [
        [jax.ShapeDtypeStruct(weight.shape, weight.dtype) for weight in of_kind]
        for of_kind in (model.trainable_variables, model.non_trainable_variables)
    ]
    (x,) = (jax.ShapeDtypeStruct((1, *given.shape[1:]), given.dtype) for given in model.inputs)
    traced = jax.make_jaxpr(lambda *given: model.stateless_call(*given, training=True)[0])(*weights, x)
    return sum(operations(traced.jaxpr))


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
    begin_with_zeros()
    models: dict[str, list[Any]] = {}
    for file in map(Path, sys.argv[1:]):
        scenario, _ = load(file)
        models |= {f"{file.stem}/{workload.name}": built(scenario, workload) for workload in scenario.workloads}
    print(json.dumps(models))
