"""Children without coverage, where it costs too much or would hang."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def untraced() -> Iterator[None]:
    """Have the children that are started meanwhile leave coverage out.

    It doubles the time of a training. And it hangs a process that leaves by os._exit in a signal's handler, or is
    interrupted, while coverage holds its own lock (coverage 7.17's Collector.lock_data).
    """
    kept = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("COVERAGE_PROCESS_")}
    try:
        yield
    finally:
        os.environ.update(kept)
