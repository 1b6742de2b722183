import importlib
import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.worker.isolation import refuse_other_frameworks


def test_a_child_sees_its_own_framework_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    refuse_other_frameworks("torch")
    assert "torch" not in sys.modules
    for other in ("jax", "tensorflow"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(other)


def test_two_backends_of_one_framework_do_not_hide_it_from_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "again.py").write_text("PACKAGE = 'torch'\n")
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    refuse_other_frameworks("again")
    assert "torch" not in sys.modules
    assert sys.modules["jax"] is None
