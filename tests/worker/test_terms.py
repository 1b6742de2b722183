import dataclasses
from typing import Any

import pytest

from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.protocol.messages import Code
from kerasbench.worker import checks
from kerasbench.worker.failure import TrialFailure

GOT = Resolved(False, "float32", ["float32"], ["float32"], "ieee", "channels_last", 2, {})
TWO_BUSY = Usage(20, 10, 0)


@pytest.mark.parametrize(
    ("asked", "different", "names"),
    [
        (DEFAULT, {}, []),
        (DEFAULT, {"jit": True}, []),  # nobody asked
        (Options(jit=True), {}, ["--jit"]),
        (Options(jit=False), {}, []),
        (Options(dtype="mixed_bfloat16"), {}, ["--dtype"]),
        (Options(dtype="mixed_bfloat16"), {"dtype_policy": "mixed_bfloat16", "compute_dtypes": ["bfloat16"]}, []),
        # A scenario that names its layers' dtype itself.
        (Options(dtype="mixed_bfloat16"), {"dtype_policy": "mixed_bfloat16"}, ["--dtype"]),
        (DEFAULT, {"dtype_policy": "bfloat16", "compute_dtypes": ["bfloat16"]}, []),  # the scenario's own choice
        (Options(dtype="float64"), {"dtype_policy": "float64", "compute_dtypes": ["float64"]}, ["--dtype"]),
        (DEFAULT, {"fp32": "tf32"}, ["--fp32"]),
        (DEFAULT, {"fp32": "mixed"}, ["--fp32"]),
        (Options(fp32="tf32"), {"fp32": "tf32"}, []),
        (Options(fp32="framework-default"), {"fp32": "mixed"}, []),
        (Options(threads=1), {}, ["--threads"]),
        (Options(threads=1), {"threads": 1}, ["--threads"]),  # a pool of one, and two processors busy
        (Options(threads=2), {}, []),
        (Options(threads=2), {"threads": None}, []),
        (Options(busy_cores=2), {"busy_cores": 0.9}, []),
        (Options(busy_cores=2), {"busy_cores": 0.1}, ["--busy-cores"]),
        (Options(busy_cores=1), {"busy_cores": None}, ["--busy-cores"]),
    ],
)
def test_what_was_asked_for_and_what_came(asked: Options, different: dict[str, Any], names: list[str]) -> None:
    got = dataclasses.replace(GOT, **different)
    assert [name for name, _, _ in checks.differences(asked, got, TWO_BUSY)] == names


def test_a_difference_is_a_failure_that_names_both() -> None:
    with pytest.raises(TrialFailure) as raised:
        checks.check_options(Options(jit=True), GOT, TWO_BUSY)
    assert raised.value.failure.code is Code.UNSUPPORTED
    assert raised.value.failure.cause == "asked for --jit on, but it ran with off"
