import sys

import base

LINES = 1_000_000


def build(workload):
    sys.stdout.write("a line\n" * LINES)
    sys.stderr.write("\x1b[31ma red line\n" * LINES)
    sys.stdout.buffer.write(b"\xff\xfe no text, no newline")
    return base.build(workload)


fine = base.scenario(build=build)
