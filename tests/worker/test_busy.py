"""Processes that keep processors busy: real ones, for the time of a slice."""

import os
import time
from contextlib import suppress

import psutil
import pytest

from kerasbench.worker.usage import BusyCores, Meter

pytestmark = pytest.mark.processes
MS = 1_000_000


def until_used(busy: BusyCores, ns: int) -> None:
    """Wait until so much more processor time has been used."""
    wanted_ns = busy.used_ns() + ns
    while busy.used_ns() < wanted_ns:
        time.sleep(0.001)


def test_they_compute_between_resume_and_pause_and_are_gone_afterwards() -> None:
    with BusyCores(2) as busy:
        assert len(busy.processes) == 2
        for _ in range(3):
            busy.resume()
            until_used(busy, 5 * MS)
            busy.pause()
            time.sleep(0.02)  # each looks up within a millisecond or so
            before_ns = busy.used_ns()
            time.sleep(0.02)
            assert busy.used_ns() == before_ns
        assert busy.average is not None and busy.average > 0
    assert not any(psutil.pid_exists(int(one)) for one in busy.processes)


def test_what_they_use_is_neither_the_model_s_own_nor_that_of_others() -> None:
    with BusyCores(1) as busy:
        meter = Meter(busy=busy)
        meter.look_for_helpers()
        assert meter.helpers == []
        began = meter.read()
        busy.resume()
        until_used(busy, 20 * MS)
        ended = meter.read()
    assert ended.busy_ns - began.busy_ns >= 20 * MS
    assert ended.cpu_ns - began.cpu_ns < ended.busy_ns - began.busy_ns


def test_they_end_with_whoever_started_them() -> None:
    child = os.fork()
    if child == 0:  # killed, as by the parent's limit of time: nothing of it is run any more
        BusyCores(1).resume()
        time.sleep(60)
        os._exit(0)
    try:
        while not (found := _children(child)):
            time.sleep(0.001)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    _, alive = psutil.wait_procs(found, timeout=10)
    assert not alive


def _children(process: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process(process).children()
    return []


def test_none_are_started_for_none() -> None:
    with BusyCores() as busy:
        busy.resume()
        busy.pause()
        assert (busy.processes, busy.used_ns(), busy.average) == ([], 0, None)
