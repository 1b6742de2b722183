"""Several children at once, before anything is measured: probing backends, describing scenarios.

Questions to a child that are no trial: what a backend sees, what a file holds, what is installed.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from kerasbench import backends
from kerasbench.files import scratch_folder
from kerasbench.host import macos
from kerasbench.processes import process
from kerasbench.processes.outcome import Limits, Received, failure_of, not_started
from kerasbench.processes.variables import NOTHING, clean, for_scratch, share_datasets
from kerasbench.protocol.columns import CPU, DEFAULT, GPU, Device, visible_cuda
from kerasbench.protocol.messages import Description, Failure, Inventory, Message, ProbeReport
from kerasbench.protocol.requests import NOTHING as NOTHING_GIVEN
from kerasbench.protocol.requests import (
    CountRequest,
    DescribeRequest,
    FetchRequest,
    InventoryRequest,
    ModelConfig,
    ProbeRequest,
    Request,
    encode_request,
)

Item = TypeVar("Item")
Found = TypeVar("Found")
Tick = Callable[[], None]
WAKE_S = 0.05  # nothing is being measured yet


class GivenUp(Exception):
    """The others have failed or were interrupted: nobody waits for this one any more."""


def together(work: Callable[[Item, Tick], Found], items: Sequence[Item], at_once: int) -> list[Found]:
    """Do the work for every item, each in a thread, and return what was found in the order of the items.

    ``work`` gets a function that it calls again and again, as ``process.run`` does. When one fails, or Ctrl-C comes,
    that function raises, which stops the others' children.
    """
    given_up = threading.Event()

    def tick() -> None:
        if given_up.is_set():
            raise GivenUp

    with ThreadPoolExecutor(at_once) as pool:
        try:
            running = [pool.submit(work, item, tick) for item in items]  # Ctrl-C may come here too
            waiting: set[Future[Found]] = set(running)
            while waiting:
                # Not for ever: a signal that comes just before a thread begins to wait is not heeded until it wakes.
                done, waiting = wait(waiting, timeout=WAKE_S, return_when=FIRST_EXCEPTION)
                for one in done:
                    one.result()
            return [one.result() for one in running]
        except BaseException:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


PROBE_TIMEOUT_S = 120.0  # a cold import of TensorFlow from a slow disk takes half a minute
DESCRIBE_TIMEOUT_S = 60.0
COUNT_TIMEOUT_S = 120.0  # like a probe, and two steps of eight samples
FETCH_TIMEOUT_S = 1800.0  # CIFAR-100's 170 MB over a slow line
Said = TypeVar("Said")


def probe(
    backend: str, python: str, on_tick: Callable[[], None] = lambda: None, kept: Mapping[str, str] = NOTHING
) -> ProbeReport | Failure:
    """Ask one backend, in a child, what it is and what it sees."""
    limits = _standard(PROBE_TIMEOUT_S, "importing a backend")
    variables = visible_cuda() | backends.get(backend).ALWAYS
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
    files: Sequence[str],
    python: str,
    backend: str | None = None,
    kept: Mapping[str, str] = NOTHING,
    model_config: ModelConfig = NOTHING_GIVEN,
) -> list[Description] | Failure:
    """Ask scenario files, in one child, what is in each; ``backend`` is for files that use keras at their top.

    ``model_config`` is said of those that are models.
    """
    limits = _standard(DESCRIBE_TIMEOUT_S, "describing scenario files")
    variables = backends.get(backend).ALWAYS if backend else {}
    request = DescribeRequest(list(files), model_config)
    return _ask(python, request, limits, variables, lambda answer: answer.descriptions, kept=kept)


def fetch(file: str, workload: str, backend: str, python: str, kept: Mapping[str, str] = NOTHING) -> str | Failure:
    """Have a workload's real rows downloaded and checked, in a child; return the data set's title."""
    limits = _standard(FETCH_TIMEOUT_S, "having a data set's rows")
    variables, request = backends.get(backend).ALWAYS, FetchRequest(file, workload)
    return _ask(python, request, limits, variables, lambda answer: answer.fetched, real_data=True, kept=kept)


def count(request: CountRequest, python: str, kept: Mapping[str, str] = NOTHING) -> float | Failure:
    """Have the floating-point operations that a training step takes for each sample counted, in a child."""
    limits = _standard(COUNT_TIMEOUT_S, "counting operations")
    counting = backends.get(backends.counting())
    variables = counting.ALWAYS | counting.environment(Device(CPU), DEFAULT, "")
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
    received = Received()
    try:
        with scratch_folder() as scratch:
            if real_data:
                share_datasets(scratch)
            own = clean(python, kept) | for_scratch(scratch)
            line = received.token + b" " + encode_request(request)
            ended = process.run(
                python,
                {**own, **variables},
                line,
                limits.timeout_s,
                received.take,
                on_tick,
                poll_s=process.QUICK_POLL_S,
            )
    except OSError as error:
        return not_started(error, python)
    answer = received.answer or Message()
    said = wanted(answer)
    if said is not None:  # 0.0 counted operations and an empty title are answers
        return said
    return answer.failure or failure_of(ended, received.begun, limits)


def _standard(timeout_s: float, what: str) -> Limits:
    return Limits(timeout_s, f"the limit of {timeout_s:g} s for {what}", remedy="find what takes so long")
