"""Whether one more child of a bout fits into memory beside those that are there, and onto the card."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from kerasbench.children.memory import available_bytes
from kerasbench.exchange.devices import CUDA, Device, cuda_visibility
from kerasbench.machine import nvidia

SHARE = 0.8  # of what was free before the first: children grow after they have started, and the system needs some


def fits(free_bytes: int, held_bytes: int, largest_bytes: int) -> bool:
    """Tell whether a child as large as the largest so far fits beside what the others hold (pure)."""
    return held_bytes + largest_bytes <= SHARE * free_bytes


@dataclass
class Supply:
    """One kind of memory during a bout: what was free before it, and what its children hold.

    ``peaks_bytes`` are what each entrant is known to take, 0 where it has not run yet, None where it takes nothing of
    this memory: children that have only just been started hold nothing to be seen.
    """

    free: Callable[[], int | None]
    peaks_bytes: Sequence[int | None]
    _before_bytes: int | None = field(init=False)
    _held_bytes: int = 0
    _largest_bytes: int = 0

    def __post_init__(self) -> None:
        self._before_bytes = self.free()

    def has_room(self, started: Sequence[int], asked: int) -> bool:
        """Tell whether another entrant fits beside those that were started; look at what the last of them holds now."""
        left_bytes = self.free()
        if self._before_bytes is None or left_bytes is None:
            return True
        held_bytes = max(0, self._before_bytes - left_bytes)
        peaks_bytes = [self.peaks_bytes[index] or 0 for index in started]
        self._largest_bytes = max(self._largest_bytes, held_bytes - self._held_bytes, *peaks_bytes)
        self._held_bytes = held_bytes
        held_bytes = max(held_bytes, sum(peaks_bytes))
        known_bytes = self.peaks_bytes[asked]
        return known_bytes is None or fits(self._before_bytes, held_bytes, known_bytes or self._largest_bytes)


class Room:
    """Asked before each further child of a bout would be started: is there memory for it?"""

    def __init__(self, supplies: Sequence[Supply]) -> None:
        self._supplies = supplies
        self._started, self._asked = [0], 0

    def __call__(self) -> bool:
        self._asked += 1
        # Each of them, to see what is held.
        looks = [one.has_room(self._started, self._asked) for one in self._supplies]
        self._started += [self._asked] if all(looks) else []
        return all(looks)


def room(devices: Sequence[Device], peaks_bytes: Sequence[int], on_card_bytes: Sequence[int]) -> Room:
    """Return what tells of a bout on these devices whether one more fits, by the peaks that are known (0: not yet)."""
    supplies = [Supply(available_bytes, peaks_bytes)]
    for card in {cuda_visibility(one)["CUDA_VISIBLE_DEVICES"] for one in devices if one.platform == CUDA}:
        supplies.append(Supply(partial(nvidia.free_bytes, card), _on(card, devices, on_card_bytes)))
    return Room(supplies)


def _on(card: str, devices: Sequence[Device], peaks_bytes: Sequence[int]) -> list[int | None]:
    """Return what each entrant takes of a card; None where it computes elsewhere."""
    return [
        peak if one.platform == CUDA and cuda_visibility(one)["CUDA_VISIBLE_DEVICES"] == card else None
        for one, peak in zip(devices, peaks_bytes, strict=True)
    ]
