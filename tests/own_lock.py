"""kerasbench as a user starts it, with a lock of its own: whole commands of tests may run side by side.

``python -P tests/own_lock.py LOCK ARGUMENT…`` is ``python -m kerasbench ARGUMENT…`` that takes the file LOCK for the
machine's lock.
"""

import os
import sys
from pathlib import Path


def command(folder: Path, *arguments: str) -> list[str]:
    """Return the command line; the lock is a file beside ``folder``, so that it is none of its results."""
    return [sys.executable, "-P", os.path.abspath(__file__), f"{folder}.lock", *arguments]


if __name__ == "__main__":
    from kerasbench import __main__ as program
    from kerasbench.machine import lock

    lock.LOCK = Path(sys.argv.pop(1))
    sys.exit(program.main())
