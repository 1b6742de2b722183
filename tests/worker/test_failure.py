from pathlib import Path

import pytest

from kerasbench.protocol.messages import Code
from kerasbench.worker.failure import failure_of


@pytest.mark.parametrize(
    ("error", "phase", "code"),
    [
        (MemoryError(), "data", Code.OOM),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), "train", Code.OOM),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), "train", Code.OOM),
        (type("ResourceExhaustedError", (Exception,), {})("{{node x}} failed"), "train", Code.OOM),
        (RuntimeError("OOM when allocating tensor with shape[9,9]"), "train", Code.OOM),
        (ImportError("libcudnn.so.9: cannot open shared object file"), "import", Code.UNAVAILABLE),
        (AssertionError(), "device", Code.UNAVAILABLE),
        (ImportError("no module named mine"), "scenario", Code.ERROR),
        (NotImplementedError("aten::foo on MPS"), "train", Code.UNSUPPORTED),
        (
            TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64"),
            "data",
            Code.UNSUPPORTED,
        ),
        (TypeError("build() got an unexpected keyword argument"), "build", Code.ERROR),
        (ValueError("shapes (3,) and (4,)"), "first step", Code.ERROR),
    ],
)
def test_an_exception_gets_its_code(error: Exception, phase: str, code: Code) -> None:
    failure = failure_of(error, phase)
    assert (failure.code, failure.phase) == (code, phase)


def test_what_the_apple_gpu_lacks_may_fall_back_where_that_is_wanted() -> None:
    missing = NotImplementedError("The operator 'aten::foo' is not currently implemented for the MPS device.")
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1" in failure_of(missing, "train").remedy


def test_a_cause_is_one_short_line() -> None:
    cause = failure_of(ValueError("first\n  second\n" + "x" * 1000), "train").cause
    assert cause.startswith("ValueError: first second x")
    assert len(cause) <= 300


def test_a_cause_names_the_line_of_the_scenario_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("\n\ndef build():\n    raise ValueError('no')\n")
    space: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    with pytest.raises(ValueError, match="no") as caught:
        space["build"]()  # type: ignore[operator]
    failure = failure_of(caught.value, "build", str(file))
    assert failure.cause == "mine.py, line 4: ValueError: no"
    assert "Traceback" in failure.detail


def test_a_syntax_error_has_a_line_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    with pytest.raises(SyntaxError) as caught:
        compile("x = 1\ny = (\n", str(file), "exec")
    assert failure_of(caught.value, "describe", str(file)).cause.startswith("mine.py, line 2: SyntaxError")


def test_a_file_that_imports_another_backend_is_not_supported_here() -> None:
    error = ModuleNotFoundError("No module named 'jax'", name="jax.numpy")
    found = failure_of(error, "scenario", "mine.py")
    assert (found.code, found.cause) == (
        Code.UNSUPPORTED,
        "it imports jax, which the processes of the other backends do not have",
    )
    assert "--backend jax" in found.remedy
    assert failure_of(ModuleNotFoundError("No module named 'mine'", name="mine"), "scenario").code is Code.ERROR
    assert failure_of(error, "import").code is Code.UNAVAILABLE
