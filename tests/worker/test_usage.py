"""What a process uses between two readings: clocks that a test sets, and the kernel's own."""

import time
from types import SimpleNamespace

import pytest

from kerasbench.wire import Usage
from kerasbench.worker import usage
from kerasbench.worker.usage import Meter


def test_a_meter_counts_from_its_making_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(cpu=100, wall=1_000, switches=7)
    clocks = SimpleNamespace(process_time_ns=lambda: now.cpu, perf_counter_ns=lambda: now.wall)
    monkeypatch.setattr(usage, "time", clocks)
    monkeypatch.setattr(usage, "_involuntary_switches", lambda: now.switches)
    meter = Meter()
    now.cpu, now.wall, now.switches = 400, 1_200, 9
    assert meter.read() == Usage(cpu_ns=300, wall_ns=200, involuntary_switches=2)
    assert meter.read().processors == pytest.approx(1.5)
    now.wall = 1_600
    assert meter.read().wall_ns == 600  # from the beginning again, not from the last reading


def test_the_processor_time_is_that_of_all_threads_of_this_process() -> None:
    meter, until_ns = Meter(), time.process_time_ns() + 20_000_000
    while time.process_time_ns() < until_ns:
        pass
    read = meter.read()
    assert read.cpu_ns >= 20_000_000
    assert read.involuntary_switches >= 0
