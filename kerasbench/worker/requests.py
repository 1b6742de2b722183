"""One request, one child: read it, do it, say how it ended, leave."""

import os
import sys
import time
from contextlib import suppress
from typing import NoReturn

from kerasbench.datasets import DataError
from kerasbench.exchange.messages import Code, Failure, Message, Phase
from kerasbench.exchange.requests import (
    CountRequest,
    DescribeRequest,
    FetchRequest,
    InventoryRequest,
    ProbeRequest,
    Request,
    TrialRequest,
    decode_request,
)
from kerasbench.scenario import ScenarioError
from kerasbench.worker.failure import TrialFailure, failure_of
from kerasbench.worker.pipe import Pipe
from kerasbench.worker.turns import Turns, listen

REAP_S = 1.0  # for one that the kernel does not let go of at once; the parent kills it again


def serve(descriptor: int, started_ns: int) -> NoReturn:
    """Serve the request on standard input and leave the process, whatever happened."""
    token, _, line = sys.stdin.buffer.readline().partition(b" ")
    pipe, request = Pipe(descriptor, token), decode_request(line)
    turns = Turns(pipe, listen())
    pipe.send(Message(phase=Phase("worker", started_ns, time.monotonic_ns())))
    try:
        _dispatch(request, pipe, turns)
    except TrialFailure as known:
        pipe.send(Message(failure=known.failure))
    except ScenarioError as error:
        pipe.send(Message(failure=Failure(Code.INVALID, str(error), error.remedy, pipe.current_phase)))
    except DataError as error:
        remedy = "docs/scenarios.md says where data come from"
        pipe.send(Message(failure=Failure(Code.UNAVAILABLE, str(error), remedy, pipe.current_phase)))
    except Exception as error:
        pipe.send(Message(failure=failure_of(error, pipe.current_phase, getattr(request, "file", ""))))
    _leave()


def _dispatch(request: Request, pipe: Pipe, turns: Turns) -> None:
    # Imported late: describing a scenario must not pay for what measuring one needs.
    match request:
        case DescribeRequest():
            from kerasbench.worker.questions.describe import PHASE, describe_each

            with pipe.phase(PHASE):
                descriptions = describe_each(request)
            pipe.send(Message(descriptions=descriptions))
        case ProbeRequest():
            from kerasbench.worker.questions.probe import probe

            with pipe.phase("import"):
                report = probe(request)
            pipe.send(Message(probe=report))
        case InventoryRequest():
            from kerasbench.worker.questions.inventory import take

            pipe.send(Message(inventory=take(request)))
        case CountRequest():
            from kerasbench.worker.questions.flops import count

            with pipe.phase("count"):
                counted = count(request)
            pipe.send(Message(counted=counted))
        case FetchRequest():
            from kerasbench.worker.questions.fetch import fetch

            with pipe.phase("fetch"):
                title = fetch(request)
            pipe.send(Message(fetched=title))
        case TrialRequest():
            from kerasbench.worker.trial.trial import run_trial

            run_trial(request, pipe, turns)


def _leave() -> NoReturn:
    # os._exit: tearing a framework down takes up to half a second and can crash; everything is said already.
    sys.stdout.flush()
    sys.stderr.flush()
    _reap_workers()
    os._exit(0)


def _reap_workers() -> None:
    """End the processes that multiprocessing has started here, a pool's among them, and wait for them.

    They would end with this process, and the kernel would count their processor time for nobody.
    """
    if "multiprocessing" not in sys.modules:
        return
    from multiprocessing import active_children

    workers = active_children()
    for worker in workers:
        with suppress(OSError, ValueError):  # gone meanwhile, or closed
            worker.kill()
    for worker in workers:
        with suppress(OSError, ValueError):
            worker.join(REAP_S)
