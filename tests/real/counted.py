"""Count what a regime's model has and does, in the program that JAX traces for a forward pass; nothing is computed.

    python counted.py FILE...

prints JSON: for each file and regime its parameters, and the operations of all products for one sample.
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

from kerasbench.scenario import Scenario, load


def main(files: list[str]) -> dict[str, dict[str, tuple[int, int]]]:
    begin_with_zeros()
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for file in map(Path, files):
        scenario, _ = load(file)
        found[file.stem] = {regime.name: counted(scenario, regime) for regime in scenario.regimes}
    return found


def begin_with_zeros() -> None:
    """Have variables made without random numbers: for each shape JAX would compile what draws them."""
    initialize = keras.Variable.__init__

    def zeros(self: Any, initializer: Any, shape: Any = None, *args: Any, **named: Any) -> None:
        first = initializer if shape is None else lambda shape, dtype=None: np.zeros(shape, dtype)
        initialize(self, first, shape, *args, **named)

    keras.Variable.__init__ = zeros


def counted(scenario: Scenario, regime: Any) -> tuple[int, int]:
    model = scenario.build(regime)
    of_weights = [[abstract(one.shape, one.dtype) for one in model.trainable_variables]]
    of_weights.append([abstract(one.shape, one.dtype) for one in model.non_trainable_variables])
    (x,) = [abstract((1, *one.shape[1:]), one.dtype) for one in model.inputs]
    traced = jax.make_jaxpr(lambda *given: model.stateless_call(*given, training=True)[0])(*of_weights, x)
    found = model.count_params(), sum(operations(traced.jaxpr))
    keras.backend.clear_session()
    return found


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
            yield from (repeated * one for one in operations(inner))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
