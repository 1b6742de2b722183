"""What one child has said: the messages that are believed."""

import dataclasses
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from kerasbench.children.deaths import shown
from kerasbench.exchange.messages import Message, Phase


@dataclass
class Received:
    """The messages of one child, as they come in: those that begin with the token that its request brought it.

    The token keeps out whatever a scenario writes to the pipe, well-formed or not. It is no secret to code that looks
    for it in the worker's memory. ``on_turn`` gets what is said of turns (``ready``, ``slice``) and returns whether it
    was to be said now: questions have none.
    """

    on_phase: Callable[[str], None] = lambda phase: None
    on_turn: Callable[[Message], bool] = lambda message: False
    token: bytes = field(default_factory=lambda: secrets.token_hex(8).encode())
    phases: list[Phase] = field(default_factory=list)
    begun: str = "spawn"
    answer: Message | None = None

    def take(self, line: bytes) -> bool:
        """Take a line in and tell whether it was a message that could come."""
        token, _, said = line.partition(b" ")
        if token != self.token:
            return False
        try:
            message = msgspec.json.decode(said, type=Message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if message.begun is not None:
            self.begun = message.begun
            self.on_phase(message.begun)
        elif message.phase is not None:
            self.phases.append(message.phase)
        elif self.answer is not None:
            return False  # after its answer, a second one perhaps: somebody else writes to the pipe
        elif message.ready is not None or message.slice is not None:
            return self.on_turn(message)
        else:
            self.answer = dataclasses.replace(message, failure=message.failure and shown(message.failure))
        return True
