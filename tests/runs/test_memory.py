import sys
from collections.abc import Callable

import psutil
import pytest

from kerasbench.host import linux
from kerasbench.protocol.columns import Device
from kerasbench.runs import surroundings
from tests import made
from tests.nvml import ONE, TWO, FakeCard, Nvml

GIB = 1 << 30
CUDA = Device("cuda", 0, "NVIDIA H200")


def falling(*free_gib: float) -> Callable[[], int]:
    """What is free at each look."""
    left = list(free_gib)
    return lambda: int(left.pop(0) * GIB)


@pytest.mark.parametrize(
    ("held", "largest", "fit"), [(0, 8, True), (4, 4, True), (4, 4.1, False), (7, 1, True), (0, 8.1, False)]
)
def test_what_fits_is_four_fifths_of_what_was_free(held: float, largest: float, fit: bool) -> None:
    assert surroundings.fits(10 * GIB, int(held * GIB), int(largest * GIB)) is fit


def test_the_next_child_is_taken_to_be_as_large_as_the_largest_that_is_there() -> None:
    room = surroundings.Room(
        [surroundings.MemoryPool(falling(10, 7, 6, 5), [0] * 4)]
    )  # the first holds three, the others one each
    assert [room() for _ in range(3)] == [True, True, True]
    room = surroundings.Room([surroundings.MemoryPool(falling(10, 7, 4), [0] * 3)])
    assert [room() for _ in range(2)] == [True, False]


def test_children_that_hold_nothing_yet_are_counted_by_what_is_known_of_them() -> None:
    room = surroundings.Room([surroundings.MemoryPool(lambda: 10 * GIB, [3 * GIB, 4 * GIB, 2 * GIB])])
    assert [room() for _ in range(2)] == [True, False]


def test_what_did_not_fit_leaves_its_room_to_those_after_it() -> None:
    room = surroundings.Room([surroundings.MemoryPool(lambda: 10 * GIB, [peak * GIB for peak in (3, 9, 2, 3, 1)])])
    assert [room() for _ in range(4)] == [False, True, True, False]


def test_what_each_child_was_seen_to_take_of_a_card_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    card = FakeCard(ONE, free_bytes=10 * GIB)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([card]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    room = surroundings.memory_room([CUDA, made.CPU, CUDA, CUDA], [GIB] * 4, [0] * 4)
    for free_gib in (8, 8, 5):
        card.free_bytes = free_gib * GIB
        room()
    assert room.seen_on_cards() == {0: 2 * GIB, 1: 0, 2: 3 * GIB}


def test_a_card_for_one_process_has_one_column_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [FakeCard(ONE, free_bytes=10 * GIB, mode=3), FakeCard(TWO, free_bytes=10 * GIB)]
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(cards))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    other = Device("cuda", 1)
    room = surroundings.memory_room([CUDA, CUDA, other, made.CPU, other], [0] * 5, [0] * 5)
    assert [room() for _ in range(4)] == [False, True, True, True]


def test_where_nobody_tells_everything_fits() -> None:
    assert surroundings.Room([surroundings.MemoryPool(lambda: None, [GIB] * 2)])()


def test_memory_and_each_card_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    card = FakeCard(ONE, free_bytes=10 * GIB)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml([card]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(linux, "memory_left", lambda: None)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 100 * GIB}))
    room = surroundings.memory_room([made.CPU, CUDA, CUDA], [GIB] * 3, [0, 5 * GIB, 5 * GIB])
    assert (room(), room()) == (True, False)
    assert surroundings.memory_room([CUDA, made.CPU], [GIB] * 2, [5 * GIB, 0])()  # which takes nothing of the card
    room = surroundings.memory_room([made.CPU, made.CPU], [60 * GIB] * 2, [0, 0])
    assert not room()
    monkeypatch.setattr(linux, "memory_left", lambda: 10 * GIB)  # a container's
    assert not surroundings.memory_room([made.CPU, made.CPU], [5 * GIB] * 2, [0, 0])()
    assert surroundings.memory_room([made.CPU, made.CPU], [4 * GIB] * 2, [0, 0])()
