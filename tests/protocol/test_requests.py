"""What the parent asks arrives in the child as it was asked."""

import dataclasses
import json
import typing

import pytest

from kerasbench.protocol import requests
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.requests import Protocol, Request, TrialRequest, decode_request, encode_request

DEVICE = Device("cuda", 1, "NVIDIA H200 ± «1»\n")
OPTIONS = Options(
    jit=False,
    dtype="mixed_float16",
    fp32="tf32",
    threads=2,
    batch=64,
    width=0.5,
    native=True,
    control=True,
    environment="keras-3.14",
    busy_cores=1,
)
TRIAL = TrialRequest(
    "mine", "/a b/mine.py", "hash", "tiny", "jax", DEVICE, 7, "real", Protocol("published", parts=True), OPTIONS, "twin"
)
REQUESTS: list[Request] = [
    TRIAL,
    requests.ProbeRequest("torch"),
    requests.InventoryRequest("tensorflow"),
    requests.DescribeRequest(["/a\nb.py", "/c.py"]),
    requests.FetchRequest("/mine.py", "tiny"),
    requests.CountRequest("/mine.py", "hash", "tiny"),
]


def test_every_kind_of_request_is_tried_here() -> None:
    assert {type(one) for one in REQUESTS} == set(typing.get_args(Request))
    assert len({one.task for one in REQUESTS}) == len(REQUESTS)


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda one: one.task)
def test_a_request_is_one_line_and_arrives_as_it_was_sent(asked: Request) -> None:
    line = encode_request(asked)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode_request(line) == asked


def test_every_option_is_asked_for_here() -> None:
    """Otherwise one that is lost on the way would not be missed."""
    assert all(getattr(OPTIONS, field.name) != field.default for field in dataclasses.fields(OPTIONS))


def test_what_is_asked_by_its_numbers_alone_is_calibrated() -> None:
    asked = Protocol()
    assert (asked.steps_per_slice, asked.warmup_slices) == (None, None)
    assert asked.warmup_min_ns < asked.warmup_max_ns
    assert asked.slice_ns < asked.slices_max_ns
    assert asked.min_cycles > 1


def test_a_field_that_the_child_does_not_know_is_an_error_not_a_guess() -> None:
    fields = json.loads(encode_request(requests.ProbeRequest("jax"))) | {"later": 1}
    with pytest.raises(TypeError, match="later"):
        decode_request(json.dumps(fields).encode())


def test_real_rows_are_asked_for_by_name() -> None:
    assert json.loads(encode_request(TRIAL))["data"] == "real"
