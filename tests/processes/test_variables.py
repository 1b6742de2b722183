import re

import pytest

from kerasbench.errors import UsageError
from kerasbench.processes import variables

NEEDED = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C.UTF-8",
    "https_proxy": "http://proxy",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/certs.pem",
    "LD_LIBRARY_PATH": "/lib",
    "CUDA_HOME": "/usr/local/cuda",
    "CUDA_MPS_PIPE_DIRECTORY": "/mps",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "ROCM_PATH": "/opt/rocm",
    "HIP_PATH": "/opt/rocm",
    "HSA_OVERRIDE_GFX_VERSION": "10.3.0",
}
CHANGE_FIGURES = [
    *("ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_LOG_LEVEL", "CUDA_LAUNCH_BLOCKING"),
    *("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_VISIBLE_DEVICES", "CUDNN_LOGLEVEL_DBG", "CXX"),
    *("DNNL_MAX_CPU_ISA", "DYLD_INSERT_LIBRARIES", "GOMP_SPINCOUNT", "HIP_VISIBLE_DEVICES"),
    *("JAX_DISABLE_JIT", "JAX_ENABLE_X64", "JAX_PLATFORMS", "KERAS_MAX_EPOCHS", "KERAS_TORCH_DEVICE"),
    *("KMP_AFFINITY", "LD_PRELOAD", "MALLOC_ARENA_MAX", "MKL_CBWR", "NPROC", "NVIDIA_TF32_OVERRIDE"),
    *("OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "PYTHONMALLOC", "PYTORCH_ENABLE_MPS_FALLBACK"),
    *("TF_ENABLE_ONEDNN_OPTS", "TORCHINDUCTOR_MAX_AUTOTUNE", "TRITON_INTERPRET", "XLA_FLAGS"),
]

OWN = ["CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "KERAS_BACKEND", "KERAS_HOME", "PYTHONSAFEPATH", "TMPDIR"]


@pytest.mark.parametrize("name", CHANGE_FIGURES)
def test_what_changes_figures_does_not_reach_a_child_and_is_told_from_what_is_merely_not_needed(name: str) -> None:
    inherited = {name: "1", "SSH_AUTH_SOCK": "/tmp/agent"} | NEEDED
    assert variables.clean(inherited=inherited) == NEEDED
    assert variables.held_back(inherited) == {name: "1"}


def test_what_only_begins_like_it_is_not_told() -> None:
    set_here = {"PATH": "/bin", "HOME": "/home/user", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0"}
    set_here |= {"GITHUB_TOKEN": "secret", "NCCL_VERSION": "2.27", "KERAS_HOME": "/data"}
    # Of a program whose variables begin as TensorFlow's do:
    set_here |= dict.fromkeys(("TF_VAR_password", "TF_TOKEN_app_terraform_io", "TF_CLI_CONFIG_FILE"), "secret")
    assert variables.held_back(set_here) == {"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("name", variables.OF_THIS_INTERPRETER)
def test_what_leads_this_interpreter_to_its_packages_does_not_reach_another(name: str) -> None:
    assert variables.clean(inherited={name: "/here"}) == {name: "/here"}
    assert variables.clean("/another/bin/python", inherited={name: "/here"}) == {}


def test_what_a_user_lets_in_reaches_a_child_with_the_value_that_it_has() -> None:
    shell = {"OMP_PROC_BIND": "true", "OMP_NUM_THREADS": "1"}
    kept = variables.kept(["OMP_PROC_BIND"], shell)
    assert variables.clean("/another/bin/python", kept, shell) == kept == {"OMP_PROC_BIND": "true"}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("OMP_NUM_THREADS=1", "takes the names of variables, such as OMP_PROC_BIND, not 'OMP_NUM_THREADS=1'"),
        ("GONE", "GONE: this variable is not set here"),
        ("BYTES", "BYTES: its value cannot be written down"),
        *((name, f"{name}: kerasbench sets this variable itself") for name in OWN),
    ],
)
def test_a_variable_that_cannot_be_let_in_is_an_error_that_says_why(name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        variables.kept([name], dict.fromkeys(OWN, "1") | {"BYTES": "\udcff"})


@pytest.mark.parametrize(("shell", "here"), [({}, "is not set here"), ({"OMP_PROC_BIND": "false"}, "is 'false' here")])
def test_what_an_interrupted_run_let_in_must_be_as_it_was(shell: dict[str, str], here: str) -> None:
    with pytest.raises(UsageError, match=f"let in OMP_PROC_BIND=true, which {here}"):
        variables.require_same({"OMP_PROC_BIND": "true"}, shell)
    variables.require_same({"OMP_PROC_BIND": "true"}, {"OMP_PROC_BIND": "true"})


@pytest.mark.parametrize("caches", ["", "/caches"])
def test_a_child_keeps_its_files_in_its_scratch_folder_and_what_it_compiles_in_that_of_caches(caches: str) -> None:
    names = ("KERAS_HOME", "TMPDIR", *variables.CACHES)
    child = variables.clean(inherited=dict.fromkeys(names, "/mine")) | variables.for_scratch("/scratch", caches)
    assert [child[name] for name in names] == ["/scratch"] * 2 + [caches or "/scratch"] * len(variables.CACHES)
