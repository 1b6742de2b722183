import pytest

from kerasbench.protocol.measurement import Turn, decode_turn, encode_turn


@pytest.mark.parametrize("turn", [Turn(0, 0), Turn(12, 3), None])
def test_a_turn_is_one_line_and_arrives_as_it_was_sent(turn: Turn | None) -> None:
    line = encode_turn(turn)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode_turn(line) == turn
