import json
import math

import pytest

from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Message, Phase


def test_a_phase_lasts_as_long_as_it_ran_without_the_turns_of_others() -> None:
    assert Phase("train", start_ns=1_000, end_ns=9_000).duration_ns == 8_000
    assert Phase("train", start_ns=1_000, end_ns=9_000, waited_ns=6_500).duration_ns == 1_500


def test_a_message_is_one_line_that_holds_what_is_set_alone() -> None:
    line = Message(ready="train").encode()
    assert line == b'{"ready":"train"}\n'
    said = json.loads(Message(slice=Slice(count=3, ns=12, cycle=1, position=0, cpu_ns=None)).encode())
    assert said.keys() == {"slice"}
    assert (said["slice"]["count"], said["slice"]["ns"]) == (3, 12)


def test_what_counts_for_nothing_is_said_all_the_same() -> None:
    assert json.loads(Message(counted=0.0).encode()) == {"counted": 0.0}
    assert json.loads(Message(descriptions=[]).encode()) == {"descriptions": []}


def test_a_line_break_in_a_text_breaks_no_line() -> None:
    line = Message(begun="one\ntwo").encode()
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == {"begun": "one\ntwo"}


def test_a_file_name_that_is_no_text_is_sent_with_a_mark_in_place_of_its_bytes() -> None:
    assert json.loads(Message(begun="scenario-\udcff.py").encode()) == {"begun": "scenario-?.py"}


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_does_not_know_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        Message(counted=number).encode()
