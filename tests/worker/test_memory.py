"""Memory of phases, which may lie in each other, by a counter that a test moves; and the system's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerasbench.worker import usage
from kerasbench.worker.memory import PhaseMemory


class Moved:
    def __init__(self, can_reset: bool = True) -> None:
        self.now = self.most = 10
        self.can_reset = can_reset

    def to(self, most: int, now: int) -> None:
        self.most, self.now = max(self.most, most), now

    def held(self) -> int:
        return self.now

    def peak(self) -> int:
        return self.most

    def reset(self) -> bool:
        self.most = self.now if self.can_reset else self.most
        return self.can_reset


def test_a_phase_has_its_own_peak_and_the_process_its_highest() -> None:
    counter = Moved()
    memory = PhaseMemory(counter)
    memory.begin()
    counter.to(90, 20)
    assert memory.end() == (90, 20, 90)
    memory.begin()
    counter.to(30, 25)
    assert memory.end() == (90, 25, 30)
    assert memory.so_far() == 90


def test_a_phase_that_holds_another_has_its_peaks_too() -> None:
    counter = Moved()
    memory = PhaseMemory(counter)
    memory.begin()
    counter.to(40, 20)
    memory.begin()
    counter.to(70, 30)
    assert memory.end() == (70, 30, 70)
    counter.to(35, 30)
    assert memory.end() == (70, 30, 70)


def test_what_cannot_be_reset_has_the_peak_of_the_process_alone() -> None:
    counter = Moved(can_reset=False)
    memory = PhaseMemory(counter)
    for held in (20, 30):
        memory.begin()
        counter.to(90, held)
        assert memory.end() == (90, held, None)


def test_a_counter_that_tells_nothing() -> None:
    class Silent:
        def held(self) -> None: ...
        def peak(self) -> None: ...
        def reset(self) -> bool:
            return False

    memory = PhaseMemory(Silent())
    memory.begin()
    assert (memory.end(), memory.so_far()) == ((None, None, None), None)


def test_linux_begins_its_peak_anew(tmp_path: Path) -> None:
    assert not usage.reset_peak_rss(tmp_path)  # as on another system
    if not usage.reset_peak_rss():
        pytest.skip("this system has no peak that can be reset")
    once: Any = np.ones(64 << 20, "uint8")
    assert usage.peak_rss_bytes() - usage.rss_bytes() < 32 << 20
    del once
    assert usage.peak_rss_bytes() - usage.rss_bytes() > 32 << 20
    assert usage.reset_peak_rss()
    assert usage.peak_rss_bytes() - usage.rss_bytes() < 32 << 20
