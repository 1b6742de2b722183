"""What surrounds a trial, on this machine, with children that are small scripts."""

import os
import resource
import sys
from pathlib import Path

import pytest

from kerasbench import child
from kerasbench.gate import Gate
from kerasbench.trial import Outcome
from kerasbench.watch import Watch
from tests import made

# A child that uses a processor, and a grandchild that does so too and is killed with it.
BUSY = """
import os, sys, time
def be_busy():
    while time.process_time() < 0.3: pass
fd = int(sys.argv[1])
said, saying = os.pipe()
if os.fork() == 0:
    be_busy()
    os.write(saying, b'.')
    while True: time.sleep(60)
be_busy()
os.read(said, 1)
os._exit(0)
"""


def test_a_child_s_processor_time_is_that_of_all_that_it_started(tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    usual: list[float] = []

    def trial() -> Outcome:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = child.run(sys.executable, os.environ, b"", 60, lambda line: True, worker=script)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        usual.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return Outcome([], ended.wall_ns, left_cpu_s=ended.left_cpu_s)

    watch = Watch(Gate(canary=lambda: made.MS, look=made.state), look=lambda sample_s: made.state())
    outcome, seen = watch(made.CPU, trial, lambda reason: None)
    assert outcome.left_cpu_s >= 0.29 and usual[0] >= 0.29
    assert seen.child_cpu_s == pytest.approx(usual[0] + outcome.left_cpu_s)
