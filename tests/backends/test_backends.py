"""Every backend's module, without importing a framework."""

import inspect
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.backends import Backend
from kerasbench.protocol.columns import DEFAULT, Device, Options

FUNCTIONS = {name for name, value in vars(Backend).items() if inspect.isfunction(value) and not name.startswith("_")}
CPU, CUDA, MPS = Device("cpu"), Device("cuda", 1), Device("mps")


def test_the_backends_are_the_modules_of_the_folder() -> None:
    assert backends.names() == ["jax", "tensorflow", "torch"]


def test_a_module_of_the_folder_that_is_no_backend_is_no_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words.py").write_text("SOME = 'words that two backends share'\n")
    (tmp_path / "other.py").write_text("PACKAGE = 'other'\n")
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    assert backends.names() == ["jax", "other", "tensorflow", "torch"]


def test_keras_knows_each_backend_by_its_own_name() -> None:
    assert [backends.get(name).ALWAYS["KERAS_BACKEND"] for name in backends.names()] == backends.names()


def test_operations_are_counted_by_one_backend_whichever_is_measured() -> None:
    assert backends.counting() == "torch"
    assert [name for name in backends.names() if backends.get(name).count_operations is not None] == ["torch"]


@pytest.mark.parametrize("name", backends.names())
def test_each_variable_that_a_backend_heeds_is_one_of_its_own(name: str) -> None:
    module = backends.get(name)
    assert all(any(fnmatchcase(variable, own) for own in module.VARIABLES) for variable in module.HEEDED)


@pytest.mark.parametrize(
    ("name", "device", "jit", "cause"),
    [
        ("tensorflow", Device("metal"), True, "XLA does not compile for Metal"),
        ("tensorflow", Device("metal"), False, None),
        ("tensorflow", CPU, True, None),
        ("torch", MPS, True, None),
        ("jax", MPS, True, None),
    ],
)
def test_what_a_backend_cannot_do_it_says_itself(name: str, device: Device, jit: bool, cause: str | None) -> None:
    found = backends.get(name).unsupported(device, Options(jit=jit))
    assert (found and found[0]) == cause


@pytest.mark.parametrize("name", backends.names())
def test_a_backend_defines_exactly_what_the_interface_says(name: str) -> None:
    module = backends.get(name)
    assert all(hasattr(module, constant) for constant in Backend.__annotations__)
    for function in FUNCTIONS:
        expected = list(inspect.signature(getattr(Backend, function)).parameters)[1:]
        assert list(inspect.signature(getattr(module, function)).parameters) == expected, function
    public = {
        found
        for found, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == f"{backends.__name__}.{name}"
    }
    assert {name for name in public if not name.startswith("_")} - Backend.__annotations__.keys() == FUNCTIONS


@pytest.mark.parametrize(
    ("name", "device", "expected"),
    [
        ("torch", CPU, {"KERAS_TORCH_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}),
        ("torch", CUDA, {"KERAS_TORCH_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": "1"}),
        ("torch", Device("rocm"), {"KERAS_TORCH_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": "0"}),
        ("torch", MPS, {"KERAS_TORCH_DEVICE": "mps"}),
        ("jax", CPU, {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}),
        ("jax", CUDA, {"JAX_PLATFORMS": "cuda,cpu", "CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        ("jax", Device("rocm"), {"JAX_PLATFORMS": "rocm,cpu", "HIP_VISIBLE_DEVICES": "0"}),
        ("jax", MPS, {"JAX_PLATFORMS": "mps,cpu"}),
        ("tensorflow", CPU, {"CUDA_VISIBLE_DEVICES": "-1"}),
        ("tensorflow", CUDA, {"CUDA_VISIBLE_DEVICES": "1", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}),
    ],
)
def test_the_environment_shows_one_device(name: str, device: Device, expected: dict[str, str]) -> None:
    assert expected.items() <= backends.get(name).environment(device, DEFAULT, "/caches").items()


@pytest.mark.parametrize("variable", ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "PYTORCH_KERNEL_CACHE_PATH"])
def test_torch_compiles_into_the_trial_s_own_folder(variable: str) -> None:
    assert backends.get("torch").environment(CPU, DEFAULT, "/caches")[variable] == "/caches"


@pytest.mark.parametrize(("name", "variable"), [("torch", "OMP_NUM_THREADS"), ("jax", "NPROC")])
def test_threads_are_limited_only_where_that_was_asked_for(name: str, variable: str) -> None:
    environment = backends.get(name).environment
    assert variable not in environment(CPU, DEFAULT, "")
    assert environment(CPU, Options(threads=3), "")[variable] == "3"


@pytest.mark.parametrize(
    ("name", "device", "jit"),
    [("jax", CPU, True), ("torch", CUDA, False), ("tensorflow", CPU, False), ("tensorflow", CUDA, True),
     ("tensorflow", Device("metal"), False)],
)  # fmt: skip
def test_jit_is_what_the_backend_normally_does(name: str, device: Device, jit: bool) -> None:
    assert backends.get(name).jit_default(device) is jit


def test_no_framework_was_imported_for_all_this() -> None:
    for name in backends.names():
        backends.get(name).environment(CPU, DEFAULT, "")
    assert not {"jax", "tensorflow", "torch", "keras"} & sys.modules.keys()


@pytest.mark.parametrize("name", ["jax", "tensorflow"])
def test_backends_that_tell_of_no_fallback_run_no_step_for_it(name: str, never: Callable[[], None]) -> None:
    assert backends.get(name).fallbacks(never) == {}
