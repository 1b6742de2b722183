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
)
from kerasbench.settings import Settings
from tests import made


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
