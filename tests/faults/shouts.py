"""Fills its pipes, and takes its process away from under kerasbench: no harm may come of it."""

import os
import signal
import sys

import base

LINES = 100_000


def build(workload):
    sys.stdout.write("a line\n" * LINES)
    sys.stderr.write("\x1b[31ma red line\n" * LINES)
    sys.stdout.buffer.write(b"\xff\xfe no text, no newline")
    os.chdir("/")
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return base.build(workload)


fine = base.scenario(build=build)
