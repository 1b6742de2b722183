"""One trial from the parent's side: what its child is started with, what becomes of it, and what went wrong."""

import dataclasses
import errno
from collections.abc import Mapping
from dataclasses import dataclass

from kerasbench import backends
from kerasbench.children.deaths import failure_of, over_limit
from kerasbench.children.limits import Limits
from kerasbench.children.process import Exit, Task
from kerasbench.children.received import Received
from kerasbench.children.variables import clean, for_scratch, share_datasets
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Code, Failure, Message, Phase
from kerasbench.exchange.requests import TrialRequest, encode_request


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: a measurement or a failure, never both, and the phases that were reached.

    ``left_cpu_s`` is the processor time of what the child had started and was stopped with it. ``started_alone``: no
    other child ran until it could be measured. ``had_turn``: it got as far as to be measured.
    """

    phases: list[Phase]
    wall_ns: int
    measurement: Measurement | None = None
    failure: Failure | None = None
    left_cpu_s: float = 0.0
    started_alone: bool = True
    had_turn: bool = False


def task_of(
    python: str, request: TrialRequest, limits: Limits, token: bytes, kept: Mapping[str, str], scratch: str
) -> Task:
    """Return what a trial's child is started with. ``kept`` are the variables that a user lets in.

    Raises:
        UsageError: there is no place for the data sets that it asks for.
    """
    backend = backends.get(request.backend)
    variables = (
        clean(python, kept)
        | for_scratch(scratch)
        | backend.ALWAYS
        | backend.environment(request.device, request.options, scratch)
    )
    if request.data == "real":
        share_datasets(scratch)
    return Task(python, variables, token + b" " + encode_request(request), limits.timeout_s, limits.memory_bytes)


def outcome_of(ended: Exit, received: Received, limits: Limits, started_alone: bool = True) -> Outcome:
    """Judge what a child has said and how it ended."""
    phases = with_edges(received.phases, ended)
    outcome = Outcome(phases, ended.wall_ns, left_cpu_s=ended.left_cpu_s, started_alone=started_alone)
    answer = received.answer or Message()
    if answer.measurement is None or ended.broke_protocol:
        said = None if ended.broke_protocol else answer.failure
        return dataclasses.replace(outcome, failure=said or failure_of(ended, received.begun, limits))
    used_bytes = max(answer.measurement.peak_rss_bytes, ended.exceeded_bytes or 0)
    if limits.memory_bytes is not None and used_bytes > limits.memory_bytes:
        return dataclasses.replace(outcome, failure=over_limit(used_bytes, limits.memory_bytes, "at its peak"))
    return dataclasses.replace(outcome, measurement=answer.measurement)


def not_started(error: OSError, python: str) -> Failure:
    """Say why there is no child: a disk that is full, too many processes, or a program that is not for this machine."""
    if error.errno in (errno.ENOEXEC, errno.EACCES, errno.ENOENT) and error.filename in (None, python):
        cause = f"{python} could not be started: {error.strerror}"
        return Failure(
            Code.UNAVAILABLE, cause, "name another interpreter with --python, or create this one again", "spawn"
        )
    cause = f"the child could not be started: {error.strerror or error}"
    return Failure(Code.CRASH, cause, "free disk space, memory, processes or open files", "spawn")


def with_edges(phases: list[Phase], ended: Exit) -> list[Phase]:
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
