"""How a parent lets the columns of a bout measure in turn: lines on a child's standard input.

A child that has said ``ready`` or ``slice`` waits for such a line. Imported by the worker: standard library only.
"""

import json
from dataclasses import asdict, dataclass

# What is measured in slices, in this order: steps, short epochs, single predictions, predictions of a batch, whole
# passes of predict, and what a step is made of. A trial has those that its protocol asks for.
STAGES = ("train", "epoch", "predict_one", "predict_batch", "predict_all", "parts")


@dataclass(frozen=True)
class Turn:
    """Measure one slice: the column's turn in this cycle of the stage, as the how-manieth. Both from 0 on."""

    cycle: int
    position: int


def encode_turn(turn: Turn | None) -> bytes:
    """Return a turn as one line; None ends the stage: the child goes on to what comes after it."""
    return json.dumps(None if turn is None else asdict(turn)).encode() + b"\n"


def decode_turn(line: bytes) -> Turn | None:
    """Rebuild what the parent wrote."""
    found = json.loads(line)
    return None if found is None else Turn(**found)
