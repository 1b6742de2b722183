import numpy as np

from kerasbench.worker.inputs import first, in_tuples, is_nested, leaves, mapped

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
