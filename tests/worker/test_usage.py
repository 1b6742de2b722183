"""What a process and others use: by files that the tests write, real processes, and a driver of a few functions."""

import mmap
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.worker import usage
from kerasbench.worker.usage import UNKNOWN, Counters, Meter, Reading, cpu_ns_of

MIB = 1 << 20
MS = 1_000_000
linux = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")


@pytest.mark.processes
def test_a_peak_is_a_process_s_own_and_stays_when_what_made_it_is_gone() -> None:
    held = b"x" * (200 * MIB)
    peaks = []
    for holding in ("", f"held = b'x' * {200 * MIB}; del held; "):
        code = f"from kerasbench.worker.usage import peak_rss_bytes; {holding}print(peak_rss_bytes())"
        peaks.append(int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
    assert 1 * MIB < peaks[0] < len(held) < peaks[1]


@linux
def test_a_peak_is_in_kib_or_else_what_the_kernel_keeps_for_all(tmp_path: Path) -> None:
    kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert usage.peak_rss_bytes(tmp_path) >= kept
    (tmp_path / "self").mkdir()
    status = tmp_path / "self" / "status"
    status.write_text("Name:\tpython\nVmRSS:\t  9216 kB\n")
    assert usage.peak_rss_bytes(tmp_path) >= kept
    status.write_text("Name:\tpython\nVmPeak:\t  99999 kB\nVmHWM:\t    9216 kB\nVmRSS:\t    1024 kB\n")
    assert usage.peak_rss_bytes(tmp_path) == 9 * MIB


def test_what_a_process_holds_now_is_in_bytes() -> None:
    before = usage.rss_bytes()
    held = b"x" * (64 * MIB)
    assert usage.rss_bytes() - before > len(held) // 2


def test_the_slices_of_a_soak_say_what_was_done_and_what_is_held() -> None:
    for reads_memory in (True, False):
        meter = Meter(machine=lambda: UNKNOWN, reads_memory=reads_memory)
        began = meter.read()
        meter.done += 7
        slice_ = meter.read().since(began, 5, Turn(0, 0))
        assert (slice_.count, slice_.done) == (5, 7 if reads_memory else None)
        assert (slice_.rss_bytes or 0) > MIB if reads_memory else slice_.rss_bytes is None


def test_a_slice_is_what_lies_between_two_readings_and_tells_what_others_took_but_for_switching_threads() -> None:
    began, ended = Reading(1_000, 100, 7, page_faults=50), Reading(1_200, 400, 9, page_faults=80)
    slice_ = Slice(4, 200, cycle=2, position=1, cpu_ns=300, page_faults=30)
    assert ended.since(began, 4, Turn(2, 1)) == slice_
    began = Reading(0, 0, 0, Counters(4, 1_000 * MS, 50 * MS, 3))
    ended = Reading(100 * MS, 130 * MS, 0, Counters(4, 1_120 * MS, 60 * MS, 4))
    slice_ = ended.since(began, 1, Turn(0, 0))
    assert (slice_.others_ns, slice_.steal_ns, slice_.throttled) == ((4 * 100 - 120 - 10 - 130) * MS, 10 * MS, 1)
    assert not slice_.disturbed  # which the parent judges
    assert Counters(2, 95, 0).taken(Counters(2, 0, 0), 100, 110) == (-5, 0, None)  # or sums would be too large
    began = Reading(0, 0, 1_100, Counters(2, 0, 0))
    ended = Reading(100 * MS, 100 * MS, 7_100, Counters(2, 80 * MS, 0))
    assert ended.since(began, 1, Turn(0, 0)).others_ns == 20 * MS - 6_000 * usage.SWITCH_NS


def test_a_meter_counts_the_processor_time_and_the_pages_of_this_process() -> None:
    meter = Meter()
    began, until_ns = meter.read(), time.process_time_ns() + 20 * MS
    with mmap.mmap(-1, MIB) as memory:
        memory.write(b"x" * MIB)
        while time.process_time_ns() < until_ns:
            pass
        ended = meter.read()
    assert ended.cpu_ns - began.cpu_ns >= 20 * MS
    assert ended.ns > began.ns
    assert ended.switches >= began.switches >= 0
    assert ended.page_faults > began.page_faults


TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
STAT = """cpu  100 0 50 {idle} 7 0 0 {steal} 0 0
cpu0 25 0 12 {idle0} 2 0 0 1 0 0
cpu1 25 0 12 200 1 0 0 2 0 0
cpu2 25 0 13 300 4 0 0 3 0 0
intr 12345
"""


def written(folder: Path, idle: int = 1000, idle0: int = 400, steal: int = 6) -> Path:
    file = folder / "stat"
    file.write_text(STAT.format(idle=idle, idle0=idle0, steal=steal))
    return folder


@linux
def test_a_process_counts_its_processors(tmp_path: Path) -> None:
    for confined, expected in (
        ([], Counters(os.cpu_count() or 1, 1007 * TICK_NS, 6 * TICK_NS)),  # the first line is of all processors
        ([0, 2], Counters(2, (402 + 304) * TICK_NS, (1 + 3) * TICK_NS)),
    ):
        read = usage._linux_reader(confined, written(tmp_path), tmp_path)
        assert read() == expected
        written(tmp_path, idle=1010, idle0=410)
        assert read().free_ns == (expected.free_ns or 0) + 10 * TICK_NS


@linux
@pytest.mark.parametrize(
    ("confined", "stat", "mounts"),
    [
        ([], "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n", ""),  # gVisor
        ([5, 7], STAT.format(idle=1, idle0=1, steal=1), ""),  # a container that has no such lines
        ([0, 2], STAT.format(idle=1, idle0=1, steal=1), "99 88 0:51 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw\n"),
    ],
)
def test_what_a_container_does_not_tell(tmp_path: Path, confined: list[int], stat: str, mounts: str) -> None:
    (tmp_path / "stat").write_text(stat)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(mounts)
    with pytest.raises(OSError, match="does not list these CPU cores"):
        usage._linux_reader(confined, tmp_path, tmp_path)


@linux
def test_heat_is_counted_and_a_machine_that_tells_nothing_disturbs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "core_throttle_count").write_text("3\n")
    (tmp_path / "package_throttle_count").write_text("4\n")
    assert usage._linux_reader([], written(tmp_path), tmp_path)().throttled == 7
    monkeypatch.setattr(usage, "PROC", tmp_path / "none")
    assert usage.counters_reader()() == UNKNOWN


