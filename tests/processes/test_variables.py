import re

import pytest

from kerasbench.errors import UsageError
from kerasbench.processes import variables

NEEDED = [
    *("PATH", "HOME", "LC_ALL", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "LD_LIBRARY_PATH", "CUDA_HOME"),
    *("CUDA_MPS_PIPE_DIRECTORY", "NVIDIA_VISIBLE_DEVICES", "ROCM_PATH", "HIP_PATH", "HSA_OVERRIDE_GFX_VERSION"),
]
CHANGE_FIGURES = [
    *("ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_LOG_LEVEL", "CUDA_LAUNCH_BLOCKING"),
    *("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_VISIBLE_DEVICES", "CUDNN_LOGLEVEL_DBG", "CXX"),
    *("DNNL_MAX_CPU_ISA", "DYLD_INSERT_LIBRARIES", "GOMP_SPINCOUNT", "HIP_VISIBLE_DEVICES"),
    *("JAX_DISABLE_JIT", "JAX_ENABLE_X64", "JAX_PLATFORMS", "KERAS_MAX_EPOCHS", "KERAS_TORCH_DEVICE"),
    *("KMP_AFFINITY", "LD_PRELOAD", "MALLOC_ARENA_MAX", "MKL_CBWR", "NPROC", "NVIDIA_TF32_OVERRIDE"),
    *("OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "PYTHONMALLOC", "PYTORCH_ENABLE_MPS_FALLBACK"),
    *("TF_ENABLE_ONEDNN_OPTS", "TORCHINDUCTOR_MAX_AUTOTUNE", "TRITON_INTERPRET", "XLA_FLAGS"),
]
# Of a program whose variables begin as TensorFlow's do, and others of which a child has no need.
NOT_TOLD = [
    *("TF_VAR_password", "TF_TOKEN_app_terraform_io", "TF_CLI_CONFIG_FILE"),
    *("GITHUB_TOKEN", "NCCL_VERSION", "KERAS_HOME", "SSH_AUTH_SOCK"),
]
OWN = ["CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "KERAS_BACKEND", "KERAS_HOME", "PYTHONSAFEPATH", "TMPDIR"]


def test_what_changes_figures_does_not_reach_a_child_and_is_told_from_what_is_merely_not_needed() -> None:
    inherited = dict.fromkeys([*CHANGE_FIGURES, *NOT_TOLD, *NEEDED], "1")
    assert list(variables.clean(inherited=inherited)) == NEEDED
    assert variables.held_back(inherited) == dict.fromkeys(CHANGE_FIGURES, "1")


def test_what_leads_this_interpreter_to_its_packages_does_not_reach_another() -> None:
    here = dict.fromkeys(variables.OF_THIS_INTERPRETER, "/here")
    assert variables.clean(inherited=here) == here
    assert variables.clean("/another/bin/python", inherited=here) == {}


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
    let_in = {"OMP_PROC_BIND": "true"}
    variables.require_same(let_in, let_in)
    with pytest.raises(UsageError, match=f"had OMP_PROC_BIND=true, which {here}"):
        variables.require_same(let_in, shell)


@pytest.mark.parametrize("caches", ["", "/caches"])
def test_a_child_keeps_its_files_in_its_scratch_folder_and_what_it_compiles_in_that_of_caches(caches: str) -> None:
    names = ("KERAS_HOME", "TMPDIR", *variables.CACHES)
    child = variables.clean(inherited=dict.fromkeys(names, "/mine")) | variables.for_scratch("/scratch", caches)
    assert [child[name] for name in names] == ["/scratch"] * 2 + [caches or "/scratch"] * len(variables.CACHES)
