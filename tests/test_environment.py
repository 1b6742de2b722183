import pytest

from kerasbench import environment


@pytest.mark.parametrize(
    "name",
    ["KERAS_MAX_EPOCHS", "OMP_NUM_THREADS", "JAX_PLATFORMS", "XLA_FLAGS", "KERAS_TORCH_DEVICE", "NVIDIA_TF32_OVERRIDE"],
)
def test_what_would_change_a_measurement_does_not_reach_a_child(name: str) -> None:
    assert environment.clean({name: "1", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_a_child_keeps_its_files_in_its_scratch_folder() -> None:
    variables = environment.for_scratch("/scratch")
    assert variables["KERAS_HOME"] == variables["TMPDIR"] == "/scratch"
