"""Devices and options as they are named, asked for, crossed, and refused where they mean nothing."""

import dataclasses

import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import cases, request
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.columns import (
    DEFAULT,
    Column,
    Device,
    Environment,
    Options,
    Size,
    cuda_visibility,
    parse_label,
    visible_cuda,
)
from kerasbench.settings import Settings
from tests import made


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


def test_a_label_names_what_differs_from_the_default() -> None:
    assert DEFAULT.label == ""
    assert Options(jit=False, dtype="mixed_float16", fp32="tf32", threads=1, native=True).label == (
        "jit=off dtype=mixed_float16 fp32=tf32 threads=1 native=on"
    )


def test_a_size_stands_behind_the_terms_that_a_series_has_in_common() -> None:
    sized = Options(jit=True, batch=64, width=0.5)
    assert sized.label == "jit=on batch=64 width=0.5"
    assert sized.unsized.label == "jit=on"
    assert sized.size == Size(64, 0.5)
    assert sized.at(Size(8)) == Options(jit=True, batch=8)
    assert DEFAULT.size is None


@pytest.mark.parametrize(
    ("size", "other", "exceeds"),
    [
        (Size(2), Size(1), True),
        (Size(1), Size(1), False),
        (Size(1), Size(2), False),
        (Size(2, 1.0), Size(1, 2.0), False),
        (Size(2, 2.0), Size(2, 1.0), True),
        (Size(width=2.0), Size(width=1.0), True),
    ],
)
def test_a_size_exceeds_another_when_nothing_of_it_is_smaller(size: Size, other: Size, exceeds: bool) -> None:
    assert size.exceeds(other) is exceeds


def test_options_are_crossed_and_taken_once() -> None:
    assert request.options_of([], [], [], []) == [DEFAULT]
    assert request.options_of(["on", "off"], ["float32", "float32"], [], ["1"]) == [
        Options(jit=True, dtype="float32", threads=1),
        Options(jit=False, dtype="float32", threads=1),
    ]


def test_twins_are_columns_beside_all_others() -> None:
    assert request.options_of([], [], [], ["1", "2"], native=True) == [
        Options(threads=1),
        Options(threads=2),
        Options(threads=1, native=True),
        Options(threads=2, native=True),
    ]


def test_busy_cores_are_columns_beside_all_others_and_compete_with_none() -> None:
    found = request.options_of([], [], [], [], native=True, busy_cores=["1", "2"])
    assert [one.label for one in found] == [
        "",
        "native=on",
        "busy-cores=1",
        "native=on busy-cores=1",
        "busy-cores=2",
        "native=on busy-cores=2",
    ]
    assert [one for one in found if Column("jax", "cpu", one).competes] == [DEFAULT]


@pytest.mark.parametrize("given", ["0", "-1", "all"])
def test_busy_cores_are_counted(given: str) -> None:
    with pytest.raises(UsageError, match="--busy-cores takes whole numbers from 1 on"):
        request.options_of([], [], [], [], busy_cores=[given])


def test_published_epochs_are_run_in_one_go_beside_which_no_turn_keeps_cores_busy() -> None:
    with pytest.raises(UsageError, match="--protocol published takes none"):
        request.run(Settings(busy_cores=["1"], protocol="published"))


@pytest.mark.parametrize(
    ("backend", "keras_only", "options", "reason"),
    [
        ("torch", "", Options(native=True), None),
        ("torch", "", Options(native=True, dtype="float32", fp32="framework-default", threads=1), None),
        ("jax", "", Options(native=True), "dense has no twin in plain jax"),
        ("jax", "", Options(), None),
        ("torch", "a pipeline of its own", Options(native=True), "dense has a pipeline of its own"),
        ("torch", "", Options(native=True, jit=False), "is compiled as its framework does"),
        ("torch", "", Options(native=True, dtype="mixed_bfloat16"), "computes in float32"),
        ("torch", "", Options(native=True, threads=10_000), "10000 threads"),
        ("torch", "", Options(busy_cores=2), None),
        ("torch", "", Options(busy_cores=3), "3 processors were to be kept busy, 2 are there"),
    ],
)
def test_where_there_is_no_twin_the_reason_is_said(
    backend: str, keras_only: str, options: Options, reason: str | None
) -> None:
    entry = dataclasses.replace(made.entry(), twins={"torch": "hash"})
    workload = dataclasses.replace(made.workload(), keras_only=keras_only)
    failure = cases.unsupported(cases.Case(Selected(entry, workload), backend, made.CPU, options), 2)
    assert (failure is None) if reason is None else (failure is not None and reason in failure.cause)


