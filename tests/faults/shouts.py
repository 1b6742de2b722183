import sys

import base


def build(regime):
    for line in range(200_000):
        print("line", line)
        print("\x1b[31mred", line, file=sys.stderr)
    sys.stdout.buffer.write(b"\xff\xfe no text, no newline")
    return base.build(regime)


fine = base.scenario(build=build)
