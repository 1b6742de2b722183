import json

import msgspec
import pytest

from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Latency
from kerasbench.protocol.messages import Code, Failure, Message
from kerasbench.protocol.requests import (
    DescribeRequest,
    ProbeRequest,
    Protocol,
    TrialRequest,
    decode_request,
    encode_request,
)
from tests import made

TRIAL = TrialRequest(
    "dense", "/dense.py", "hash", "default", "torch", Device("cuda", 1, "X"), 7, "real", Protocol(min_cycles=3)
)


@pytest.mark.parametrize("request_", [TRIAL, ProbeRequest("jax"), DescribeRequest(["/a b.py"])])
def test_a_request_arrives_as_it_was_sent(request_: TrialRequest | ProbeRequest | DescribeRequest) -> None:
    assert decode_request(encode_request(request_)) == request_


@pytest.mark.parametrize("message", [Message(measurement=made.measurement()), Message(failure=made.FAILURE)])
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    line = message.encode()
    assert line.count(b"\n") == 1
    assert msgspec.json.decode(line, type=Message) == message


def test_codes_travel_as_the_words_in_the_contract() -> None:
    said = json.loads(Message(failure=Failure(Code.WRONG_DEVICE, "", "")).encode())
    assert said["failure"]["code"] == "wrong-device"


def test_text_that_is_no_text_travels_as_far_as_it_goes() -> None:
    said = msgspec.json.decode(Message(begun="a\udcffb ±\n").encode(), type=Message)
    assert said.begun == "a?b ±\n"


def test_nan_does_not_travel() -> None:
    latency = Latency(1, [float("nan")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="JSON compliant"):
        Message(measurement=made.measurement(step_ms=1), begun=latency).encode()  # type: ignore[arg-type]
