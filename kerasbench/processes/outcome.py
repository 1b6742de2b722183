"""A trial from the parent's side: its limits, the messages that are believed, its outcome."""

import errno
import os
import re
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from kerasbench.processes.process import Exit, Limits
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import EXIT_PIPE_LOST, STOPPED, Code, Failure, Message, Phase
from kerasbench.protocol.requests import TrialKind
from kerasbench.protocol.stages import AGENDAS
from kerasbench.text import printable, size

TIMES_THE_FIRST = 10.0  # a case's later trial that takes so much longer hangs, even on a busy machine
LEAST_TIMEOUT_S = 60.0  # what takes seconds may still meet a cold disk
COMPILE_S = 240.0  # of a first step without a --timeout: torch takes up to a minute on two cores
TIMES_AS_LONG = 10.0  # as its slices, in which a long trial's time is counted: short epochs have taken more than three
LAST_LINES = 40  # of what a child printed: a traceback


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: a measurement or a failure, never both. Neither: it has exported a model."""

    phases: list[Phase]  # those that were reached
    wall_ns: int
    measurement: Measurement | None = None
    failure: Failure | None = None
    started_alone: bool = True  # no other child ran until it could be measured
    had_turn: bool = False  # it got as far as to be measured


def trial_limits(
    timeout_s: float | None, memory_bytes: int | None, kind: TrialKind, first_s: float | None, long_s: float = 0.0
) -> Limits:
    """``first_s``: what the case's first trial took. ``long_s``: how long its slices last, where they are to last."""
    if timeout_s is not None:
        return Limits(timeout_s, f"--timeout {timeout_s:g} s", memory_bytes)
    limit_s = AGENDAS[kind].timeout_s + TIMES_AS_LONG * long_s
    name = f"--timeout {limit_s:g} s, the default"
    if first_s is not None and (follows_s := max(LEAST_TIMEOUT_S, TIMES_THE_FIRST * first_s)) < limit_s:
        limit_s = follows_s
        name = f"--timeout {limit_s:.0f} s, the default after a first trial of {first_s:.1f} s"
    return Limits(limit_s, name, memory_bytes, compile_s=COMPILE_S)


# Made once, at import: the process crashes if two threads let msgspec decode a type for the first time at once.
DECODER = msgspec.json.Decoder(Message)


@dataclass
class ReceivedMessages:
    """The messages of one child. Those of a scenario that writes to the pipe lack the token of its request."""

    on_phase: Callable[[str | Phase], None] = lambda phase: None  # the name of one that begins, or one that is over
    on_turn: Callable[[Message], bool] = lambda message: False  # whether a ready or a slice could come now
    token: bytes = field(default_factory=lambda: secrets.token_hex(8).encode())
    phases: list[Phase] = field(default_factory=list)
    begun: str = "spawn"  # the phase that it is in
    answer: Message | None = None

    def take(self, line: bytes) -> bool:
        token, _, encoded = line.partition(b" ")
        if token != self.token:
            return False
        try:
            message = DECODER.decode(encoded)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if message.begun is not None:
            self.begun = message.begun
            self.on_phase(message.begun)
        elif message.phase is not None:
            self.phases.append(message.phase)
            self.on_phase(message.phase)
        elif self.answer is not None:
            return False  # after its answer, a second one perhaps: somebody else writes to the pipe
        elif message.ready is not None or message.slice is not None:
            return self.on_turn(message)
        else:
            self.answer = replace(message, failure=message.failure and shown(message.failure))
        return True


def outcome_of(ended: Exit, received: ReceivedMessages, limits: Limits, started_alone: bool, had_turn: bool) -> Outcome:
    phases = received.phases
    if phases:  # what only the parent sees: before the interpreter's first line, and after the last message
        spawn = Phase("spawn", ended.spawned_ns, phases[0].start_ns)
        phases = [spawn, *phases, Phase("exit", phases[-1].end_ns, ended.spawned_ns + ended.wall_ns)]
    outcome = Outcome(phases, ended.wall_ns, started_alone=started_alone, had_turn=had_turn)
    answer = Message() if received.answer is None or ended.broke_protocol else received.answer
    if answer.exported is not None:
        return outcome
    if answer.measurement is None:
        failure = answer.failure or failure_of(ended, received.begun, limits)
        return replace(outcome, failure=failure)
    used_bytes = max(answer.measurement.peak_rss_bytes, ended.exceeded_bytes or 0)
    if limits.memory_bytes is not None and used_bytes > limits.memory_bytes:
        return replace(outcome, failure=_over_limit(used_bytes, limits.memory_bytes, "at its peak"))
    return replace(outcome, measurement=answer.measurement)