@linux
@pytest.mark.processes
def test_helpers_are_found_and_their_processors_counted() -> None:
    assert cpu_ns_of(["0"]) == 0  # of one that is gone
    with subprocess.Popen(["sh", "-c", "(while :; do :; done) & wait"], start_new_session=True) as child:
        try:
            until_s = time.monotonic() + 30
            while cpu_ns_of(grandchildren := usage.child_processes(str(child.pid))) == 0:
                assert time.monotonic() < until_s
            assert set(grandchildren) < set(usage.child_processes())
        finally:
            os.killpg(child.pid, 9)


@linux
@pytest.mark.processes
def test_what_a_helper_has_used_is_counted_when_it_is_gone_too() -> None:
    meter = Meter(machine=lambda: UNKNOWN)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as child:
        try:
            while cpu_ns_of([str(child.pid)]) < 100 * MS:
                time.sleep(0.01)
            meter.look_for_helpers()
            assert str(child.pid) in meter.helpers
            began = meter.read()
        finally:
            child.kill()
    assert meter.read().cpu_ns >= began.cpu_ns


UUID = "GPU-8f2a0b1c-1111-2222-3333-444455556666"


class Nvml:
    """What of NVML is asked: samples of (process, ms ago, percent)."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int, int]] = []

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, card: Any) -> int:  # noqa: N802
        card._obj.value = 41
        return 0 if uuid == UUID.encode() else usage.NOT_FOUND

    def nvmlDeviceGetProcessUtilization(self, card: Any, samples: Any, count: Any, since_us: Any) -> int:  # noqa: N802
        assert card.value == 41
        now_us = time.time_ns() // 1_000
        told = [sample for sample in self.samples if now_us - 1_000 * sample[1] >= since_us.value]
        count._obj.value = len(told)
        for sample, (pid, ms_ago, percent) in zip(samples, told, strict=False):
            sample.pid, sample.at_us, sample.multiprocessors = pid, now_us - 1_000 * ms_ago, percent
        return 0 if told else usage.NOT_FOUND


def watched(nvml: object, *others: int) -> usage.CardShare:
    share = usage.card_share_reader(UUID, others, lambda name: nvml)
    assert share is not None
    return share


def test_those_count_that_were_there_before_added_up_at_each_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)
    nvml = Nvml()
    share = watched(nvml, 7, 8)
    assert share(100 * MS) == 0
    nvml.samples = [(7, 50, 30), (99, 50, 90), (8, 300, 10)]  # 99 came later: it may be this process
    assert share(100 * MS) == 0.3
    nvml.samples = [(7, 5_000, 30)]  # long before the slice
    assert share(100 * MS) == 0
    nvml.samples = [(7, 50, 30), (8, 50, 20), (8, 60, 40)]
    assert share(100 * MS) == 0.5
    assert watched(object())(100 * MS) == 0  # nobody was there, and nobody is asked
    monkeypatch.setattr(nvml, "nvmlDeviceGetProcessUtilization", lambda *asked: 3, raising=False)  # not supported (MIG)
    assert watched(nvml, 7)(100 * MS) is None


def test_without_a_driver_or_a_card_nothing_is_told() -> None:
    assert usage.card_share_reader("GPU-1", [7], lambda name: Nvml()) is None
    assert usage.card_share_reader(UUID, [7], Mock(side_effect=OSError("libnvidia-ml.so.1: cannot open"))) is None
    assert usage.card_share_reader(UUID, [7], lambda name: object()) is None  # a driver without the functions
    assert usage.card_share_reader(UUID, None) is None
    assert usage.card_share_reader("", [7]) is None


def test_a_slice_on_a_gpu() -> None:
    for held_bytes, share, disturbed in (None, None, False), (7, None, False), (None, 0.05, False), (7, 0.06, True):
        meter = Meter(on_device=Mock(return_value=held_bytes), card=Mock(return_value=share))
        slice_ = meter.with_card(Slice(1, 100 * MS))
        assert (slice_.device_bytes, slice_.card_share, slice_.disturbed) == (held_bytes, share, disturbed)
