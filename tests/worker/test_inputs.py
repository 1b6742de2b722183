"""Structures of arrays, and the inputs of models that bring no rows."""

import numpy as np
import pytest

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.worker.inputs import (
    LEAST_STEPS,
    MOST_STEPS,
    Spec,
    first,
    fitted,
    in_tuples,
    is_nested,
    leaves,
    mapped,
    specs_of,
    steps_of,
)

ONE, TWO, THREE = np.zeros(1), np.ones(2), np.full(3, 2.0)


def test_each_array_has_the_name_of_its_place_and_dictionaries_the_order_of_their_keys() -> None:
    found = dict(leaves({"b": [ONE, (TWO,)], "a": THREE, "none": None}, "x"))
    assert list(found) == ["x['a']", "x['b'][0]", "x['b'][1][0]"]
    assert found["x['b'][1][0]"] is TWO


def test_one_array_has_no_place_of_its_own() -> None:
    assert [name for name, _ in leaves(ONE, "x")] == ["x"]


def test_a_structure_stays_what_it_is() -> None:
    found = mapped(len, {"b": [ONE, (TWO,)], "a": THREE, "none": None})
    assert found == {"a": 3, "b": [1, (2,)], "none": None}


def test_the_first_of_nothing_is_none() -> None:
    assert first([]) is None
    assert first({"b": ONE, "a": TWO}) is TWO


def test_lists_become_tuples_all_the_way_down() -> None:
    assert in_tuples([1, {"a": [2, 3]}]) == (1, {"a": (2, 3)})


def test_an_array_is_no_structure() -> None:
    assert [is_nested(one) for one in (ONE, [ONE], (ONE,), {"a": ONE})] == [False, True, True, True]


# Inputs.


TOKENS, NUMBERS = Spec("tokens", (None,), "int32", 50), Spec("numbers", (5,))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_rows_are_such_as_an_input_takes() -> None:
    numbers, tokens = NUMBERS.draw(100, rng()), Spec("tokens", (7,), "int64", 50).draw(100, rng())
    assert (numbers.shape, numbers.dtype, tokens.shape, tokens.dtype) == ((100, 5), np.float32, (100, 7), np.int32)
    assert 0 <= tokens.min() < 5 < 45 < tokens.max() < 50


@pytest.mark.parametrize(("dtype", "largest"), [("bool", 1), ("uint8", 255)])
def test_truth_values_and_bytes_are_bytes(dtype: str, largest: int) -> None:
    drawn = Spec("x", (40,), dtype).draw(100, rng())
    assert (drawn.dtype, drawn.max()) == (np.uint8, largest)


def test_what_is_open_takes_the_size_that_is_given() -> None:
    found = fitted([TOKENS, NUMBERS], [Input("tokens", [128])])
    assert [spec.shape for spec in found] == [(128,), (5,)]
    assert found[0].below == 50


def test_one_number_more_is_that_of_the_samples() -> None:
    assert fitted([TOKENS], [Input("tokens", [1, 128])])[0].shape == (128,)


def test_the_only_input_needs_no_name() -> None:
    assert fitted([Spec("a", (None, None, 3))], [Input("", [96, 96, 3], "uint8")])[0] == Spec("a", (96, 96, 3), "uint8")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], r"its input is open: tokens \(\?\): say the open sizes, as in --input tokens=128"),
        ([Input("", [8])], "must name its input: it has tokens, numbers"),
        ([Input("token", [8])], "--input token: it has tokens, numbers"),
        ([Input("tokens", [8]), Input("numbers", [6])], "--input numbers=6: the model's is 5"),
        ([Input("tokens", [2, 8])], r"--input tokens=2x8: the model's is \?"),
    ],
)
def test_what_does_not_fit_is_said(given: list[Input], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        fitted([TOKENS, NUMBERS], given)


def test_text_is_none_of_what_can_be_made() -> None:
    with pytest.raises(ModelError, match="takes string, and kerasbench makes numbers"):
        fitted([Spec("words", (), "string")], [])


def test_a_model_that_does_not_say_what_it_takes_takes_what_is_given() -> None:
    found = specs_of(ModelConfig([Input("", [1, 28, 28]), Input("b", [4], "int32")]))
    assert found == [Spec("x", (28, 28)), Spec("b", (4,), "int32")]


def test_an_epoch_is_as_long_as_a_pool_of_rows_allows() -> None:
    assert steps_of([Spec("x", (2,))], 32) == MOST_STEPS
    assert steps_of([Spec("x", (224, 224, 3))], 32) == LEAST_STEPS
    assert steps_of([Spec("x", (1 << 15,))], 8) == 64  # a batch of one MiB


def test_the_open_sizes_alone_are_enough() -> None:
    frames = Spec("frames", (None, 64, None, 1))
    assert fitted([frames], [Input("", [19, 32])])[0].shape == (19, 64, 32, 1)
    assert fitted([frames], [Input("", [19, 64, 32, 1])])[0].shape == (19, 64, 32, 1)
    with pytest.raises(ModelError, match=r"the model's is \?x64x\?x1: say the open sizes, or all"):
        fitted([frames], [Input("", [19])])


def test_all_open_inputs_are_named_at_once() -> None:
    with pytest.raises(ModelError) as caught:
        fitted([Spec("a", (None, 71)), NUMBERS, Spec("b", (None, None))], [])
    assert str(caught.value) == (
        "its inputs are open: a (?x71), b (?x?): say the open sizes, as in --input a=128 --input b=128x128"
    )
