"""Cards, processors, options, placement, recurrent layers and parity, with stand-ins: no framework is here."""

import ctypes
import dataclasses
import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench.protocol.columns import DEFAULT, Device, Options
from kerasbench.protocol.measurement import Proof, Resolved, Usage
from kerasbench.protocol.messages import Code
from kerasbench.scenario import Workload
from kerasbench.worker import checks
from kerasbench.worker.checks import RecurrentSpy, check_device, gather_proof
from kerasbench.worker.failure import TrialFailure
from kerasbench.runners.feed import Feed, Rows
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
    assert checks.visible_cards() == uuids
    load.assert_called_once_with("libcuda.so.1")


def kernel(root: Path, siblings: dict[int, str]) -> Path:
    for cpu, text in siblings.items():
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("threads", "count", "cores"),
    [
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, 2, {0, 2}),  # of an Intel desktop
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, 3, {0, 1, 2}),
        ({0: "0,64", 1: "1,65", 64: "0,64", 65: "1,65"}, 2, {0, 1}),  # of an EPYC with 64 cores
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 4: "4", 5: "5"}, 5, {0, 1, 2, 4, 5}),  # two cores are efficient
        ({1: "0-1", 2: "2-3", 3: "2-3"}, 2, {1, 2}),  # a core whose first thread is somebody else's
    ],
)
def test_cores_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any, count: int, cores: Any
) -> None:
    kept: list[int] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(threads), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: kept.extend(cpus), raising=False)
    checks.limit_processors(count, kernel(tmp_path, threads))
    assert set(kept) == cores


@pytest.mark.parametrize("text", ["", "rubbish", "0-", "-1", "0,x"])
def test_where_the_kernel_does_not_tell_each_processor_is_a_core(tmp_path: Path, text: str) -> None:
    assert checks.siblings(7, kernel(tmp_path, {7: text})) == {7}
    assert checks.siblings(8, tmp_path) == {8}


GOT = Resolved(False, "float32", ["float32"], ["float32"], "ieee", "channels_last", 2, {})
TWO_BUSY = Usage(20, 10)


@pytest.mark.parametrize(
    ("asked", "different", "names"),
    [
        (DEFAULT, {}, []),
        (DEFAULT, {"jit": True}, []),  # nobody asked
        (Options(jit=True), {}, ["--jit"]),
        (Options(dtype="mixed_bfloat16"), {}, ["--dtype"]),
        (Options(dtype="mixed_bfloat16"), {"dtype_policy": "mixed_bfloat16", "compute_dtypes": ["bfloat16"]}, []),
        # A scenario that names its layers' dtype itself.
        (Options(dtype="mixed_bfloat16"), {"dtype_policy": "mixed_bfloat16"}, ["--dtype"]),
        (Options(dtype="float64"), {"dtype_policy": "float64", "compute_dtypes": ["float64"]}, ["--dtype"]),
        (DEFAULT, {"fp32": "tf32"}, ["--fp32"]),
        (Options(fp32="tf32"), {"fp32": "tf32"}, []),
        (Options(fp32="framework-default"), {"fp32": "mixed"}, []),
        (Options(threads=1), {}, ["--threads"]),
        (Options(threads=1), {"threads": 1}, ["--threads"]),  # a pool of one, and two processors busy
        (Options(threads=2), {"threads": None}, []),
        (Options(steps_per_execution=8), {}, ["--steps-per-execution"]),
        (DEFAULT, {"steps_per_execution": 8}, []),  # the scenario's own choice
        (Options(malloc="keep"), {}, ["--malloc"]),
        (Options(warm_cache=True), {"cached": 3}, []),
        (Options(warm_cache=True), {}, ["--warm-cache"]),
        (Options(warm_cache=True), {"cached": None}, []),
    ],
)
def test_what_was_asked_for_and_what_came(asked: Options, different: dict[str, Any], names: list[str]) -> None:
    got = dataclasses.replace(GOT, **different)
    assert [name for name, _, _ in checks.differences(asked, got, TWO_BUSY)] == names


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


@pytest.mark.parametrize(("platform", "cards"), [("cuda", ["8f2a"]), ("rocm", []), ("mps", []), ("cpu", [])])
def test_cuda_alone_is_asked_for_its_cards(platform: Any, cards: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "visible_cards", lambda: ["8f2a"])
    backend: Any = SimpleNamespace(placement=lambda tensor: "gpu:0", runtime_view=lambda: ["gpu:0"])
    model = SimpleNamespace(variables=[], optimizer=SimpleNamespace(variables=[]))
    assert gather_proof(backend, Device(platform, 1), model, None).cards == cards


