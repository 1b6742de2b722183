import importlib
import sys

import pytest

from kerasbench.worker.isolation import refuse_other_frameworks


def test_a_child_sees_its_own_framework_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    refuse_other_frameworks("torch")
    assert "torch" not in sys.modules
    for other in ("jax", "tensorflow"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(other)