@pytest.mark.parametrize(
    ("jit", "dtype", "fp32", "threads", "complaint"),
    [
        (["yes"], [], [], [], "value of --jit 'yes'"),
        ([], ["bf16"], [], [], r"value of --dtype 'bf16'.*bfloat16"),
        ([], [], ["tf23"], [], "did you mean 'tf32'"),
        ([], [], [], ["0"], "whole numbers from 1 on"),
        ([], [], [], ["two"], "whole numbers from 1 on"),
    ],
)
def test_unknown_values_are_refused(
    jit: list[str], dtype: list[str], fp32: list[str], threads: list[str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        request.options_of(jit, dtype, fp32, threads)


@pytest.mark.parametrize(
    ("device", "options", "reason"),
    [
        (Device("cpu"), Options(fp32="tf32"), "TF32 is a mode of NVIDIA GPUs, not of cpu"),
        (Device("mps"), Options(fp32="tf32"), "not of mps"),
        (Device("mps"), Options(dtype="float64"), "no float64"),
        (Device("cpu"), Options(threads=10_000), "10000 threads were asked for"),
        (Device("cuda"), Options(fp32="tf32"), None),
        (Device("cpu"), Options(jit=True, dtype="float64", fp32="framework-default", threads=1), None),
    ],
)
def test_what_means_nothing_on_a_device_is_unsupported_before_it_is_tried(
    device: Device, options: Options, reason: str | None
) -> None:
    failure = cases.unsupported(made.case(device=device, options=options), 2)
    assert (failure is None) if reason is None else (failure is not None and reason in failure.cause)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2m ", 120)])
def test_durations(text: str, seconds: float) -> None:
    assert request.parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "10 minutes", "-5m", "0", "1e9"])
def test_other_words_are_no_durations(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        request.parse_duration_s(text)


def test_the_label_of_an_interpreter_stands_before_all_other_terms() -> None:
    options = Options(jit=True, batch=8, environment="keras-3.14", control=True)
    assert options.label == "@keras-3.14 jit=on control=on batch=8"
    assert Column("jax", "cpu", options.unsized).label == "jax cpu @keras-3.14 jit=on control=on"


@pytest.mark.parametrize(("text", "backend", "label"), [("torch", "torch", ""), ("jax@3.14", "jax", "3.14")])
def test_an_environment_is_a_backend_and_perhaps_a_label(text: str, backend: str, label: str) -> None:
    assert Environment.parse(text) == Environment(backend, label)
    assert str(Environment(backend, label)) == text


@pytest.mark.parametrize("timeout_s", [float("inf"), float("nan"), 0.0, -1.0])
def test_what_is_no_time_is_refused(timeout_s: float) -> None:
    with pytest.raises(UsageError, match="--timeout takes a number of seconds above 0, not"):
        request.require_time(timeout_s)
    request.require_time(None)
    request.require_time(0.5)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4g", 4 << 30), ("4G", 4 << 30), ("500m", 500 << 20), ("1.5GiB", 3 << 29), (" 2gb ", 2 << 30)],
)
def test_sizes_of_memory_are_read(text: str, size_bytes: int) -> None:
    assert request.parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "4", "g", "-1g", "0g", "4t", "4g4", "1e3m", "٤g"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a size of memory: .*; say 500m or 4g"):
        request.parse_size_bytes(text)