LSTM, Dense = type("LSTM", (), {}), type("Dense", (), {})
OwnLSTM = type("OwnLSTM", (LSTM,), {})


@pytest.mark.usefixtures("numpy_keras")
@pytest.mark.parametrize(
    ("moments", "share"),
    [
        ({"a_momentum": [1e-21, 1e-3, 0.0, 0.0], "a_velocity": [1e-9, 1e-9, 1e-9, 0.0]}, 0.5),  # the last never lived
        ({"a_momentum": [-1e-30, 1.0], "b_momentum": [0.0, 1.0]}, 0.25),  # of SGD: zero may be what it began with
        ({"a_velocity": [1e-30]}, None),
    ],
)
def test_first_moments_vanish_that_have_lived(moments: dict[str, list[float]], share: float | None) -> None:
    def optimizer(dtype: str) -> Any:
        variables = [SimpleNamespace(path=f"adam/{path}", value=value, dtype=dtype) for path, value in moments.items()]
        return SimpleNamespace(variables=variables)

    assert checks.vanishing(optimizer("float32")) == share
    assert checks.vanishing(optimizer("float64")) is None
    of_a_baseline = SimpleNamespace(variables=[SimpleNamespace(value=[1e-30], dtype="float32")])
    assert checks.vanishing(of_a_baseline) is checks.vanishing(None) is None


def model(*layers: object) -> Any:
    return SimpleNamespace(_flatten_layers=lambda include_self=True: list(layers))


def backend(monkeypatch: pytest.MonkeyPatch, name: str, refuses: bool, by_cudnn: bool) -> Any:
    """Stand in for keras.src.backend, whose lstm may refuse, and may go on to cuDNN."""
    inside: Any = ModuleType(f"keras.src.backend.{name}.rnn")

    def lstm() -> object:
        if refuses:
            raise NotImplementedError
        return by_cudnn and inside._cudnn_lstm()

    lstm.__module__ = inside.__name__
    vars(inside).update(lstm=lstm, _cudnn_lstm=lambda: "by cuDNN")
    functions = SimpleNamespace(lstm=lstm)
    monkeypatch.setitem(sys.modules, "keras.src.backend", functions)
    monkeypatch.setitem(sys.modules, inside.__name__, inside)
    return functions


@pytest.mark.parametrize(
    ("name", "refuses", "by_cudnn", "layer", "notes"),
    [
        ("torch", False, True, OwnLSTM(), ["lstm: cudnn"]),
        ("torch", False, False, OwnLSTM(), ["lstm: backend"]),
        ("tensorflow", True, False, OwnLSTM(), ["lstm: keras"]),
        ("jax", False, False, OwnLSTM(), ["lstm: cudnn"]),
        ("jax", True, False, OwnLSTM(), ["lstm: keras"]),
        ("torch", False, False, Dense(), []),
    ],
)
def test_the_way_that_was_taken(
    monkeypatch: pytest.MonkeyPatch, name: str, refuses: bool, by_cudnn: bool, layer: object, notes: list[str]
) -> None:
    functions: Any = backend(monkeypatch, name, refuses, by_cudnn)
    inside = sys.modules[f"keras.src.backend.{name}.rnn"]
    before = dict(vars(functions)), dict(vars(inside))
    with RecurrentSpy(model(Dense(), layer)) as spy, suppress(NotImplementedError):  # Keras takes its own loop there
        functions.lstm()
    assert spy.notes == notes
    assert (dict(vars(functions)), dict(vars(inside))) == before


def test_a_keras_without_these_functions_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras.src.backend", ModuleType("keras.src.backend"))
    with RecurrentSpy(model(LSTM())) as spy:
        pass
    assert spy.notes == []


DENSE = SimpleNamespace(name="dense", units=3, weights=["kernel"], compute_dtype="float32")
DRAWS: dict[str, Any] = {"_seed_generators": [object()]}


