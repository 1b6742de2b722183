"""The parent's side of the guardian: start it, tell it what to kill when the parent is gone."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kerasbench.children.group import MARK

GUARDIAN = Path(__file__).with_name("guardian.py")


@contextmanager
def guarded(python: str = sys.executable) -> Iterator[Callable[[str], None]]:
    """Have a guardian stand by meanwhile, and return what tells it a line (guardian.py says which).

    It is there when this goes on: nothing that is measured pays for its start.

    Raises:
        OSError: it cannot be started, or ends at once.
    """
    command = [python, "-I", "-S", str(GUARDIAN), MARK]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # a line that reaches nobody is lost, not kept for the end
        start_new_session=True,  # it outlives what ends its parent's
    ) as guardian:
        stdin, stdout = guardian.stdin, guardian.stdout
        assert stdin is not None and stdout is not None
        if not stdout.readline():
            raise OSError("the guardian process ended at once")

        def tell(line: str) -> None:
            with suppress(BrokenPipeError):  # somebody has killed it
                stdin.write(line.encode() + b"\n")

        yield tell
