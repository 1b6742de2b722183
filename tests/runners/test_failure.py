"""How exceptions become failures, and how other frameworks are hidden."""

import importlib
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest

from kerasbench import backends
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners.failure import HidingFinder, failure_of, own_step, refuse_other_frameworks
from kerasbench.scenario import ScenarioError


@pytest.mark.parametrize(
    ("error", "phase", "code"),
    [
        (MemoryError(), "data", Code.OOM),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), "train", Code.OOM),
        (RuntimeError("OOM when allocating tensor with shape[9,9]"), "train", Code.OOM),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), "train", Code.OOM),
        (type("ResourceExhaustedError", (Exception,), {})("{{node x}} failed"), "train", Code.OOM),
        (ImportError("libcudnn.so.9: cannot open shared object file"), "import", Code.UNAVAILABLE),
        (AssertionError(), "device", Code.UNAVAILABLE),
        (ImportError("no module named mine"), "scenario", Code.ERROR),
        (NotImplementedError("aten::foo on MPS"), "train", Code.UNSUPPORTED),
        (TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework"), "data", Code.UNSUPPORTED),
        (TypeError("build() got an unexpected keyword argument"), "build", Code.ERROR),
        (ValueError("shapes (3,) and (4,)"), "first step", Code.ERROR),
    ],
)
def test_an_exception_gets_its_code(error: Exception, phase: str, code: Code) -> None:
    failure = failure_of(error, phase)
    assert (failure.code, failure.phase) == (code, phase)


def test_a_cause_is_one_short_line_and_a_remedy_helps() -> None:
    missing = NotImplementedError("The operator 'aten::foo' is not currently implemented for the MPS device.")
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1" in failure_of(missing, "train").remedy
    cause = failure_of(ValueError("first\n  second\n" + "x" * 1000), "train").cause
    assert cause.startswith("ValueError: first second x")
    assert len(cause) <= 300


def test_a_cause_names_the_line_of_the_scenario_file() -> None:
    space: dict[str, Any] = {}
    exec(compile("\n\ndef build():\n    raise ValueError('no')\n", "/folder/mine.py", "exec"), space)
    with pytest.raises(ValueError, match="no") as caught:
        space["build"]()
    failure = failure_of(caught.value, "build", "/folder/mine.py")
    assert failure.cause == "mine.py, line 4: ValueError: no"
    assert "Traceback" in failure.detail
    with pytest.raises(SyntaxError) as wrong:
        compile("x = 1\ny = (\n", "/folder/mine.py", "exec")
    assert failure_of(wrong.value, "describe", "/folder/mine.py").cause.startswith("mine.py, line 2: SyntaxError")


IN_GRAPH = """Graph execution error:

Detected at node PyFunc defined at (most recent call last):
<stack traces unavailable>
{said}
Traceback (most recent call last):

  File "/venv/tensorflow/python/ops/script_ops.py", line 269, in __call__
    ret = func(*args)

  File "/folder/mine.py", line 5, in __getitem__
    raise OSError("no such picture: 60.png")
"""


def test_what_python_raises_in_a_graph_of_tensorflow_s_is_the_cause() -> None:
    in_graph = type("UnknownError", (Exception,), {})
    failure = failure_of(in_graph(IN_GRAPH.format(said="OSError: no such picture: 60.png")), "train", "/folder/mine.py")
    assert (failure.cause, failure.remedy) == ("mine.py, line 5: OSError: no such picture: 60.png", "correct this line")
    said = f"ScenarioError: {ScenarioError('it ended', 'let it begin again')}"
    failure = failure_of(in_graph(IN_GRAPH.format(said=said)), "train")
    assert (failure.code, failure.cause, failure.remedy) == (Code.INVALID, "it ended", "let it begin again")


IN_WORKER = """Caught OSError in DataLoader worker process 1.
Original Traceback (most recent call last):
  File "/venv/torch/utils/data/_utils/worker.py", line 374, in _worker_loop
    data = fetcher.fetch(index)
  File "/folder/mine.py", line 7, in __getitem__
    raise OSError("no such picture: 60.png")
OSError: no such picture: 60.png
"""


def test_what_a_worker_of_torch_s_raises_is_the_cause() -> None:
    failure = failure_of(OSError(IN_WORKER), "train", "/folder/mine.py")
    assert (failure.cause, failure.remedy) == ("mine.py, line 7: OSError: no such picture: 60.png", "correct this line")
    full = RuntimeError(
        IN_WORKER.replace("OSError: no such picture: 60.png", "RuntimeError: unable to allocate shared memory")
    )
    assert failure_of(full, "train").code is Code.OOM


def test_a_file_that_imports_another_backend_is_not_supported_here() -> None:
    error = ModuleNotFoundError("No module named 'jax'", name="jax.numpy")
    failure = failure_of(error, "scenario", "mine.py")
    assert failure.code is Code.UNSUPPORTED
    assert failure.cause == "it imports jax, which the processes of the other backends do not have"
    assert "--backend jax" in failure.remedy
    assert failure_of(ModuleNotFoundError("No module named 'mine'", name="mine"), "scenario").code is Code.ERROR
    assert failure_of(error, "import").code is Code.UNAVAILABLE


def test_a_child_sees_its_own_framework_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    refuse_other_frameworks("torch")
    for other in ("jax", "tensorflow"):
        assert util.find_spec(other) is None
        with pytest.raises(ModuleNotFoundError, match=f"No module named '{other}'"):
            importlib.import_module(f"{other}.numpy")
        assert other not in sys.modules  # where Keras looks whether TensorFlow is in use
    assert util.find_spec("colorsys") is not None
    assert metadata.version("pytest")  # whose finder is one of them
    # Two backends of one framework do not hide it from each other.
    (tmp_path / "again.py").write_text("PACKAGE = 'torch'\n")
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    refuse_other_frameworks("again")
    hidden = [finder.hidden for finder in sys.meta_path if isinstance(finder, HidingFinder)]
    assert hidden
    assert all(names == {"jax", "keras_mlx", "tensorflow"} for names in hidden)


def test_a_step_of_its_own_that_fails_is_for_another_backend() -> None:
    with pytest.raises(TrialFailure, match="own test_step does not run"), own_step(["test_step"], "jax", "learn"):
        raise TypeError
    said = r"own train_step does not run on jax, given \(x, y\): TypeError: two arguments"
    overrides = ["train_step", "compute_loss"]
    with pytest.raises(TrialFailure, match=said) as raised, own_step(overrides, "jax", "learn"):
        raise TypeError("two arguments")
    assert (raised.value.failure.code, raised.value.failure.phase) == (Code.UNSUPPORTED, "learn")


def test_what_else_fails_is_what_it_is() -> None:
    out_of_memory = RuntimeError("CUDA out of memory")  # which is no other backend's
    bug = "compute_loss", TypeError("a bug")
    for method, error in ("train_step", ScenarioError("no loss")), ("train_step", out_of_memory), bug:
        with pytest.raises(type(error), match=str(error)), own_step([method], "jax", "learn"):
            raise error
