"""Several children at once, before anything is measured: probing backends, describing scenarios."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")
Tick = Callable[[], None]
WAKE_S = 0.05  # nothing is being measured yet


class GivenUp(Exception):
    """The others have failed or were interrupted: nobody waits for this one any more."""


def together(work: Callable[[Item, Tick], Found], items: Sequence[Item], at_once: int) -> list[Found]:
    """Do the work for every item, each in a thread, and return what was found in the order of the items.

    ``work`` gets a function that it calls again and again, as ``process.run`` does. When one fails, or Ctrl-C comes,
    that function raises, which stops the others' children.
    """
    given_up = threading.Event()

    def tick() -> None:
        if given_up.is_set():
            raise GivenUp

    with ThreadPoolExecutor(at_once) as pool:
        try:
            running = [pool.submit(work, item, tick) for item in items]  # Ctrl-C may come here too
            waiting: set[Future[Found]] = set(running)
            while waiting:
                # Not for ever: a signal that comes just before a thread begins to wait is not heeded until it wakes.
                done, waiting = wait(waiting, timeout=WAKE_S, return_when=FIRST_EXCEPTION)
                for one in done:
                    one.result()
            return [one.result() for one in running]
        except BaseException:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
