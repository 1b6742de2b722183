"""One trial from the parent's side: environment, child, messages, and what went wrong."""

import dataclasses
import errno
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from kerasbench import backends
from kerasbench.children import process
from kerasbench.children.deaths import failure_of, over_limit, shown
from kerasbench.children.limits import Limits
from kerasbench.children.process import POLL_S
from kerasbench.children.scratch import scratch_folder
from kerasbench.children.variables import NOTHING, clean, for_scratch, share_datasets
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Code, Failure, Message, Phase
from kerasbench.exchange.requests import (
    Request,
    TrialRequest,
    encode_request,
)


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: a measurement or a failure, never both, and the phases that were reached.

    ``left_cpu_s`` is the processor time of what the child had started and was stopped with it.
    """

    phases: list[Phase]
    wall_ns: int
    measurement: Measurement | None = None
    failure: Failure | None = None
    left_cpu_s: float = 0.0


@dataclass
class _Received:
    """The messages of one child, as they come in: those that begin with the token that its request brought it.

    The token keeps out whatever a scenario writes to the pipe, well-formed or not. It is no secret to code that looks
    for it in the worker's memory.
    """

    on_phase: Callable[[str], None] = lambda phase: None
    token: bytes = field(default_factory=lambda: secrets.token_hex(8).encode())
    phases: list[Phase] = field(default_factory=list)
    begun: str = "spawn"
    answer: Message | None = None

    def take(self, line: bytes) -> bool:
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
        elif self.answer is None:
            failure = message.failure and shown(message.failure)
            self.answer = dataclasses.replace(message, failure=failure)
        else:
            return False  # a second answer: somebody else writes to the pipe
        return True


def launch(
    python: str,
    request: TrialRequest,
    limits: Limits,
    on_phase: Callable[[str], None] = lambda phase: None,
    on_tick: Callable[[], None] = lambda: None,
    kept: Mapping[str, str] = NOTHING,
) -> Outcome:
    """Run one trial in a child of its own and return what became of it. Only KeyboardInterrupt is raised.

    ``kept`` are the variables that a user lets in, here and below.
    """
    try:
        return _launch(python, request, limits, _Received(on_phase), on_tick, kept)
    except OSError as error:
        return Outcome([], 0, failure=_not_started(error, python))


def _not_started(error: OSError, python: str) -> Failure:
    """Say why there is no child: a disk that is full, too many processes, or a program that is not for this machine."""
    if error.errno in (errno.ENOEXEC, errno.EACCES, errno.ENOENT) and error.filename in (None, python):
        cause = f"{python} could not be started: {error.strerror}"
        return Failure(
            Code.UNAVAILABLE, cause, "name another interpreter with --python, or make this one anew", "spawn"
        )
    cause = f"the child could not be started: {error.strerror or error}"
    return Failure(Code.CRASH, cause, "free disk space, memory or processes", "spawn")


def _launch(
    python: str,
    request: TrialRequest,
    limits: Limits,
    received: _Received,
    on_tick: Callable[[], None],
    kept: Mapping[str, str],
) -> Outcome:
    with scratch_folder() as scratch:
        variables = (
            clean(python, kept)
            | for_scratch(scratch)
            | backends.get(request.backend).ALWAYS
            | backends.get(request.backend).environment(request.device, request.options, scratch)
        )
        if request.data == "real":
            share_datasets(scratch)
        ended = _run(python, variables, request, limits, received, on_tick)
    phases = _with_edges(received.phases, ended)
    outcome = Outcome(phases, ended.wall_ns, left_cpu_s=ended.left_cpu_s)
    answer = received.answer or Message()
    if answer.measurement is None or ended.broke_protocol:
        said = None if ended.broke_protocol else answer.failure
        return dataclasses.replace(outcome, failure=said or failure_of(ended, received.begun, limits))
    used_bytes = max(answer.measurement.peak_rss_bytes, ended.exceeded_bytes or 0)
    if limits.memory_bytes is not None and used_bytes > limits.memory_bytes:
        return dataclasses.replace(outcome, failure=over_limit(used_bytes, limits.memory_bytes, "at its peak"))
    return dataclasses.replace(outcome, measurement=answer.measurement)


def _run(
    python: str,
    variables: Mapping[str, str],
    request: Request,
    limits: Limits,
    received: _Received,
    on_tick: Callable[[], None],
    poll_s: float = POLL_S,
) -> process.Exit:
    line = received.token + b" " + encode_request(request)
    return process.run(
        python, variables, line, limits.timeout_s, received.take, on_tick, limits.memory_bytes, poll_s=poll_s
    )


def _with_edges(phases: list[Phase], ended: process.Exit) -> list[Phase]:
    """Add what only the parent sees: before the interpreter's first line, and after the last message."""
    if not phases:
        return []
    end_ns = ended.spawned_ns + ended.wall_ns
    first, last = phases[0], phases[-1]
    return [
        Phase("spawn", ended.spawned_ns, first.start_ns),
        *phases,
        Phase("exit", last.end_ns, end_ns),
    ]
