"""What a process says of itself, asked in real children."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.worker import usage
from kerasbench.worker.usage import Counters, Meter, Reading, cpu_ns_of

MIB = 1 << 20
ASK = "from kerasbench.worker.usage import peak_rss_bytes; {}print(peak_rss_bytes())"


def asked(held: str = "") -> int:
    """Return what a child says that it held, after it has held something."""
    said = subprocess.run([sys.executable, "-c", ASK.format(held)], capture_output=True, check=True, text=True)
    return int(said.stdout)


@pytest.mark.processes
def test_what_the_parent_holds_is_in_no_child_s_peak() -> None:
    held = b"x" * (400 * MIB)
    assert 1 * MIB < asked() < len(held)


@pytest.mark.processes
def test_a_peak_stays_when_what_made_it_is_gone() -> None:
    assert asked(f"held = b'x' * {400 * MIB}; del held; ") > 400 * MIB


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")
@pytest.mark.parametrize("text", [None, "", "Name:\tpython\nVmRSS:\t  9216 kB\n"])
def test_a_kernel_that_does_not_tell_leaves_the_peak_that_it_keeps_for_all(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "self").mkdir()
        (tmp_path / "self" / "status").write_text(text)
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert usage.peak_rss_bytes(tmp_path) >= kept


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")
def test_linux_counts_in_kib(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(
        "Name:\tpython\nVmPeak:\t  99999 kB\nVmHWM:\t    9216 kB\nVmRSS:\t    1024 kB\n"
    )
    assert usage.peak_rss_bytes(tmp_path) == 9 * MIB


def test_a_slice_is_what_lies_between_two_readings() -> None:
    began, ended = Reading(1_000, 100, 7), Reading(1_200, 400, 9)
    assert ended.since(began, 4, Turn(2, 1)) == Slice(4, 200, cycle=2, position=1, cpu_ns=300)


def test_a_slice_tells_what_others_took_meanwhile() -> None:
    ms = 1_000_000
    began = Reading(0, 0, 0, Counters(4, 1_000 * ms, 50 * ms, 3))
    ended = Reading(100 * ms, 130 * ms, 0, Counters(4, 1_120 * ms, 60 * ms, 4))
    found = ended.since(began, 1, Turn(0, 0))
    assert (found.others_ns, found.steal_ns, found.throttled) == ((4 * 100 - 120 - 10 - 130) * ms, 10 * ms, 1)
    assert found.disturbed


def test_what_the_kernel_needs_to_switch_threads_is_not_what_others_took() -> None:
    ms = 1_000_000
    began = Reading(0, 0, 100, Counters(2, 0, 0), waits=1_000)
    ended = Reading(100 * ms, 100 * ms, 1_100, Counters(2, 80 * ms, 0), waits=6_000)
    found = ended.since(began, 1, Turn(0, 0))
    assert found.others_ns == 20 * ms - 6_000 * usage.SWITCH_NS
    assert not found.disturbed


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")
def test_the_processors_of_helpers_are_this_process_s_own() -> None:
    meter = Meter(helpers=[str(os.getppid())])  # whatever has run for a while
    assert meter.read().cpu_ns >= cpu_ns_of(meter.helpers)


def test_the_processor_time_is_that_of_all_threads_of_this_process() -> None:
    meter = Meter()
    began, until_ns = meter.read(), time.process_time_ns() + 20_000_000
    while time.process_time_ns() < until_ns:
        pass
    ended = meter.read()
    assert ended.cpu_ns - began.cpu_ns >= 20_000_000
    assert ended.ns > began.ns
    assert ended.switches >= began.switches >= 0
