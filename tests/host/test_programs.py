import os
import subprocess
import sys

import pytest

from kerasbench.host.programs import MOST_PROGRAMS, CpuTimes, busiest, cpu_times


def test_the_busiest_programs_are_named_by_what_they_used_in_between() -> None:
    before = CpuTimes(0.0, {(1, 0.0): ("chrome", 50.0), (2, 0.0): ("node", 0.0), (3, 0.0): ("sshd", 900.0)})
    after = CpuTimes(
        10.0,
        {
            (1, 0.0): ("chrome", 52.0),
            (2, 0.0): ("node", 9.0),
            (3, 0.0): ("sshd", 900.5),
            (1, 5.0): ("chrome", 8.0),  # the number of an ended process, again
        },
    )
    assert busiest(before, after) == ["chrome", "node"]
    many = CpuTimes(10.0, {(number, 0.0): (f"program {number}", 2.0 + number) for number in range(9)})
    assert busiest(CpuTimes(0.0, {}), many) == ["program 8", "program 7", "program 6"][:MOST_PROGRAMS]


@pytest.mark.processes
def test_this_process_and_its_children_are_none_of_the_others() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        pids = {pid for pid, _ in cpu_times().used_s}
        child.communicate(b"\n")
    assert pids.isdisjoint({os.getpid(), child.pid})
    assert os.getppid() in pids
