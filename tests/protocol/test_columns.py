import pytest

from kerasbench.protocol import columns
from kerasbench.protocol.columns import DEFAULT, Column, Device, Environment, Options, Size


@pytest.mark.parametrize(
    ("device", "label", "described"),
    [
        (Device("cpu"), "cpu", "cpu"),
        (Device("cuda", 1, "NVIDIA H200"), "gpu:1", "gpu:1 (NVIDIA H200)"),
        (Device("mps", 0, "Apple M1"), "gpu", "gpu (Apple M1 (mps))"),
        (Device("rocm", 2, "AMD Instinct MI100"), "gpu:2", "gpu:2 (AMD Instinct MI100 (rocm))"),
    ],
)
def test_a_device_is_called_by_its_kind_and_described_by_its_chip(device: Device, label: str, described: str) -> None:
    assert (device.label, device.described) == (label, described)
    assert columns.parse_label(label) == (device.kind, device.index)


ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
FOUR_AND_FIVE = {"HIP_VISIBLE_DEVICES": "4,5", "ROCR_VISIBLE_DEVICES": "0,1,2,3,4,5"}
BOTH = {"CUDA_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize(
    ("device", "left", "shown"),
    [
        (Device("cuda", 2), {}, ORDER | {"CUDA_VISIBLE_DEVICES": "2", "HIP_VISIBLE_DEVICES": "2"}),
        (Device("rocm", 1), FOUR_AND_FIVE, FOUR_AND_FIVE | {"HIP_VISIBLE_DEVICES": "5", "CUDA_VISIBLE_DEVICES": "5"}),
        (Device("cuda", 0), {"CUDA_VISIBLE_DEVICES": "3,GPU-8f2a"}, {"CUDA_VISIBLE_DEVICES": "3"}),
        (Device("cuda", 1), {"CUDA_VISIBLE_DEVICES": "3,GPU-8f2a"}, {"CUDA_VISIBLE_DEVICES": "GPU-8f2a"}),
        (Device("cuda", 1), BOTH, {"CUDA_VISIBLE_DEVICES": "3"}),
        (Device("rocm", 0), BOTH, {"HIP_VISIBLE_DEVICES": "0"}),
    ],
)
def test_a_card_is_chosen_among_those_that_the_user_has_left_visible(
    device: Device, left: dict[str, str], shown: dict[str, str]
) -> None:
    assert shown.items() <= columns.cuda_visibility(device, left).items()
    assert columns.visible_cuda(left | {"PATH": "/bin"}) == ORDER | left


@pytest.mark.parametrize("platform", ["cpu", "mps", "metal"])
def test_cuda_is_hidden_from_everything_else(platform: str) -> None:
    assert set(columns.cuda_visibility(Device(platform)).values()) == {"-1"}


@pytest.mark.parametrize("text", ["", "cuda", "gpu:", "gpu:x", "gpu:-1", "cpu:1"])
def test_other_words_are_no_labels(text: str) -> None:
    with pytest.raises(ValueError, match="no device label"):
        columns.parse_label(text)


def test_a_label_names_what_differs_the_interpreter_first_and_the_size_last() -> None:
    assert DEFAULT.label == ""
    assert Options(jit=False, dtype="mixed_float16", fp32="tf32", threads=1, native=True).label == (
        "dtype=mixed_float16 fp32=tf32 jit=off native=on threads=1"
    )
    sized = Options(jit=True, batch=64, width=0.5)
    assert sized.label == "jit=on batch=64 width=0.5"
    assert sized.unsized.label == "jit=on"
    assert sized.size == Size(64, 0.5)
    assert sized.at(Size(8)) == Options(jit=True, batch=8)
    assert DEFAULT.size is None
    options = Options(jit=True, batch=8, environment="keras-3.14", control=True)
    assert options.label == "@keras-3.14 jit=on control=on batch=8"
    assert Column("jax", "cpu", options.unsized).label == "jax cpu @keras-3.14 jit=on control=on"


def test_a_size_exceeds_another_when_nothing_of_it_is_smaller() -> None:
    assert Size(2).exceeds(Size(1)) and Size(2, 2.0).exceeds(Size(2, 1.0))
    assert not Size(1).exceeds(Size(1)) and not Size(2, 1.0).exceeds(Size(1, 2.0))


@pytest.mark.parametrize(("text", "backend", "label"), [("torch", "torch", ""), ("jax@3.14", "jax", "3.14")])
def test_an_environment_is_a_backend_and_perhaps_a_label(text: str, backend: str, label: str) -> None:
    assert Environment.parse(text) == Environment(backend, label)
    assert str(Environment(backend, label)) == text
