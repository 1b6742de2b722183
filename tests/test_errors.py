import re

import pytest

from kerasbench import errors
from kerasbench.errors import KerasbenchError, unknown


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = set(re.findall(r"^[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE))
    assert drawn == {error.__name__ for error in KerasbenchError.__subclasses__()}


def test_every_error_is_one_of_kerasbench_alone() -> None:
    for error in KerasbenchError.__subclasses__():
        assert error.__subclasses__() == []
        assert error.__bases__ == (KerasbenchError,)


@pytest.mark.parametrize(
    ("given", "guess"),
    [("pytorch", "; did you mean 'torch'?"), ("tensrflow", "; did you mean 'tensorflow'?"), ("mxnet", "")],
)
def test_a_name_that_means_nothing_is_answered_with_the_nearest_that_does(given: str, guess: str) -> None:
    error = unknown("backend", given, iter(["jax", "tensorflow", "torch"]))
    assert str(error) == f"unknown backend '{given}'{guess} (there are: jax, tensorflow, torch)"