def not_started(error: OSError, python: str) -> Failure:
    if error.errno in (errno.ENOEXEC, errno.EACCES, errno.ENOENT) and error.filename in (None, python):
        cause = f"{python} could not be started: {error.strerror}"
        remedy = "name another interpreter with --python, or recreate this one"
        return Failure(Code.UNAVAILABLE, cause, remedy, "spawn")
    cause = f"the trial's process could not be started: {error.strerror or error}"
    return Failure(Code.CRASH, cause, "free disk space, memory, processes or open files", "spawn")


def failure_of(ended: Exit, phase: str, limits: Limits) -> Failure:
    where = f"in phase {phase!r}"
    if ended.broke_protocol:
        cause = f"something other than kerasbench wrote to the result pipe {where}"
        failure = Failure(Code.INVALID, cause, "the scenario must not write to inherited file descriptors")
    elif ended.exceeded_bytes is not None and limits.memory_bytes is not None:
        failure = _over_limit(ended.exceeded_bytes, limits.memory_bytes, where)
    elif ended.compiled_long:
        cause = f"stopped {where}: compiling took more than {limits.compile_s:g} s"
        failure = Failure(Code.TIMEOUT, cause, "set a limit of your own, such as --timeout 10m")
    elif ended.timed_out:
        failure = Failure(Code.TIMEOUT, f"stopped {where} by {limits.timeout}", limits.remedy)
    elif ended.status < 0:
        failure = _death(-ended.status, where, ended.shortage)
    elif ended.status == EXIT_PIPE_LOST:
        remedy = "the scenario must not close or replace inherited file descriptors"
        failure = Failure(Code.INVALID, f"the result pipe was taken from kerasbench {where}", remedy)
    else:
        cause = f"left with exit status {ended.status} {where} without a result"
        failure = Failure(Code.CRASH, cause, "the scenario must not end the process")
    printed = ended.stderr.strip() or ended.stdout.strip()
    lines = printed.splitlines()
    first = lines.index(STOPPED) if ended.timed_out and STOPPED in lines else -LAST_LINES
    return shown(replace(failure, phase=phase, detail="\n".join(lines[first:])))


def _over_limit(used_bytes: int, limit_bytes: int, where: str) -> Failure:
    cause = f"used {size(used_bytes)} {where}, the limit is {size(limit_bytes)} (--memory-limit)"
    return Failure(Code.OOM, cause, "use a smaller batch or workload, or raise --memory-limit", own_limit=True)


def _death(number: int, where: str, shortage: str) -> Failure:
    if number != signal.SIGKILL:
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        return Failure(Code.CRASH, f"died from {name} {where}", "see the last lines that it printed, if any")
    if shortage:
        remedy = "use a smaller batch or workload, or a machine with more memory"
        return Failure(Code.OOM, f"killed because memory ran out {where}: {shortage}", remedy)
    remedy = "find out what killed it: the scenario itself, a supervisor or a person"
    return Failure(Code.CRASH, f"killed by SIGKILL from outside {where}", remedy)


def shown(failure: Failure) -> Failure:
    """Make texts that may come from a scenario fit for a terminal and a published file, without the user's name."""
    home = os.path.expanduser("~").rstrip("/")
    pattern = re.compile(rf"(?<![\w./-]){re.escape(home)}(?=/)")
    texts = [printable(text) for text in (failure.cause, failure.remedy, failure.detail)]
    cause, remedy, detail = (pattern.sub("~", text) for text in texts) if home else texts
    return replace(failure, cause=cause, remedy=remedy, detail=detail)
