"""One trial from the parent's side: environment, child, messages, and what went wrong."""

import dataclasses
import errno
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from kerasbench import backends, child, environment
from kerasbench.child import POLL_S, QUICK_POLL_S
from kerasbench.devices import CPU, GPU, Device, visible_cuda
from kerasbench.ending import failure_of, over_limit, shown
from kerasbench.environment import NOTHING
from kerasbench.limits import Limits
from kerasbench.machine import macos
from kerasbench.options import DEFAULT
from kerasbench.request import (
    CountRequest,
    DescribeRequest,
    FetchRequest,
    InventoryRequest,
    ProbeRequest,
    Request,
    TrialRequest,
    encode_request,
)
from kerasbench.scratch import scratch_folder
from kerasbench.wire import (
    Code,
    Description,
    Failure,
    Inventory,
    Measurement,
    Message,
    Phase,
    ProbeReport,
)

PROBE_TIMEOUT_S = 120.0  # a cold import of TensorFlow from a slow disk takes half a minute
DESCRIBE_TIMEOUT_S = 60.0
COUNT_TIMEOUT_S = 120.0  # like a probe, and two steps of eight samples
FETCH_TIMEOUT_S = 1800.0  # CIFAR-100's 170 MB over a slow line
Said = TypeVar("Said")


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
            environment.clean(python, kept)
            | environment.for_scratch(scratch)
            | {"KERAS_BACKEND": request.backend}
            | backends.get(request.backend).environment(request.device, request.options, scratch)
        )
        if request.data == "real":
            environment.share_datasets(scratch)
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


def probe(
    backend: str, python: str, on_tick: Callable[[], None] = lambda: None, kept: Mapping[str, str] = NOTHING
) -> ProbeReport | Failure:
    """Ask one backend, in a child, what it is and what it sees."""
    limits = _standard(PROBE_TIMEOUT_S, "importing a backend")
    variables = visible_cuda() | {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"}
    report = _ask(python, ProbeRequest(backend), limits, variables, lambda answer: answer.probe, on_tick, kept=kept)
    return with_chip(report, macos.chip()) if isinstance(report, ProbeReport) and sys.platform == "darwin" else report


def with_chip(report: ProbeReport, chip: str) -> ProbeReport:
    """Return a report of a Mac with its chip's name on the GPU, which frameworks call METAL, or nothing."""
    named = [
        dataclasses.replace(device, name=chip or device.name) if device.kind == GPU else device
        for device in report.devices
    ]
    return dataclasses.replace(report, devices=named)


def inventory(backend: str, python: str, on_tick: Callable[[], None] = lambda: None) -> Inventory | Failure:
    """Ask one backend's interpreter, in a child, what is installed there; nothing is imported."""
    limits = _standard(DESCRIBE_TIMEOUT_S, "looking at what is installed")
    return _ask(python, InventoryRequest(backend), limits, {}, lambda answer: answer.inventory, on_tick)


def describe(
    file: str,
    python: str,
    backend: str | None = None,
    on_tick: Callable[[], None] = lambda: None,
    kept: Mapping[str, str] = NOTHING,
) -> Description | Failure:
    """Ask a scenario file, in a child, what is in it; ``backend`` is for files that use keras at their top."""
    limits = _standard(DESCRIBE_TIMEOUT_S, "describing a scenario file")
    variables = {"KERAS_BACKEND": backend} if backend else {}
    request = DescribeRequest(file)
    return _ask(python, request, limits, variables, lambda answer: answer.description, on_tick, kept=kept)


def fetch(file: str, regime: str, backend: str, python: str, kept: Mapping[str, str] = NOTHING) -> str | Failure:
    """Have a regime's real rows downloaded and checked, in a child; return the data set's title."""
    limits = _standard(FETCH_TIMEOUT_S, "having a data set's rows")
    variables, request = {"KERAS_BACKEND": backend}, FetchRequest(file, regime)
    return _ask(python, request, limits, variables, lambda answer: answer.fetched, real_data=True, kept=kept)


def count(request: CountRequest, python: str, kept: Mapping[str, str] = NOTHING) -> float | Failure:
    """Have torch count, in a child, the floating-point operations that a training step takes for each sample."""
    limits = _standard(COUNT_TIMEOUT_S, "counting operations")
    variables = backends.get("torch").environment(Device(CPU), DEFAULT, "") | {"KERAS_BACKEND": "torch"}
    return _ask(python, request, limits, variables, lambda answer: answer.counted, kept=kept)


def _ask(
    python: str,
    request: Request,
    limits: Limits,
    variables: Mapping[str, str],
    wanted: Callable[[Message], Said | None],
    on_tick: Callable[[], None] = lambda: None,
    real_data: bool = False,
    kept: Mapping[str, str] = NOTHING,
) -> Said | Failure:
    """Have a child answer one request that is no trial; ``wanted`` is what its answer should hold."""
    received = _Received()
    try:
        with scratch_folder() as scratch:
            if real_data:
                environment.share_datasets(scratch)
            own = environment.clean(python, kept) | environment.for_scratch(scratch)
            ended = _run(python, {**own, **variables}, request, limits, received, on_tick, QUICK_POLL_S)
    except OSError as error:
        return _not_started(error, python)
    answer = received.answer or Message()
    said = wanted(answer)
    if said is not None:  # 0.0 counted operations and an empty title are answers
        return said
    return answer.failure or failure_of(ended, received.begun, limits)


def _run(
    python: str,
    variables: Mapping[str, str],
    request: Request,
    limits: Limits,
    received: _Received,
    on_tick: Callable[[], None],
    poll_s: float = POLL_S,
) -> child.Exit:
    line = received.token + b" " + encode_request(request)
    return child.run(
        python, variables, line, limits.timeout_s, received.take, on_tick, limits.memory_bytes, poll_s=poll_s
    )


def _standard(timeout_s: float, what: str) -> Limits:
    return Limits(timeout_s, f"the limit of {timeout_s:g} s for {what}", remedy="find what takes so long")


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
