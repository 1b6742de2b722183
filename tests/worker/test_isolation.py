import importlib
import sys
from importlib import metadata, util
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.worker.failure import HidingFinder, refuse_other_frameworks


def test_a_child_sees_its_own_framework_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    refuse_other_frameworks("torch")
    for other in ("jax", "tensorflow"):
        assert util.find_spec(other) is None
        with pytest.raises(ModuleNotFoundError, match=f"No module named '{other}'"):
            importlib.import_module(f"{other}.numpy")
        assert other not in sys.modules  # where Keras looks whether TensorFlow is in use
    assert util.find_spec("colorsys") is not None
    assert metadata.version("pytest")  # whose finder is one of them


def test_two_backends_of_one_framework_do_not_hide_it_from_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "again.py").write_text("PACKAGE = 'torch'\n")
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    refuse_other_frameworks("again")
    hidden = [finder.hidden for finder in sys.meta_path if isinstance(finder, HidingFinder)]
    assert hidden
    assert all(one == {"jax", "tensorflow"} for one in hidden)
