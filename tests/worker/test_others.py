"""What others use of the machine, by files that the tests write and by processes that they start."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kerasbench.worker import usage
from kerasbench.worker.usage import OF_ALL, OF_ONE, UNKNOWN, Counters, Taken

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
STAT = """cpu  100 0 50 {idle} 7 0 0 {steal} 0 0
cpu0 25 0 12 {idle0} 2 0 0 1 0 0
cpu1 25 0 12 200 1 0 0 2 0 0
cpu2 25 0 13 300 4 0 0 3 0 0
intr 12345
"""
MS = 1_000_000
linux = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")


def written(folder: Path, idle: int = 1000, idle0: int = 400, steal: int = 6) -> Path:
    file = folder / "stat"
    file.write_text(STAT.format(idle=idle, idle0=idle0, steal=steal))
    return folder


@linux
def test_the_first_line_speaks_for_all_processors(tmp_path: Path) -> None:
    read = usage._linux_reader([], written(tmp_path), tmp_path)
    assert read() == Counters(os.cpu_count() or 1, 1007 * TICK_NS, 6 * TICK_NS)


@linux
def test_a_process_that_is_confined_counts_its_own_processors_alone(tmp_path: Path) -> None:
    read = usage._linux_reader([0, 2], written(tmp_path), tmp_path)
    assert read() == Counters(2, (402 + 304) * TICK_NS, (1 + 3) * TICK_NS)


@linux
def test_counters_are_read_anew_each_time(tmp_path: Path) -> None:
    read = usage._linux_reader([], written(tmp_path), tmp_path)
    before = read()
    written(tmp_path, idle=1010)
    assert read().free_ns == (before.free_ns or 0) + 10 * TICK_NS


@linux
def test_heat_is_counted_where_the_kernel_tells_of_it(tmp_path: Path) -> None:
    (tmp_path / "core_throttle_count").write_text("3\n")
    (tmp_path / "package_throttle_count").write_text("4\n")
    assert usage._linux_reader([], written(tmp_path), tmp_path)().throttled == 7


@linux
def test_a_machine_that_tells_nothing_disturbs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(usage, "PROC", tmp_path / "none")
    assert usage.counters_reader()() == UNKNOWN
    assert UNKNOWN.taken(UNKNOWN, 100, 100) == Taken(None, None, None, False)


@pytest.mark.parametrize(
    ("taken_ns", "processors", "disturbs"),
    [
        (1e9 * OF_ONE, 64, False),
        (1e9 * OF_ONE + 1, 64, True),
        (1e9 * OF_ALL, 1, False),
        (1e9 * OF_ALL + 1, 1, True),
        (0, 2, False),
    ],
)
def test_a_slice_is_disturbed_by_a_share_of_one_processor_or_of_all(
    taken_ns: float, processors: int, disturbs: bool
) -> None:
    assert usage.is_disturbed(int(taken_ns), 10**9, processors) is disturbs


def test_what_a_hypervisor_keeps_is_taken_by_others_too() -> None:
    began, ended = Counters(2, 0, 0), Counters(2, 50 * MS, 100 * MS)
    assert ended.taken(began, 100 * MS, 50 * MS) == Taken(0, 100 * MS, None, True)


def test_a_tick_of_the_kernel_s_clock_disturbs_no_short_slice() -> None:
    assert not usage.is_disturbed(10 * MS, 4 * MS, 4)
    assert usage.is_disturbed(13 * MS, 4 * MS, 4)


def test_nothing_is_taken_that_the_process_used_itself() -> None:
    assert Counters(2, 90, 0).taken(Counters(2, 0, 0), 100, 110) == Taken(0, 0, None, False)


@linux
@pytest.mark.processes
def test_helpers_are_found_and_their_processors_counted() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as child:
        try:
            until_s = time.monotonic() + 30
            while time.monotonic() < until_s:
                own = usage.child_processes(str(child.pid))
                if own and usage.cpu_ns_of(own) > 0:
                    break
            assert own
            assert set(own) < set(usage.child_processes())
            assert usage.cpu_ns_of(own) > 0
        finally:
            os.killpg(child.pid, 9)


def test_helpers_that_are_gone_have_used_nothing(tmp_path: Path) -> None:
    assert usage.cpu_ns_of([], tmp_path) == 0
    assert usage.cpu_ns_of(["1", "2"], tmp_path) == 0
