"""One request, one child: read it, do it, report how it ended, leave."""

import faulthandler
import importlib
import os
import platform
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import metadata, util
from typing import Any, NoReturn

from kerasbench import backends, sources, variants
from kerasbench.datasets import DataError
from kerasbench.protocol import requests
from kerasbench.protocol.columns import CPU, Device
from kerasbench.protocol.messages import (
    FIND,
    WRITE_STACKS,
    Code,
    Failure,
    Inventory,
    Message,
    Phase,
    ProbeReport,
    TrialFailure,
)
from kerasbench.protocol.requests import Request, decode_request
from kerasbench.runners.failure import failure_of, refuse_other_frameworks
from kerasbench.worker.pipe import Pipe, listen

REAP_S = 1.0  # for one that the kernel does not let go of at once; the parent kills it again


def serve(descriptor: int, started_ns: int) -> NoReturn:
    token, _, line = sys.stdin.buffer.readline().partition(b" ")
    request = decode_request(line)
    pipe = Pipe(descriptor, token, listen())
    faulthandler.register(WRITE_STACKS)  # in C: it works wherever Python hangs
    pipe.send(Message(phase=Phase("worker", started_ns, time.monotonic_ns())))
    _respond(request, pipe, lambda: _answer(request, pipe))


def _respond(request: Request, pipe: Pipe, answer: Callable[[], Message]) -> NoReturn:
    """Send what a function returns, or why it cannot, and end the process: of a script, from inside its ``fit``."""
    try:
        message = answer()
    except Exception as error:
        forget_children()
        message = Message(failure=_failure_of(error, request, pipe.current_phase))
    forget_children()
    pipe.send(message)
    # os._exit: tearing a framework down takes up to half a second and can crash; everything is reported already.
    sys.stdout.flush()
    sys.stderr.flush()
    # Workers would end with this process, and the kernel would count the time of a pool for nobody.
    multiprocessing = sys.modules.get("multiprocessing")
    for worker in multiprocessing.active_children() if multiprocessing else ():
        with suppress(OSError, ValueError):  # gone meanwhile, or closed
            worker.kill()
            worker.join(REAP_S)
    os._exit(0)


def forget_children() -> None:
    """Have the end of a child raise nothing: torch's DataLoader raises wherever this process is then, once for each."""
    for _ in range(2):  # one that has just ended may raise in here
        with suppress(Exception):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _failure_of(error: Exception, request: Request, phase: str) -> Failure:
    if isinstance(error, DataError):
        return Failure(Code.UNAVAILABLE, str(error), "kerasbench docs your-model says where data come from", phase)
    return failure_of(error, phase, getattr(request, "file", ""))


def _answer(request: Request, pipe: Pipe) -> Message:
    # Imported late: describing a scenario must not pay for what measuring one needs.
    match request:
        case requests.InventoryRequest():
            return Message(inventory=inventory())
        case requests.ProbeRequest():
            with pipe.phase("import"):
                return Message(probe=probe(request))
        case requests.TrialRequest(fills_caches=True) if variants.has(request.options, "exports"):
            from kerasbench.worker.exported import export

            return Message(exported=export(request, pipe))
        case requests.TrialRequest():
            from kerasbench.worker.trial import run_trial

            return run_trial(request, pipe, partial(_respond, request, pipe))
    return _described(request, pipe)


def _described(request: Request, pipe: Pipe) -> Message:
    from kerasbench.worker import describe

    answers: dict[type[Request], tuple[str, str, Callable[[Any], Any]]] = {
        requests.DescribeRequest: (describe.PHASE, "descriptions", describe.describe_each),
        requests.CountRequest: ("count", "counted", describe.count),
        requests.LookRequest: ("look", "suspected", describe.look),
        requests.FetchRequest: ("fetch", "fetched", describe.fetch),
    }
    phase, field, answer = answers[type(request)]

    def describe_it() -> Message:
        with pipe.phase(phase):
            return Message(**{field: answer(request)})

    if isinstance(request, requests.DescribeRequest | requests.CountRequest | requests.LookRequest):
        return sources.of_request(request).enter(request, pipe.phase, describe_it, partial(_respond, request, pipe))
    return describe_it()


def inventory() -> Inventory:
    """Import nothing of what is installed: what is broken is listed, too."""
    packages: dict[str, str] = {}
    for distribution in metadata.distributions():
        with suppress(FileNotFoundError):  # it is broken, by the newer importlib_metadata, which a package may bring
            fields = distribution.metadata
            if "Name" in fields and "Version" in fields:  # a broken distribution has neither
                name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
                packages.setdefault(name, fields["Version"])  # the first on the path is the one imported
    return Inventory(platform.python_version(), sys.prefix, platform.machine(), dict(sorted(packages.items())))


def probe(request: requests.ProbeRequest) -> ProbeReport:
    """Raise TrialFailure where the backend or keras is not installed; what its import raises passes through."""
    refuse_other_frameworks(request.backend)
    backend = backends.get(request.backend)
    for package in (backend.PACKAGE, "keras"):
        if util.find_spec(package) is None:
            cause = f"{package} is not installed in {sys.prefix}"
            remedy = shlex.join([sys.executable, "-m", "pip", "install", "keras", backend.PACKAGE])
            if backend.OUTSIDE:  # beside a Keras that pip may not have
                remedy = f"python -m kerasbench env create --backend {request.backend}"
            raise TrialFailure(Failure(Code.UNAVAILABLE, cause, remedy, FIND))
    try:
        keras_version = metadata.version("keras")
    except metadata.PackageNotFoundError:
        keras_version = metadata.version("keras-nightly")
    versions, python = {"keras": keras_version, "numpy": metadata.version("numpy")}, sys.version.split()[0]
    if not request.imports:
        with suppress(metadata.PackageNotFoundError):  # its distribution may have another name, as tensorflow-cpu
            versions[request.backend] = metadata.version(backend.MODULE.partition(".")[0])
        return ProbeReport(request.backend, python, versions, [Device(CPU)])
    importlib.import_module(backend.MODULE)
    return ProbeReport(request.backend, python, versions | backend.versions(), backend.devices())
