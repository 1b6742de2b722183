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
    this memory: children that have only just been started hold nothing to be seen. ``seen_bytes`` is by how much less
    was free after an entrant had been started; not of the last one, after which nobody asks.
    """

    free: Callable[[], int | None]
    peaks_bytes: Sequence[int | None]
    seen_bytes: dict[int, int] = field(default_factory=dict)
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
        self.seen_bytes[started[-1]] = held_bytes - self._held_bytes
        self._largest_bytes = max(self._largest_bytes, held_bytes - self._held_bytes, *peaks_bytes)
        self._held_bytes = held_bytes
        held_bytes = max(held_bytes, sum(peaks_bytes))
        known_bytes = self.peaks_bytes[asked]
        return known_bytes is None or fits(self._before_bytes, held_bytes, known_bytes or self._largest_bytes)


class Room:
    """Asked before each further child of a bout would be started: is there memory for it?"""

    def __init__(self, supplies: Sequence[Supply], exclusive: Sequence[str] = ()) -> None:
        """``exclusive`` has for each entrant the card that it needs for itself; empty where it needs none."""
        self._supplies = supplies
        self._exclusive = exclusive
        self._started, self._asked = [0], 0

    def __call__(self) -> bool:
        self._asked += 1
        # Each of them, to see what is held.
        looks = [one.has_room(self._started, self._asked) for one in self._supplies]
        has_room = all(looks) and not self._is_taken()
        self._started += [self._asked] if has_room else []
        return has_room

    def _is_taken(self) -> bool:
        """Tell whether the card that the next one needs for itself is another's."""
        card = self._exclusive[self._asked] if self._exclusive else ""
        return bool(card) and any(self._exclusive[index] == card for index in self._started)

    def seen_on_cards(self) -> dict[int, int]:
        """Return what entrants were seen to hold of their card, by their number."""
        found: dict[int, int] = {}
        for supply in self._supplies[1:]:
            for index, seen in supply.seen_bytes.items():
                found[index] = max(found.get(index, 0), seen)
        return found


def room(devices: Sequence[Device], peaks_bytes: Sequence[int], on_card_bytes: Sequence[int]) -> Room:
    """Return what tells of a bout on these devices whether one more fits, by the peaks that are known (0: not yet)."""
    supplies = [Supply(available_bytes, peaks_bytes)]
    cards = [cuda_visibility(one)["CUDA_VISIBLE_DEVICES"] if one.platform == CUDA else "" for one in devices]
    for card in sorted(set(filter(None, cards))):
        supplies.append(Supply(partial(nvidia.free_bytes, card), _on(card, devices, on_card_bytes)))
    exclusive = {card for card in set(filter(None, cards)) if nvidia.is_exclusive(card)}
    return Room(supplies, [card if card in exclusive else "" for card in cards])


def _on(card: str, devices: Sequence[Device], peaks_bytes: Sequence[int]) -> list[int | None]:
    """Return what each entrant takes of a card; None where it computes elsewhere."""
    return [
        peak if one.platform == CUDA and cuda_visibility(one)["CUDA_VISIBLE_DEVICES"] == card else None
        for one, peak in zip(devices, peaks_bytes, strict=True)
    ]
