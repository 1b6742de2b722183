"""Which causes a model may have, and that a function of Keras which is not known is left alone."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kerasbench import backends
from kerasbench.plan import cases
from kerasbench.private import PrivateName
from kerasbench.protocol.columns import DEFAULT, Device, Options
from kerasbench.protocol.measurement import Resolved
from kerasbench.variants import BY_NAME, CAUSES
from kerasbench.variants.causes.cause import Cause, source_hash
from kerasbench.variants.causes.last_channels import LastChannels
from kerasbench.variants.causes.pooling_copy import PoolingCopy
from kerasbench.variants.causes.slow_recurrence import SlowRecurrence
from tests import made

COPYING = "def _transpose_spatial_inputs(inputs):\n    return inputs.contiguous()\n"
FREE = "def _transpose_spatial_inputs(inputs):\n    # no .contiguous()\n    return inputs\n"
POOL = "def max_pool(inputs):\n    return _transpose_spatial_inputs(inputs{asks})\n"


def twice(number: int) -> int:
    return 2 * number


TWICE = PrivateName((f"{__name__}:twice",), "nothing tells what twice is")


def planted(*sources: str) -> Cause:
    return SimpleNamespace(function=TWICE, sources=sources)  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def keras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.99.0"))


def test_a_function_that_is_not_known_is_not_changed() -> None:
    assert Cause.obstacle(planted("0", source_hash(twice))) == ""
    assert Cause.obstacle(planted("0")) == "Keras 3.99.0 has another twice than kerasbench can change"


def test_a_column_whose_function_became_another_is_refused() -> None:
    column = PoolingCopy()
    column.function = TWICE  # type: ignore[misc]
    cause, _ = made.known(column.on_model(True, None, "torch"))
    assert cause == "Keras 3.99.0 has another twice than kerasbench can change"
    assert twice(2) == 4


class BasePooling:
    data_format = "channels_last"


class BaseConv(BasePooling):
    pass


class First(BasePooling):
    data_format = "channels_first"


@pytest.mark.parametrize("place", ["nn", "ops.nn"])
@pytest.mark.parametrize(
    ("helper", "asks", "layers", "has_it"),
    [
        (COPYING, "", [BasePooling()], True),
        (COPYING, "", [First()], False),
        (COPYING, "", [object()], False),  # no pooling
        (FREE, "", [BasePooling()], False),  # before 3.15
        (COPYING, ", channels_last_memory_format=True", [BasePooling()], False),  # mended
    ],
)
def test_pooling_is_suspected_where_there_is_some_and_keras_copies(
    monkeypatch: pytest.MonkeyPatch, helper: str, asks: str, layers: list[Any], has_it: bool, place: str
) -> None:
    sources = {"_transpose_spatial_inputs": helper, "max_pool": POOL.format(asks=asks)}
    nn = ModuleType("nn")
    vars(nn).update({name: name for name in sources})
    monkeypatch.setitem(sys.modules, f"keras.src.backend.torch.{place}", nn)
    monkeypatch.setattr("inspect.getsource", sources.__getitem__)
    assert PoolingCopy().concerns(SimpleNamespace(_flatten_layers=lambda: layers)) is has_it


@pytest.mark.parametrize(
    ("backend", "options", "titles"),
    [
        ("jax", DEFAULT, ["epoch cost", "returned memory", "slow recurrence"]),
        ("jax", Options(malloc="keep"), ["epoch cost", "slow recurrence"]),
        ("tensorflow", DEFAULT, ["array feed", "epoch cost", "rolled steps", "slow recurrence"]),
    ],
)
def test_which_causes_a_backend_has(
    monkeypatch: pytest.MonkeyPatch, backend: str, options: Options, titles: list[str]
) -> None:
    monkeypatch.setattr("kerasbench.variants.malloc.has_glibc", lambda: True)
    case = made.case(backend=backend, options=options)
    known = cases.facts(case, 2)
    assert sorted(cause.title for cause in CAUSES if cause.is_there(known)) == titles


def test_small_models_may_wait_for_arrays_and_several_steps_for_their_loop() -> None:
    feed, rolled = BY_NAME["without_array_feed"], BY_NAME["without_rolled_steps"]
    small = SimpleNamespace(count_params=lambda: 999, steps_per_execution=32, unrolled_steps_per_execution=1)
    large = SimpleNamespace(count_params=lambda: 9_999_999, steps_per_execution=1, unrolled_steps_per_execution=1)
    assert isinstance(feed, Cause) and isinstance(rolled, Cause)
    assert [(feed.concerns(model), rolled.concerns(model)) for model in (small, large)] == [(True,) * 2, (False,) * 2]
    assert rolled.on_model(True, small, "tensorflow") is None
    assert small.unrolled_steps_per_execution == 8
    assert not rolled.concerns(small)
    small.steps_per_execution, small.unrolled_steps_per_execution = 12, 1  # eight and eight are more than twelve
    assert not rolled.concerns(small)


@pytest.mark.parametrize(("layer", "has_it"), [(BaseConv(), True), (BasePooling(), True), (First(), False)])
def test_channels_are_suspected_where_images_have_them_last(layer: BasePooling, has_it: bool) -> None:
    assert LastChannels().concerns(SimpleNamespace(_flatten_layers=lambda: [object(), layer])) is has_it


def test_a_recurrent_layer_can_miss_cudnn_on_an_nvidia_gpu_alone() -> None:
    found = made.changed(made.measurement(), resolved={"recurrent": ["lstm: keras", "gru: cudnn"]})
    assert isinstance(found.resolved, Resolved)
    on = {platform: SlowRecurrence().noticed(Device(platform), found, 0.0) for platform in ("cuda", "mps", "cpu")}
    assert on == {"cuda": "They ran as lstm: keras", "mps": "", "cpu": ""}
    assert all(set(cause.backends) <= set(backends.names()) for cause in CAUSES)
