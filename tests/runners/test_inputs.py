"""Structures of arrays, and the inputs of models that bring no rows."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.runners import inputs
from kerasbench.runners.inputs import InputSpec, fitted, leaves
from kerasbench.scenario import ModelError

ONE, TWO, THREE = np.zeros(1), np.ones(2), np.full(3, 2.0)


def test_structures_of_arrays_are_walked_in_the_order_of_their_keys() -> None:
    structure = {"b": [ONE, (TWO,)], "a": THREE, "none": None}
    arrays = dict(leaves(structure, "x"))
    assert list(arrays) == ["x['a']", "x['b'][0]", "x['b'][1][0]"]
    assert arrays["x['b'][1][0]"] is TWO
    assert [name for name, _ in leaves(ONE, "x")] == ["x"]
    assert inputs.mapped(len, structure) == {"a": 3, "b": [1, (2,)], "none": None}
    assert inputs.first([]) is None
    assert inputs.first({"b": ONE, "a": TWO}) is TWO
    assert inputs.in_tuples([1, {"a": [2, 3]}]) == (1, {"a": (2, 3)})
    assert [inputs.is_nested(array) for array in (ONE, [ONE], (ONE,), {"a": ONE})] == [False, True, True, True]


TOKENS, NUMBERS = InputSpec("tokens", (None,), "int32", 50), InputSpec("numbers", (5,))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_rows_are_such_as_an_input_takes() -> None:
    numbers, tokens = NUMBERS.draw(100, rng()), InputSpec("tokens", (7,), "int64", 50).draw(100, rng())
    assert (numbers.shape, numbers.dtype, tokens.shape, tokens.dtype) == ((100, 5), np.float32, (100, 7), np.int32)
    assert 0 <= tokens.min() < 5 < 45 < tokens.max() < 50
    for dtype, largest in (("bool", 1), ("uint8", 255)):
        drawn = InputSpec("x", (40,), dtype).draw(100, rng())
        assert (drawn.dtype, drawn.max()) == (np.uint8, largest)


FRAMES = InputSpec("frames", (None, 64, None, 1))


def test_what_is_open_takes_the_size_that_is_given() -> None:
    for spec, given, shape in (
        (TOKENS, Input("tokens", [128]), (128,)),
        (TOKENS, Input("", [1, 128]), (128,)),  # one number more is that of the samples
        (FRAMES, Input("", [19, 32]), (19, 64, 32, 1)),
        (FRAMES, Input("", [19, 64, 32, 1]), (19, 64, 32, 1)),
    ):
        assert fitted([spec], [given]) == [dataclasses.replace(spec, shape=shape)]
    assert fitted([InputSpec("a", (None, None, 3))], [Input("", [96, 96, 3], "uint8")])[0] == InputSpec(
        "a", (96, 96, 3), "uint8"
    )
    specs = inputs.specs_of(ModelConfig([Input("", [1, 28, 28]), Input("b", [4], "int32")]))  # it does not say any
    assert specs == [InputSpec("x", (28, 28)), InputSpec("b", (4,), "int32")]


@pytest.mark.parametrize(
    ("specs", "given", "said"),
    [
        ([TOKENS, NUMBERS], [], r"its input is open: tokens \(\?\): say the open sizes, as in --input tokens=128"),
        (
            [InputSpec("a", (None, 71)), InputSpec("b", (None, None))],
            [],
            r"open: a .\?x71., b .*: .* a=128 --input b=128x128",
        ),
        ([TOKENS, NUMBERS], [Input("", [8])], "must name its input: it has tokens, numbers"),
        ([TOKENS, NUMBERS], [Input("token", [8])], "--input token: it has tokens, numbers"),
        ([TOKENS, NUMBERS], [Input("tokens", [8]), Input("numbers", [6])], "--input numbers=6: the model's is 5"),
        ([TOKENS, NUMBERS], [Input("tokens", [2, 8])], r"--input tokens=2x8: the model's is \?"),
        ([FRAMES], [Input("", [19])], r"the model's is \?x64x\?x1: say the open sizes, or all"),
        ([InputSpec("words", (), "string")], [], "takes string; kerasbench can generate numbers"),
    ],
)
def test_what_does_not_fit_is_said(specs: list[InputSpec], given: list[Input], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        fitted(specs, given)


def test_an_epoch_is_as_long_as_a_pool_of_rows_allows_and_an_array_is_told_by_its_dtype_and_shape() -> None:
    assert inputs.steps_of([InputSpec("x", (2,))], 32) == inputs.MOST_STEPS
    assert inputs.steps_of([InputSpec("x", (224, 224, 3))], 32) == inputs.LEAST_STEPS
    assert inputs.describe(SimpleNamespace(dtype="torch.int64", shape=(None, 3))) == "int64[?, 3]"
    assert inputs.describe(SimpleNamespace(dtype="bool", shape=())) == "bool[]"
