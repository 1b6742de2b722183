from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.report import words
from tests import made


@pytest.mark.parametrize(
    ("write", "values", "texts"),
    [
        (words.three_digits, (0.000123, 0.0123, 1.8549, 12.345, 123.4), ("0.000123", "0.0123", "1.85", "12.3", "123")),
        (words.three_digits, (99_481, 0, -14.83, 9.999), ("99,500", "0", "-14.8", "10.0")),
        (words.percent, (0.0181, 0.123, 0.0996, 1.5, -0.2), ("1.8 %", "12 %", "10 %", "150 %", "-20 %")),
        (words.seconds, (7.6, 65, 3599.9, 4260), ("8 s", "1 min 05 s", "1 h 00 min", "1 h 11 min")),
        (words.whole_steps, (0.2, 1, 1.01, 99.2, 1234.0), ("1 step", "1 step", "2 steps", "100 steps", "1,230 steps")),
        (words.listed, ([], ["JAX"], ["JAX", "TensorFlow", "PyTorch"]), ("", "JAX", "JAX, TensorFlow and PyTorch")),
        (partial(words.span, unit="ms"), ([0.2, 0.09, 0.1], [2.0, 2.0]), ("0.0900 to 0.200 ms", "2.00 ms")),
        (partial(words.span, unit="ms"), ([1.0, 1.001],), ("1.00 ms",)),
        (partial(words.span, shown=words.multiple), ([1.3, 4.06, 27.0],), ("1.30 to 27×",)),
    ],
)
def test_numbers_and_lists_in_words(write: Callable[[Any], str], values: Sequence[Any], texts: Sequence[str]) -> None:
    assert tuple(map(write, values)) == texts


def test_an_interval_stands_behind_its_unit() -> None:
    assert words.with_range(made.estimate(12.3, 12.5214, 3), "ms") == "12.3 ms (12.1–12.5)"
    assert words.with_range(made.estimate(12.3), "ms") == "12.3 ms"
    assert words.with_range(made.amount(1.0, 2.0, 3), "ms") == "1.00 ms (-1.00 to 3.00)"


@pytest.mark.parametrize(
    ("value", "high", "text"),
    [(3.9, 4.1, "3.9× (3.7–4.1)"), (3.0, 221.7, "3.0× (0.041–221.7)"), (12.3, 151, "12× (1.0–151)"),
     (1.5, 2.0, "1.50× (1.12–2.00)"), (2.0, 4.1, "2.0× (0.98–4.1)")],
)  # fmt: skip
def test_a_bound_of_a_ratio_is_never_nothing(value: float, high: float, text: str) -> None:
    assert words.times(made.estimate(value, high, 3)) == text


def test_a_device_is_named_where_there_are_several() -> None:
    jax, torch = Column("jax", "cpu"), Column("torch", "cpu", Options(jit=True))
    assert words.names([jax, torch]) == {jax: "JAX", torch: "PyTorch (torch.compile)"}
    gpu = Column("jax", "gpu")
    assert words.names([jax, gpu, Column("tensorflow", "gpu:1")]) == {
        jax: "JAX on the CPU",
        gpu: "JAX on the GPU",
        Column("tensorflow", "gpu:1"): "TensorFlow on GPU 1",
    }
    labelled = Column("tensorflow", "cpu", Options(environment="keras-3.14", jit=True))
    assert words.names([labelled]) == {labelled: "TensorFlow @keras-3.14 (XLA)"}


def test_the_name_of_a_case_holds_what_differs() -> None:
    assert words.case_name(CaseKey("dense", "default", Column("torch", "cpu"))) == "dense torch cpu"
    threads = CaseKey("mnist", "tiny", Column("jax", "gpu", Options(threads=1)), Size(8))
    assert words.case_name(threads) == "mnist/tiny jax gpu threads=1 batch=8"
