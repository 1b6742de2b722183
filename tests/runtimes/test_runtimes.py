"""What a runtime predicts is that of Keras, or it has no number; and how rows become batches of a static shape."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerasbench import backends, runtimes
from kerasbench.protocol.measurement import Exported
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners import Call
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runtimes import Runtime, apart
from kerasbench.scenario import Workload

X: Any = np.arange(12, dtype=np.float32).reshape(6, 2)
WORKLOAD = Workload(train=6, batch=4)
NONE = Rows([], [])


class Doubles(Runtime):
    """Its programs double what they are given, and take no other number of rows than their own."""

    name = package = said = "doubles"
    exporters = {"jax": ()}  # noqa: RUF012

    @staticmethod
    def export(model: Any, x: Any, file: Path) -> str:
        raise NotImplementedError

    def open(self, file: Path) -> Call:
        def call(x: Any) -> Any:
            assert len(x) == int(file.parent.name)
            return {"twice": 2 * x, "sum": x.sum(axis=1)}

        return call

    def put(self, array: Any) -> Any:
        return array


def loaded() -> Doubles:
    exported = Exported("", 0, 0.0, [1, 4], 8, "channels_last", {})
    runtime = Doubles(backends.get("jax"), exported, Feed(WORKLOAD, Rows(X, X), NONE, NONE), 0, 3)
    runtime.load(Path("nowhere"))
    return runtime


# There may be fewer training rows than a batch of predictions has.
@pytest.mark.parametrize(("rows", "batch"), [(1, 4), (4, 4), (6, 4), (6, 32)])
def test_any_number_of_rows_is_predicted_in_batches_of_one_size(rows: int, batch: int) -> None:
    predicted = loaded().predictor(batch)(X[:rows])
    assert predicted["twice"].tolist() == (2 * X[:rows]).tolist()
    assert predicted["sum"].tolist() == X[:rows].sum(axis=1).tolist()


def test_a_call_is_of_the_program_of_its_batch() -> None:
    runtime = loaded()
    assert runtime.predict_on_batch(X[:1])["sum"].tolist() == [1.0]
    assert runtime.caller(compiled=True) is None
    call = runtime.caller(compiled=False)
    assert call is not None and call(X[:4])["twice"].tolist() == (2 * X[:4]).tolist()


SAME: Any = np.array([[1.0, -200.0], [0.0, 3.0]], np.float32)
ROUNDED = np.array([[1.0, -200.0], [0.0, 3.0078125]], np.float32)  # as bfloat16 may have it
TRANSPOSED, NO_NUMBER = np.ascontiguousarray(SAME.T), np.array([[1.0, np.nan], [0.0, 3.0]], np.float32)


@pytest.mark.parametrize(
    ("expected", "predicted", "cause"),
    [
        (SAME, SAME + np.float32(0.01), ""),  # 5e-5 of 200
        (SAME, SAME + np.float32(0.03), "output lies 0.03 from that of Keras (the largest number is 2e+02"),
        (SAME / 200, SAME / 200 + (ROUNDED - SAME) / 2, "output lies 0.0039"),
        (SAME, TRANSPOSED, "output lies 2e+02"),
        (SAME, SAME[:, :1], "output has the shape (2, 1), with Keras (2, 2)"),
        (SAME, NO_NUMBER, "output lies nan"),
        ([SAME, SAME], [SAME], "it has 1 outputs, with Keras 2"),
        ({"a": SAME, "b": SAME}, {"a": SAME, "b": SAME + 1}, "output['b'] lies 1"),
    ],
)
def test_outputs_are_those_of_keras_within_a_ten_thousandth_of_the_largest(
    expected: Any, predicted: Any, cause: str
) -> None:
    found = apart(expected, predicted)
    assert found.startswith(cause) and bool(found) is bool(cause)


def test_a_runtime_without_a_say_computes_as_the_model_does() -> None:
    runtime = loaded()
    assert runtime.compute_dtypes == {"float32"}
    runtime.exported = dataclasses.replace(runtime.exported, compute_dtypes=["bfloat16", "float32"])
    assert runtime.computes_in() == ["bfloat16", "float32"]


def test_a_program_that_predicts_something_else_has_no_number() -> None:
    runtime, inputs = loaded(), {1: X[:1], 4: X[:4]}
    expected = {size: runtime.predict_on_batch(x) for size, x in inputs.items()}
    runtime.require_same(inputs, expected)
    expected[4]["twice"] = X[:4]
    with pytest.raises(TrialFailure) as raised:
        runtime.require_same(inputs, expected)
    assert raised.value.failure.code is Code.PARITY
    assert raised.value.failure.cause.startswith("the exported model is another one: output['twice'] lies 7 from")


@pytest.mark.parametrize("name", runtimes.names())
def test_a_runtime_says_what_it_is_and_who_exports_it(name: str) -> None:
    runtime = runtimes.get(name)
    assert runtime.name == name and runtime.title and runtime.package
    assert {*runtime.exporters} <= {*backends.names()} and runtime.exporters
