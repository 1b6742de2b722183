import json
import math

import msgspec
import pytest

from kerasbench.protocol.measurement import Samples, Slice, Turn, decode_turn, encode_turn
from kerasbench.protocol.messages import Message, Phase
from tests import made


def test_a_phase_lasts_as_long_as_it_ran_without_the_turns_of_others() -> None:
    assert Phase("train", start_ns=1_000, end_ns=9_000).duration_ns == 8_000
    assert Phase("train", start_ns=1_000, end_ns=9_000, waited_ns=6_500).duration_ns == 1_500


@pytest.mark.parametrize(
    "message",
    [
        Message(measurement=made.measurement()),
        Message(failure=made.FAILURE),
        Message(begun="one\ntwo"),
        Message(slice=Slice(count=3, ns=12, cycle=1, position=0)),
    ],
)
def test_a_message_is_one_line_and_arrives_as_it_was_sent(message: Message) -> None:
    line = message.encode()
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert msgspec.json.decode(line, type=Message) == message


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (Message(ready="train"), {"ready": "train"}),
        (Message(counted=0.0), {"counted": 0.0}),
        (Message(descriptions=[]), {"descriptions": []}),
        (Message(begun="scenario-\udcff.py"), {"begun": "scenario-?.py"}),  # a file name that is no text
    ],
)
def test_a_message_holds_what_is_set_alone(message: Message, fields: dict[str, object]) -> None:
    assert json.loads(message.encode()) == fields


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_does_not_know_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        Message(counted=number).encode()


@pytest.mark.parametrize("turn", [Turn(0, 0), Turn(12, 3), None])
def test_a_turn_is_one_line_and_arrives_as_it_was_sent(turn: Turn | None) -> None:
    line = encode_turn(turn)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode_turn(line) == turn


def test_slices_are_columns_of_which_those_that_say_nothing_are_left_out() -> None:
    slices = [Slice(8, 50, cycle, 0, steal_ns=0) for cycle in (0, 1)]
    samples = Samples.of(slices)
    assert (list(samples), len(samples)) == (slices, 2)
    line = b'{"count":[8,8],"ns":[50,50],"cycle":[0,1],"position":[0,0],"steal_ns":[0,0]}'
    assert msgspec.json.encode(samples) == line
    assert msgspec.json.encode(msgspec.json.decode(line, type=Samples)) == line
    assert msgspec.json.encode(Samples.of([])) == b'{"count":[],"ns":[]}'
