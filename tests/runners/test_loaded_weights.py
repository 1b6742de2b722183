"""The weights that a script loads are those that its model begins with."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.runners.weights import ORIGIN, keep_loaded_weights


def test_what_is_assigned_to_a_variable_before_training_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Variable:
        value: Any = 0

        def assign(self, value: Any) -> Any:
            self.value = value
            return value

    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Variable=Variable))
    loaded, trained = Variable(), Variable()
    with keep_loaded_weights():
        assert loaded.assign(3) == 3
    trained.assign(4)
    assert (loaded.value, getattr(loaded, ORIGIN)) == (3, "given")
    assert trained.value == 4 and not hasattr(trained, ORIGIN)
