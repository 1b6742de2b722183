"""One trial from the parent's side: environment, child, messages, and what went wrong."""

import dataclasses
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from kerasbench import backends, child, environment
from kerasbench.devices import GPU, visible_cuda
from kerasbench.machine import macos
from kerasbench.wire import (
    Code,
    DescribeRequest,
    Description,
    Failure,
    FetchRequest,
    Inventory,
    InventoryRequest,
    Measurement,
    Message,
    Phase,
    ProbeReport,
    ProbeRequest,
    TrialRequest,
    encode_request,
)

PROBE_TIMEOUT_S = 120.0  # a cold import of TensorFlow from a slow disk takes half a minute
DESCRIBE_TIMEOUT_S = 60.0
FETCH_TIMEOUT_S = 1800.0  # CIFAR-100's 170 MB over a slow line
_NO_REMEDY = "see the child's last lines in the result file"


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: a measurement or a failure, never both, and the phases that were reached."""

    phases: list[Phase]
    wall_ns: int
    measurement: Measurement | None = None
    failure: Failure | None = None


@dataclass
class _Received:
    """The messages of one child, as they come in."""

    on_phase: Callable[[str], None]
    phases: list[Phase] = field(default_factory=list)
    begun: str = "spawn"
    answer: Message | None = None

    def take(self, line: bytes) -> bool:
        try:
            message = msgspec.json.decode(line, type=Message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if message.begun is not None:
            self.begun = message.begun
            self.on_phase(message.begun)
        elif message.phase is not None:
            self.phases.append(message.phase)
        elif self.answer is None:
            self.answer = message
        else:
            return False  # a second answer: somebody else writes to the pipe
        return True


def launch(
    python: str,
    timeout_s: float,
    request: TrialRequest,
    on_phase: Callable[[str], None] = lambda phase: None,
    on_tick: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run one trial in a child of its own and return what became of it. Only KeyboardInterrupt is raised."""
    try:
        return _launch(python, timeout_s, request, _Received(on_phase), on_tick)
    except OSError as error:
        cause = f"the child could not be started: {error.strerror or error}"
        return Outcome([], 0, failure=Failure(Code.CRASH, cause, "free disk space, memory or processes", "spawn"))


def _launch(
    python: str, timeout_s: float, request: TrialRequest, received: _Received, on_tick: Callable[[], None]
) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="kerasbench-", ignore_cleanup_errors=True) as scratch:
        variables = (
            environment.clean(python)
            | environment.for_scratch(scratch)
            | {"KERAS_BACKEND": request.backend}
            | backends.get(request.backend).environment(request.device, request.options, scratch)
        )
        if request.data == "real":
            environment.share_datasets(scratch)
        ended = child.run(python, variables, encode_request(request), timeout_s, received.take, on_tick)
    phases = _with_edges(received.phases, ended)
    answer = received.answer
    if answer is not None and answer.measurement is not None and not ended.broke_protocol:
        return Outcome(phases, ended.wall_ns, measurement=answer.measurement)
    said = answer.failure if answer is not None and not ended.broke_protocol else None
    return Outcome(phases, ended.wall_ns, failure=said or failure_of(ended, received.begun, timeout_s))


def probe(backend: str, python: str) -> ProbeReport | Failure:
    """Ask one backend, in a child, what it is and what it sees."""
    received = _Received(lambda phase: None)
    with tempfile.TemporaryDirectory(prefix="kerasbench-", ignore_cleanup_errors=True) as scratch:
        variables = environment.clean(python) | environment.for_scratch(scratch) | visible_cuda()
        variables |= {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"}
        ended = child.run(python, variables, encode_request(ProbeRequest(backend)), PROBE_TIMEOUT_S, received.take)
    answer = received.answer or Message()
    report = answer.probe or answer.failure or failure_of(ended, received.begun, PROBE_TIMEOUT_S)
    return with_chip(report, macos.chip()) if isinstance(report, ProbeReport) and sys.platform == "darwin" else report


def with_chip(report: ProbeReport, chip: str) -> ProbeReport:
    """Return a report of a Mac with its chip's name on the GPU, which frameworks call METAL, or nothing."""
    named = [
        dataclasses.replace(device, name=chip or device.name) if device.kind == GPU else device
        for device in report.devices
    ]
    return dataclasses.replace(report, devices=named)


def inventory(backend: str, python: str) -> Inventory | Failure:
    """Ask one backend's interpreter, in a child, what is installed there; nothing is imported."""
    received = _Received(lambda phase: None)
    with tempfile.TemporaryDirectory(prefix="kerasbench-", ignore_cleanup_errors=True) as scratch:
        variables = environment.clean(python) | environment.for_scratch(scratch)
        request = encode_request(InventoryRequest(backend))
        ended = child.run(python, variables, request, DESCRIBE_TIMEOUT_S, received.take)
    answer = received.answer or Message()
    return answer.inventory or answer.failure or failure_of(ended, received.begun, DESCRIBE_TIMEOUT_S)


def describe(file: str, python: str, backend: str | None = None) -> Description | Failure:
    """Ask a scenario file, in a child, what is in it; ``backend`` is for files that use keras at their top."""
    received = _Received(lambda phase: None)
    request = encode_request(DescribeRequest(file))
    with tempfile.TemporaryDirectory(prefix="kerasbench-", ignore_cleanup_errors=True) as scratch:
        variables = environment.clean(python) | environment.for_scratch(scratch)
        variables |= {"KERAS_BACKEND": backend} if backend else {}
        ended = child.run(python, variables, request, DESCRIBE_TIMEOUT_S, received.take)
    answer = received.answer or Message()
    return answer.description or answer.failure or failure_of(ended, received.begun, DESCRIBE_TIMEOUT_S)


def fetch(file: str, regime: str, backend: str, python: str) -> str | Failure:
    """Have a regime's real rows downloaded and checked, in a child; return the data set's title."""
    received = _Received(lambda phase: None)
    request = encode_request(FetchRequest(file, regime))
    with tempfile.TemporaryDirectory(prefix="kerasbench-", ignore_cleanup_errors=True) as scratch:
        variables = environment.clean(python) | environment.for_scratch(scratch) | {"KERAS_BACKEND": backend}
        environment.share_datasets(scratch)
        ended = child.run(python, variables, request, FETCH_TIMEOUT_S, received.take)
    answer = received.answer or Message()
    return answer.fetched or answer.failure or failure_of(ended, received.begun, FETCH_TIMEOUT_S)


def failure_of(ended: child.Exit, phase: str, timeout_s: float) -> Failure:
    """Say why a child that gave no answer ended."""
    detail = child.last_lines(ended)
    if ended.broke_protocol:
        cause = "something other than kerasbench wrote to the result pipe"
        return Failure(Code.INVALID, cause, "the scenario must not write to inherited file descriptors", phase, detail)
    if ended.timed_out:
        cause = f"stopped after {timeout_s:g} s, in phase {phase!r}"
        return Failure(Code.TIMEOUT, cause, "--timeout SECONDS allows more", phase, detail)
    if ended.status < 0:
        name = signal.Signals(-ended.status).name
        remedy = "another process or the kernel's memory killer ended it" if name == "SIGKILL" else _NO_REMEDY
        return Failure(Code.CRASH, f"died from {name} in phase {phase!r}", remedy, phase, detail)
    cause = f"left with exit status {ended.status} in phase {phase!r} without a result"
    return Failure(Code.CRASH, cause, "the scenario must not end the process", phase, detail)


def _with_edges(phases: list[Phase], ended: child.Exit) -> list[Phase]:
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
