"""Cards, processors, options, placement, recurrent layers and parity, with stand-ins: no framework is here."""

import ctypes
import dataclasses
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Proof, Resolved, Usage
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners.feed import Feed, Rows
from kerasbench.scenario import Workload
from kerasbench.worker import checks
from kerasbench.worker.checks import check_device
from tests import made

ONE, TWO = "8f2a0b1c-1111-2222-3333-444455556666", "8f2affff-1111-2222-3333-444455556666"


def driver(*uuids: str, status: int = 0, older: bool = False) -> Any:
    """What of libcuda is asked; its beginning may end with another status than success. A handle is not a number."""

    def get_count(count: Any) -> int:
        count._obj.value = len(uuids)
        return 0

    def get(device: Any, number: int) -> int:
        device._obj.value = number + 40
        return 0

    def get_uuid(told: Any, device: Any) -> int:
        ctypes.memmove(told._obj, bytes.fromhex(uuids[device.value - 40].replace("-", "")), 16)
        return 0

    functions = {"cuInit": lambda flags: status, "cuDeviceGetCount": get_count, "cuDeviceGet": get}
    return SimpleNamespace(**functions, **({} if older else {"cuDeviceGetUuid_v2": get_uuid}))


@pytest.mark.parametrize(
    ("library", "uuids"),
    [
        (driver(), []),
        (driver(TWO, ONE), [TWO, ONE]),
        (None, []),
        (driver(ONE, status=100), []),  # cuda.h, CUDA_ERROR_NO_DEVICE
        (driver(ONE, older=True), []),
        (driver("0" * 32), []),
    ],
)
def test_the_uuids_are_in_the_order_of_cuda(library: Any, uuids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    load = Mock(return_value=library, side_effect=None if library else OSError("cannot open shared object file"))
    monkeypatch.setattr(ctypes, "CDLL", load)
    assert checks.visible_cards(Device("cuda")) == uuids
    load.assert_called_once_with("libcuda.so.1")
    assert checks.visible_cards(Device("rocm")) == checks.visible_cards(Device("cpu")) == []


GOT = Resolved(False, "float32", ["float32"], ["float32"], "ieee", "channels_last", 2, {})
TWO_BUSY = Usage(20, 10)


def test_a_difference_is_a_failure_that_names_both() -> None:
    with pytest.raises(TrialFailure, match=r"asked for --jit on, but it ran with off$") as raised:
        checks.check_options(Options(jit=True), GOT, TWO_BUSY)
    assert raised.value.failure.code is Code.UNSUPPORTED


ON_CPU = Proof(["cpu:0"], ["cpu:0"], ["cpu:0"], ["cpu:0"])
ON_GPU = Proof(["cuda:0"], ["cuda:0"], ["cuda:0"], ["cuda:0"])
STRAYS = [
    (device, Proof(**(vars(proof) | {part: [*getattr(proof, part), stray]})), f"{part} on {stray}")
    for part in ("weights", "optimizer", "output", "runtime")
    for device, proof, stray in ((Device("cpu"), ON_CPU, "mps:0"), (Device("cuda"), ON_GPU, "cpu:0"))
]


@pytest.mark.parametrize(
    ("device", "proof", "cause"),
    [
        *STRAYS,
        (Device("cuda"), dataclasses.replace(ON_GPU, runtime=["cuda:0", "cuda:1"]), "the process sees cuda:0, cuda:1"),
        # torch's own view is its default device alone.
        (Device("cuda"), dataclasses.replace(ON_GPU, cards=["8f2a", "9c31"]), "alone, but CUDA shows 8f2a, 9c31"),
    ],
)
def test_what_strayed_or_sees_a_second_card_withholds_the_row(device: Device, proof: Proof, cause: str) -> None:
    with pytest.raises(TrialFailure, match=cause) as caught:
        check_device(device, proof)
    assert caught.value.failure.code is Code.WRONG_DEVICE


def runner(layers: Sequence[object] = (), dtype: str = "float32", device: Device = made.CPU, **different: Any) -> Any:
    rows = Rows(np.zeros((64, 2), np.float32), np.zeros(64, np.int32))
    feed = Feed(Workload(train=64, batch=64), rows, rows[:0], rows[:0])
    asked = SimpleNamespace(device=device)
    return SimpleNamespace(
        feed=feed, request=asked, layers=layers, compute_dtypes={dtype}, to_numpy=np.asarray, **different
    )


def sampled(predict: Callable[[], Any], *layers: object, **different: Any) -> list[list[float]]:
    return checks.sample_outputs(runner(layers, predictor=lambda batch: lambda x: predict(), **different))


def test_predictions_of_what_draws_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    assert sampled(lambda: rng.random((64, 2))) == []  # dropout that is always on
    assert sampled(lambda: np.ones((64, 2)), SimpleNamespace(name="sampling", _seed_generators=[object()])) == []


@pytest.mark.parametrize(
    ("apart", "device", "dtype", "compared"),
    [
        (1e-7, made.CPU, "float32", True),
        (1e-3, made.CPU, "float32", False),  # weak noise, which backends do not share
        (1e-4, Device("cuda"), "float32", True),  # a card's rounding
        (1e-2, Device("cuda"), "float32", False),
        (1e-2, made.CPU, "bfloat16", True),
    ],
)
def test_two_predictions_may_differ_by_rounding(apart: float, device: Device, dtype: str, compared: bool) -> None:
    noisy = iter([np.ones((64, 2)), np.ones((64, 2)) + apart])
    assert bool(sampled(lambda: next(noisy), dtype=dtype, device=device)) is compared


def test_outputs_are_some_finite_numbers_of_each() -> None:
    a, b = sampled(lambda: {"b": np.arange(640.0).reshape(64, 10), "a": np.array([[3.0]])})
    assert (a, len(b), b[:3]) == ([3.0], 64, [0.0, 11.0, 22.0])
    assert (len(set(b)), {number % 10 for number in b}) == (64, set(range(10)))  # every column
    with pytest.raises(TrialFailure, match=r"output\[1\] has numbers that are not finite") as raised:
        sampled(lambda: [np.array([1.0]), np.array([np.nan])])
    assert raised.value.failure.code is Code.NONFINITE


@pytest.mark.parametrize(
    ("dtype", "apart", "fails"),
    [("float32", 1e-4, False), ("float32", 1e-2, True), ("float32", float("nan"), True), ("float16", 1e-2, False)],
)
def test_every_way_to_predict_gives_the_same(dtype: str, apart: float, fails: bool) -> None:
    expected = {"a": np.array([[1.0, -2.0]], np.float32), "b": np.zeros(3, np.float32)}
    outputs = {"a": expected["a"] + 2 * np.float32(apart), "b": expected["b"]}
    cause = re.escape("output['a'] of compiled_call lies")
    with pytest.raises(TrialFailure, match=cause) if fails else nullcontext() as raised:
        checks.require_equal("compiled_call", outputs, expected, runner(dtype=dtype))
    assert raised is None or raised.value.failure.code is Code.PARITY
