import dataclasses
import json
import re
import typing

import pytest

from kerasbench.protocol import requests
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.requests import Input, ModelConfig, Request, decode_request, encode_request, fitting
from kerasbench.scenario import NAME_PATTERN
from tests import made

DEVICE = Device("cuda", 1, "NVIDIA H200 ± «1»\n")
OPTIONS = Options(jit=False, dtype="mixed_float16", threads=2, width=0.5, control=True, environment="keras-3.14")
SCRIPT = requests.ScriptConfig(["--epochs", "3"], 2, True)
MODEL = ModelConfig([Input("a", [1, 2], "int32")], 4, "layers.py", True, "rows.npz", 9, SCRIPT, "script")
PROTOCOL = requests.TrialPlan("published", ("train", "parts"), sizes=made.SIZES)
TRIAL = requests.TrialRequest(
    "mine", "/a b/mine.py", "hash", "tiny", "jax", DEVICE, 7, "real", PROTOCOL, OPTIONS, "baseline", MODEL
)
REQUESTS: list[Request] = [
    TRIAL,
    requests.ProbeRequest("torch"),
    requests.InventoryRequest(),
    requests.DescribeRequest(["/a\nb.py", "/c.py"]),
    requests.FetchRequest("/mine.py", "tiny"),
    requests.CountRequest("/mine.py", "hash", "tiny"),
    requests.LookRequest(
        "/mine.py", "hash", "tiny", "torch", Device("cpu"), 3, ["without_pooling_copy"], OPTIONS, MODEL
    ),
]


def test_every_kind_of_request_is_tried_here() -> None:
    assert {*map(type, REQUESTS)} == set(typing.get_args(Request))


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda asked: type(asked).__name__)
def test_a_request_is_one_line_and_arrives_as_it_was_sent(asked: Request) -> None:
    line = encode_request(asked)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode_request(line) == asked


def test_every_option_is_asked_for_here() -> None:
    """Otherwise one that is lost on the way would not be missed."""
    assert all(getattr(MODEL, field.name) != field.default for field in dataclasses.fields(MODEL))


def test_what_the_types_do_not_know_is_an_error_not_a_guess() -> None:
    fields = json.loads(encode_request(requests.ProbeRequest("jax"))) | {"later": 1}
    with pytest.raises(TypeError, match="later"):
        decode_request(json.dumps(fields).encode())
    with pytest.raises((TypeError, AttributeError)):
        requests.from_dict(ModelConfig, {"inputs": ["tokens"]})


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (ModelConfig(), "default"),
        (ModelConfig(batch=8), "batch-8"),
        (ModelConfig([Input("", [96, 96, 3])], 8), "96x96x3-batch-8"),
        (ModelConfig([Input("tokens", [128], "int32"), Input("my input:0", [4])]), "tokens-128-int32-my_input_0-4"),
        (ModelConfig(trust=True), "default"),
    ],
)
def test_a_workload_is_called_by_the_sizes_that_are_given(config: ModelConfig, name: str) -> None:
    assert config.workload == name


def test_a_name_is_fit_to_be_one_and_apart_from_others_in_all_scripts() -> None:
    config = ModelConfig([Input(f"__{number}", [1 << number, 7]) for number in range(30)])
    assert re.fullmatch(NAME_PATTERN, config.workload)
    assert (fitting("ünï-模型 🚀"), fitting("模型"), fitting("数据")) == ("ünï-模型__", "模型", "数据")
