import pytest

from kerasbench import environment


@pytest.mark.parametrize(
    "name",
    [
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "JAX_DISABLE_JIT",
        "JAX_ENABLE_X64",
        "JAX_PLATFORMS",
        "KERAS_MAX_EPOCHS",
        "KERAS_TORCH_DEVICE",
        "KMP_AFFINITY",
        "NPROC",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_NUM_THREADS",
        "PYTORCH_ENABLE_MPS_FALLBACK",
        "TF_ENABLE_ONEDNN_OPTS",
        "XLA_FLAGS",
    ],
)
def test_what_would_change_a_measurement_does_not_reach_a_child(name: str) -> None:
    kept = {"PATH": "/bin", "CUDA_HOME": "/usr/local/cuda", "HIP_PATH": "/opt/rocm", "LD_LIBRARY_PATH": "/lib"}
    assert environment.clean(inherited={name: "1"} | kept) == kept


@pytest.mark.parametrize("name", environment.OF_THIS_INTERPRETER)
def test_what_leads_this_interpreter_to_its_packages_does_not_reach_another(name: str) -> None:
    assert environment.clean(inherited={name: "/here"}) == {name: "/here"}
    assert environment.clean("/another/bin/python", {name: "/here"}) == {}


def test_a_child_keeps_its_files_in_its_scratch_folder() -> None:
    variables = environment.for_scratch("/scratch")
    assert variables["KERAS_HOME"] == variables["TMPDIR"] == "/scratch"


@pytest.mark.parametrize(
    "name", ["CUDA_CACHE_PATH", "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "AMD_COMGR_CACHE_DIR"]
)
def test_a_child_compiles_into_its_scratch_folder(name: str) -> None:
    assert (environment.clean(inherited={name: "/mine"}) | environment.for_scratch("/scratch"))[name] == "/scratch"
