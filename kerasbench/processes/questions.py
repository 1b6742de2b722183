"""Questions to children that are no trials. Nothing is measured yet, so several may be asked at once."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from kerasbench import backends, sources
from kerasbench.files import scratch_folder
from kerasbench.host import macos
from kerasbench.processes import process
from kerasbench.processes.outcome import ReceivedMessages, failure_of, not_started
from kerasbench.processes.variables import NOTHING, clean, for_scratch, share_datasets
from kerasbench.protocol import requests
from kerasbench.protocol.columns import CPU, GPU, Device, visible_cuda
from kerasbench.protocol.descriptions import Description
from kerasbench.protocol.messages import Failure, Inventory, Message, ProbeReport

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Tick = Callable[[], None]
WAKE_S = 0.05  # nothing is being measured yet


class GivenUp(Exception):
    """The others have failed or were interrupted: nobody waits for this one any more."""


def together(work: Callable[[Item, Tick], Answer], items: Sequence[Item], at_once: int) -> list[Answer]:
    """Work in threads, each with a function to call again and again: it stops the others' children if one fails."""
    given_up = threading.Event()

    def tick() -> None:
        if given_up.is_set():
            raise GivenUp

    with ThreadPoolExecutor(at_once) as pool:
        try:
            running = [pool.submit(work, item, tick) for item in items]  # Ctrl-C may come here too
            while True:
                # Not for ever: a signal that comes just before a thread begins to wait is not heeded until it wakes.
                done, waiting = wait(running, WAKE_S, FIRST_EXCEPTION)
                answers = [future.result() for future in running if future in done]  # raises what one raised
                if not waiting:
                    return answers
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # first: a thread that gives up would begin the next one
            given_up.set()
            raise


# For how long a child may answer each kind of request, and what it does meanwhile.
TIMES: dict[type[requests.Request], tuple[float, str]] = {
    requests.ProbeRequest: (120.0, "importing a backend"),  # TensorFlow's takes half a minute from a slow disk
    requests.InventoryRequest: (60.0, "looking at what is installed"),
    requests.DescribeRequest: (60.0, "describing scenario files"),
    requests.CountRequest: (120.0, "counting operations"),  # like a probe, and two steps of eight samples
    requests.LookRequest: (120.0, "looking at a model"),  # as long
    requests.FetchRequest: (1800.0, "loading a data set"),  # CIFAR-100's 170 MB over a slow line
}


OWN_TIME_S = 300.0  # for what a model's source runs of the user's


def _runs(request: requests.Request) -> str:
    source = sources.of_config(getattr(request, "model_config", requests.NOTHING))
    return source.runs.format(source.noun)


def probe(
    backend: str,
    python: str,
    on_tick: Tick = lambda: None,
    kept: Mapping[str, str] = NOTHING,
    imports: bool = True,
) -> ProbeReport | Failure:
    variables = visible_cuda() | backends.get(backend).ALWAYS
    report = _ask(
        python, requests.ProbeRequest(backend, imports), variables, lambda answer: answer.probe, kept, on_tick
    )
    return with_chip(report, macos.chip()) if isinstance(report, ProbeReport) and sys.platform == "darwin" else report


def with_chip(report: ProbeReport, chip: str) -> ProbeReport:
    """Call a Mac's GPU by the name of its chip; frameworks say METAL, or nothing."""
    devices = [replace(device, name=chip or device.name) if device.kind == GPU else device for device in report.devices]
    return replace(report, devices=devices)


def inventory(python: str, on_tick: Tick = lambda: None) -> Inventory | Failure:
    return _ask(python, requests.InventoryRequest(), {}, lambda answer: answer.inventory, on_tick=on_tick)


def describe(
    files: Sequence[str],
    python: str,
    backend: str | None,
    kept: Mapping[str, str],
    model_config: requests.ModelConfig,
    bare: bool = False,
) -> list[Description] | Failure:
    """``backend`` is for files that use keras at their top; those fail as UNAVAILABLE if ``bare``: without Keras."""
    request = requests.DescribeRequest(list(files), model_config, bare)
    variables = backends.get(backend).ALWAYS if backend else {}
    if backend and _runs(request):
        variables = variables | backends.get(backend).environment(Device(CPU), "")
    return _ask(python, request, variables, lambda answer: answer.descriptions, kept)


def fetch(file: str, workload: str, backend: str, python: str, kept: Mapping[str, str] = NOTHING) -> str | Failure:
    variables = backends.get(backend).ALWAYS
    return _ask(python, requests.FetchRequest(file, workload), variables, lambda answer: answer.fetched, kept)


def count(request: requests.CountRequest, python: str, kept: Mapping[str, str] = NOTHING) -> float | Failure:
    counting = backends.get(backends.counting())
    variables = counting.ALWAYS | counting.environment(Device(CPU), "")
    return _ask(python, request, variables, lambda answer: answer.counted, kept)


def look(
    request: requests.LookRequest, python: str, on_tick: Tick, kept: Mapping[str, str] = NOTHING
) -> dict[str, str] | Failure:
    backend = backends.get(request.backend)
    variables = backend.ALWAYS | backend.environment(Device(CPU), "")
    return _ask(python, request, variables, lambda answer: answer.suspected, kept, on_tick)


def _ask(
    python: str,
    request: requests.Request,
    variables: Mapping[str, str],
    wanted: Callable[[Message], Answer | None],
    kept: Mapping[str, str] = NOTHING,
    on_tick: Tick = lambda: None,
) -> Answer | Failure:
    timeout_s, purpose = TIMES[type(request)]
    if runs := _runs(request):
        timeout_s, purpose = OWN_TIME_S, runs
    limit = f"the limit of {timeout_s:g} s for {purpose}"
    limits = process.Limits(timeout_s, limit, remedy="find out what takes so long")
    received = ReceivedMessages()
    try:
        with scratch_folder() as scratch:
            if isinstance(request, requests.FetchRequest) or _runs(request):
                share_datasets(scratch)
            environment = {**clean(python, kept), **for_scratch(scratch), **variables}
            task = process.Task(python, environment, received.token + b" " + requests.encode_request(request), limits)
            ended = process.run(task, received.take, on_tick, process.QUICK_POLL_S)
    except OSError as error:
        return not_started(error, python)
    message = received.answer or Message()
    answer = wanted(message)
    if answer is not None:  # 0.0 counted operations and an empty title are answers
        return answer
    return message.failure or failure_of(ended, received.begun, limits)
