import os

import psutil
import pytest

from kerasbench.host.linux import Kills
from kerasbench.processes import process

NONE = Kills(None, None)


@pytest.mark.parametrize(
    ("before", "after", "left_share", "word"),
    [
        (Kills(0, 0), Kills(1, 1), 0.5, "control group"),
        (Kills(None, 3), Kills(None, 4), 0.5, "machine, whose"),
        (Kills(2, 3), Kills(2, 4), 0.5, "machine, whose"),
        (Kills(2, 3), Kills(2, 3), 0.5, ""),
        (NONE, NONE, 0.5, ""),
        (NONE, Kills(1, 1), 0.5, ""),  # it was not counted before
        (Kills(0, 0), Kills(0, 0), 0.012, "1.2% of the machine's memory was left just before"),
        (NONE, NONE, 0.05, ""),
    ],
)
def test_what_speaks_for_a_shortage_of_memory(before: Kills, after: Kills, left_share: float, word: str) -> None:
    found = process.shortage(before, after, left_share)
    assert word in found and bool(found) is bool(word)


def test_a_group_holds_what_its_processes_hold() -> None:
    assert process.group_bytes(os.getpgid(0)) >= psutil.Process().memory_info().rss / 2
    assert process.group_bytes(2**22 + 1) == 0  # beyond the highest process number of Linux


def test_a_watch_without_a_limit_is_never_exceeded() -> None:
    assert not process.MemoryWatch(os.getpgid(0), None).exceeds()


def test_a_watch_says_what_was_held_when_that_was_too_much() -> None:
    watch = process.MemoryWatch(os.getpgid(0), 1)
    assert watch.exceeds()
    assert watch.exceeded_bytes is not None and watch.exceeded_bytes > 1
