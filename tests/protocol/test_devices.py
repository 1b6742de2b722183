import pytest

from kerasbench.protocol.columns import Device, cuda_visibility, parse_label, visible_cuda


@pytest.mark.parametrize(
    ("device", "label"),
    [(Device("cpu"), "cpu"), (Device("cuda"), "gpu"), (Device("mps"), "gpu"), (Device("cuda", 1), "gpu:1")],
)
def test_label_is_what_a_user_asks_for(device: Device, label: str) -> None:
    assert device.label == label


@pytest.mark.parametrize(
    ("device", "title"),
    [
        (Device("cpu"), ""),
        (Device("cuda", 1, "NVIDIA H200"), "NVIDIA H200"),
        (Device("mps", 0, "Apple M1"), "Apple M1 (mps)"),
        (Device("metal", 0, "Apple M1"), "Apple M1 (metal)"),
        (Device("rocm", 0, "AMD Instinct MI100"), "AMD Instinct MI100 (rocm)"),
        (Device("mps"), ""),
    ],
)
def test_a_gpu_s_title_has_the_platform_where_its_chip_may_have_several(device: Device, title: str) -> None:
    assert device.title == title


def test_one_cuda_device_is_shown_by_its_number_on_the_bus() -> None:
    shown = cuda_visibility(Device("cuda", 2), inherited={})
    assert shown == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2", "HIP_VISIBLE_DEVICES": "2"}


def test_rocm_devices_are_chosen_among_those_that_hip_and_the_layer_below_show() -> None:
    left = {"HIP_VISIBLE_DEVICES": "4,5", "ROCR_VISIBLE_DEVICES": "0,1,2,3,4,5"}
    shown = cuda_visibility(Device("rocm", 1), left)
    assert shown["HIP_VISIBLE_DEVICES"] == shown["CUDA_VISIBLE_DEVICES"] == "5"
    assert shown["ROCR_VISIBLE_DEVICES"] == left["ROCR_VISIBLE_DEVICES"]
    assert left.items() <= visible_cuda(left).items()


def test_only_what_the_user_has_left_visible_is_used() -> None:
    left = {"CUDA_VISIBLE_DEVICES": "3,GPU-8f2a", "PATH": "/bin"}
    assert visible_cuda(left) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "3,GPU-8f2a"}
    assert cuda_visibility(Device("cuda", 0), left)["CUDA_VISIBLE_DEVICES"] == "3"
    assert cuda_visibility(Device("cuda", 1), left)["CUDA_VISIBLE_DEVICES"] == "GPU-8f2a"
    assert "CUDA_VISIBLE_DEVICES" not in visible_cuda({})


def test_cuda_does_not_heed_what_is_said_to_hip() -> None:
    left = {"CUDA_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "0"}
    assert cuda_visibility(Device("cuda", 1), left)["CUDA_VISIBLE_DEVICES"] == "3"
    assert cuda_visibility(Device("rocm", 0), left)["HIP_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize("platform", ["cpu", "mps", "metal"])
def test_cuda_is_hidden_from_everything_else(platform: str) -> None:
    assert set(cuda_visibility(Device(platform)).values()) == {"-1"}


def test_labels_are_parsed() -> None:
    assert [parse_label(text) for text in ("cpu", "gpu", "gpu:3")] == [("cpu", 0), ("gpu", 0), ("gpu", 3)]


@pytest.mark.parametrize("text", ["", "cuda", "gpu:", "gpu:x", "gpu:-1", "cpu:1"])
def test_other_words_are_no_labels(text: str) -> None:
    with pytest.raises(ValueError, match="no device label"):
        parse_label(text)


def test_a_device_is_described_by_its_chip_where_that_is_known() -> None:
    assert Device("cuda", 1, "NVIDIA H200").described == "gpu:1 (NVIDIA H200)"
    assert Device("cpu").described == "cpu"
