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
    """Measure one slice.

    ``cycle`` is the stage's, ``position`` the column's place in it, both from 0. ``lead_ns``: keep the device busy for
    so long first, which is not measured.
    """

    cycle: int
    position: int
    lead_ns: int = 0


def encode_turn(turn: Turn | None) -> bytes:
    """Return a turn as one line; None ends the stage: the child goes on to what comes after it."""
    return json.dumps(None if turn is None else asdict(turn)).encode() + b"\n"


def decode_turn(line: bytes) -> Turn | None:
    """Rebuild what the parent wrote."""
    found = json.loads(line)
    return None if found is None else Turn(**found)
