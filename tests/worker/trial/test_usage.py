"""What a process says of itself, asked in real children."""

import resource
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kerasbench.exchange.measurement import Usage
from kerasbench.worker.trial import usage
from kerasbench.worker.trial.usage import Meter

MIB = 1 << 20
ASK = "from kerasbench.worker.trial.usage import peak_rss_bytes; {}print(peak_rss_bytes())"


def asked(held: str = "") -> int:
    """Return what a child says that it held, after it has held something."""
    said = subprocess.run([sys.executable, "-c", ASK.format(held)], capture_output=True, check=True, text=True)
    return int(said.stdout)


def test_what_the_parent_holds_is_in_no_child_s_peak() -> None:
    held = b"x" * (400 * MIB)
    assert 1 * MIB < asked() < len(held)


def test_a_peak_stays_when_what_made_it_is_gone() -> None:
    assert asked(f"held = b'x' * {400 * MIB}; del held; ") > 400 * MIB


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")
@pytest.mark.parametrize("text", [None, "", "Name:\tpython\nVmRSS:\t  9216 kB\n"])
def test_a_kernel_that_does_not_tell_leaves_the_peak_that_it_keeps_for_all(tmp_path: Path, text: str | None) -> None:
    status = tmp_path / "status"
    if text is not None:
        status.write_text(text)
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert usage.peak_rss_bytes(status) >= kept


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")
def test_linux_counts_in_kib(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  99999 kB\nVmHWM:\t    9216 kB\nVmRSS:\t    1024 kB\n")
    assert usage.peak_rss_bytes(status) == 9 * MIB


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
    assert read.involuntary_switches is not None and read.involuntary_switches >= 0