@pytest.mark.parametrize(
    ("layer", "random", "can"),
    [
        (DENSE, False, True),
        (SimpleNamespace(**DRAWS, rate=0.5), True, True),
        (SimpleNamespace(**DRAWS, rate=0), False, True),
        (SimpleNamespace(**DRAWS, stddev=0.1), True, True),
        (SimpleNamespace(**DRAWS, dropout=0.0, recurrent_dropout=0.2), True, True),
        (SimpleNamespace(**DRAWS, factor=(0.1, 0.2)), True, False),  # a random rotation: no amount to zero
        (SimpleNamespace(**DRAWS, fit=None, rate=0.0), True, False),  # a model's own: its rate may be anything
        (SimpleNamespace(rate=0.5), False, True),  # no generator: a rate of something else
    ],
)
def test_random_layers(layer: Any, random: bool, can: bool) -> None:
    assert bool(checks.random_layers(model(DENSE, layer))) is random
    assert checks.can_be_silenced(model(DENSE, layer)) is can


def test_what_draws_is_silenced_and_its_predictions_are_not_compared() -> None:
    layer = SimpleNamespace(name="dropout", **DRAWS, rate=0.5, recurrent_dropout=0.0)
    assert checks.silence(model(DENSE, layer)) == ["dropout"]
    assert layer.rate == 0.0
    assert checks.random_layers(model(DENSE, layer)) == []
    rng = np.random.default_rng(0)
    assert sampled(lambda: rng.random((64, 2)), DENSE) == []  # dropout that is always on
    assert sampled(lambda: np.ones((64, 2)), SimpleNamespace(name="sampling", **DRAWS, weights=[])) == []


def sampled(predict: Callable[[], Any], *layers: SimpleNamespace, device: Device = made.CPU) -> list[list[float]]:
    of_layers = model(*layers)
    of_layers.predict = lambda x, batch_size, verbose: predict()
    rows = Rows(np.zeros((64, 2), np.float32), np.zeros(64, np.int32))
    return checks.sample_outputs(of_layers, Feed(Workload(train=64, batch=64), rows, rows[:0], rows[:0]), device)


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
    layer = SimpleNamespace(**(vars(DENSE) | {"compute_dtype": dtype}))
    assert bool(sampled(lambda: next(noisy), layer, device=device)) is compared


def test_outputs_are_some_finite_numbers_of_each() -> None:
    a, b = sampled(lambda: {"b": np.arange(640.0).reshape(64, 10), "a": np.array([[3.0]])}, DENSE)
    assert (a, len(b), b[:3]) == ([3.0], 64, [0.0, 11.0, 22.0])
    assert (len(set(b)), {number % 10 for number in b}) == (64, set(range(10)))  # every column
    with pytest.raises(TrialFailure, match=r"output\[1\] has numbers that are not finite") as raised:
        sampled(lambda: [np.array([1.0]), np.array([np.nan])], DENSE)
    assert raised.value.failure.code is Code.NONFINITE


def test_layers_by_which_backends_differ_more_are_known_by_their_class_or_one_that_it_is_derived_from() -> None:
    embedding, normalization = (type(name, (), {}) for name in ("Embedding", "BatchNormalization"))
    derived = type("OwnEmbedding", (embedding,), {})()
    assert checks.sensitive_layers(model(DENSE)) == []
    assert checks.sensitive_layers(model(derived, DENSE)) == ["Embedding"]
    assert checks.sensitive_layers(model(embedding(), normalization(), derived)) == ["BatchNormalization", "Embedding"]


@pytest.mark.usefixtures("numpy_keras")
@pytest.mark.parametrize(
    ("dtype", "apart", "fails"),
    [("float32", 1e-4, False), ("float32", 1e-2, True), ("float32", float("nan"), True), ("float16", 1e-2, False)],
)
def test_every_way_to_predict_gives_the_same(dtype: str, apart: float, fails: bool) -> None:
    expected = {"a": np.array([[1.0, -2.0]], np.float32), "b": np.zeros(3, np.float32)}
    outputs = {"a": expected["a"] + 2 * np.float32(apart), "b": expected["b"]}
    computing = model(SimpleNamespace(compute_dtype=dtype, weights=[1]), SimpleNamespace(weights=[]))
    cause = re.escape("output['a'] of compiled_call lies")
    with pytest.raises(TrialFailure, match=cause) if fails else nullcontext() as raised:
        checks.require_equal("compiled_call", outputs, expected, computing)
    assert raised is None or raised.value.failure.code is Code.PARITY
