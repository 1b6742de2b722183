"""Numbers and names as they stand in tables and sentences."""

import dataclasses

import pytest

from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.report.words import (
    case_name,
    listed,
    multiple,
    names,
    percent,
    seconds,
    span,
    three_digits,
    times,
    whole_steps,
    with_range,
)
from tests import made


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.000123, "0.000123"), (0.0123, "0.0123"), (1.8549, "1.85"), (12.345, "12.3"), (123.4, "123"), (99_481, "99,500"),
     (0, "0"), (-14.83, "-14.8"), (9.999, "10.0")],
)  # fmt: skip
def test_three_digits_without_exponents(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_an_interval_stands_behind_its_unit() -> None:
    assert with_range(made.estimate(12.3, 12.5214, 3), "ms") == "12.3 ms (12.1–12.5)"
    assert with_range(made.estimate(12.3), "ms") == "12.3 ms"
    assert with_range(made.amount(1.0, 2.0, 3), "ms") == "1.00 ms (-1.00 to 3.00)"


@pytest.mark.parametrize(
    ("values", "text"), [([0.2, 0.09, 0.1], "0.0900 to 0.200 ms"), ([2.0, 2.0], "2.00 ms"), ([1.0, 1.001], "1.00 ms")]
)
def test_a_span_has_both_ends_where_they_differ(values: list[float], text: str) -> None:
    assert span(values, unit="ms") == text
    assert span([1.3, 4.06, 27.0], multiple) == "1.30 to 27×"


@pytest.mark.parametrize(
    ("value", "high", "text"),
    [(3.9, 4.1, "3.9× (3.7–4.1)"), (3.0, 221.7, "3.0× (0.041–221.7)"), (12.3, 151, "12× (1.0–151)"),
     (1.5, 2.0, "1.50× (1.12–2.00)"), (2.0, 4.1, "2.0× (0.98–4.1)")],
)  # fmt: skip
def test_a_bound_of_a_ratio_is_never_nothing(value: float, high: float, text: str) -> None:
    assert times(made.estimate(value, high, 3)) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0181, "1.8 %"), (0.123, "12 %"), (0.0996, "10 %"), (1.5, "150 %"), (-0.2, "-20 %")]
)
def test_percentages(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"), [(7.6, "8 s"), (65, "1 min 05 s"), (3599.9, "1 h 00 min"), (4260, "1 h 11 min")]
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("steps", "text"),
    [(0.2, "1 step"), (1, "1 step"), (1.01, "2 steps"), (99.2, "100 steps"), (1234.0, "1,230 steps")],
)
def test_steps_are_whole_and_rounded_up(steps: float, text: str) -> None:
    assert whole_steps(steps) == text


def test_a_device_is_named_where_there_are_several() -> None:
    jax, torch = Column("jax", "cpu"), Column("torch", "cpu", Options(jit=True))
    assert names([jax, torch]) == {jax: "JAX", torch: "PyTorch (torch.compile)"}
    gpu = Column("jax", "gpu")
    assert names([jax, gpu, Column("tensorflow", "gpu:1")]) == {
        jax: "JAX on the CPU",
        gpu: "JAX on the GPU",
        Column("tensorflow", "gpu:1"): "TensorFlow on GPU 1",
    }
    labelled = Column("tensorflow", "cpu", Options(environment="keras-3.14", jit=True))
    assert names([labelled]) == {labelled: "TensorFlow @keras-3.14 (XLA)"}


def test_the_name_of_a_case_holds_what_differs() -> None:
    assert case_name(CaseKey("dense", "default", Column("torch", "cpu"))) == "dense torch cpu"
    threads = CaseKey("mnist", "tiny", Column("jax", "gpu", Options(threads=1)), Size(8))
    assert case_name(threads) == "mnist/tiny jax gpu threads=1 batch=8"


def test_a_list_reads_as_a_sentence_has_it() -> None:
    assert listed([]) == ""
    assert listed(["JAX"]) == "JAX"
    assert listed(["JAX", "TensorFlow", "PyTorch"]) == "JAX, TensorFlow and PyTorch"


def test_every_setting_has_its_words() -> None:
    set_ = Options(dtype="float16", fp32="tf32", threads=1, malloc="keep", steps_per_execution=8, batch_size=64)
    (name,) = names(
        [Column("jax", "cpu", dataclasses.replace(set_, native=True, warm_cache=True, control=True))]
    ).values()
    words = "float16, fp32 tf32, 1 thread, freed memory kept, steps_per_execution=8, batch 64"
    assert name == f"JAX ({words}, without Keras, warm cache, measured again)"
