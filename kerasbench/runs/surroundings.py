"""Whether one more child of a block fits into memory beside those that are there, and onto the card.

What surrounds a block: the machine's counters and the GPU's clocks while it runs, which GPU.
"""

import dataclasses
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol as Interface

from kerasbench.host import nvidia
from kerasbench.host.noise import State, Surroundings, cool_down, observe, of_surroundings, top_clock
from kerasbench.host.nvidia import Watched
from kerasbench.processes.outcome import Outcome, shown
from kerasbench.processes.process import available_bytes
from kerasbench.protocol.columns import CUDA, GPU, Device, cuda_visibility
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.record import TrialRecord
from kerasbench.runs.rows import processors

SHARE = 0.8  # of what was free before the first: children grow after they have started, and the system needs some


def fits(free_bytes: int, held_bytes: int, largest_bytes: int) -> bool:
    """Tell whether a child as large as the largest so far fits beside what the others hold (pure)."""
    return held_bytes + largest_bytes <= SHARE * free_bytes


@dataclass
class MemoryPool:
    """One kind of memory during a block: what was free before it, and what its children hold.

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
    """RunConfig before each further child of a block would be started: is there memory for it?"""

    def __init__(self, supplies: Sequence[MemoryPool], exclusive: Sequence[str] = ()) -> None:
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


def memory_room(devices: Sequence[Device], peaks_bytes: Sequence[int], on_card_bytes: Sequence[int]) -> Room:
    """Return what tells of a block on these devices whether one more fits, by the peaks that are known (0: not yet)."""
    supplies = [MemoryPool(available_bytes, peaks_bytes)]
    cards = [cuda_visibility(one)["CUDA_VISIBLE_DEVICES"] if one.platform == CUDA else "" for one in devices]
    for card in sorted(set(filter(None, cards))):
        supplies.append(MemoryPool(partial(nvidia.free_bytes, card), _on(card, devices, on_card_bytes)))
    exclusive = {card for card in set(filter(None, cards)) if nvidia.is_exclusive(card)}
    return Room(supplies, [card if card in exclusive else "" for card in cards])


def _on(card: str, devices: Sequence[Device], peaks_bytes: Sequence[int]) -> list[int | None]:
    """Return what each entrant takes of a card; None where it computes elsewhere."""
    return [
        peak if one.platform == CUDA and cuda_visibility(one)["CUDA_VISIBLE_DEVICES"] == card else None
        for one, peak in zip(devices, peaks_bytes, strict=True)
    ]


Outcomes = Sequence[Outcome | None]


class Watcher(Interface):
    """Runs one block on these devices when the machine is not hot, and says what went on around each of its columns."""

    def __call__(
        self, devices: Sequence[Device], block: Callable[[], Outcomes], on_wait: Callable[[str], None], /
    ) -> tuple[Outcomes, Sequence[Surroundings]]: ...


@dataclass(frozen=True)
class Watch:
    """By this machine's counters and NVIDIA's driver. Only a column on a card has the card's figures."""

    look: Callable[[float], State] = observe
    cool: Callable[[Callable[[str], None]], float] = cool_down

    def __call__(
        self, devices: Sequence[Device], block: Callable[[], Outcomes], on_wait: Callable[[str], None], /
    ) -> tuple[Outcomes, Sequence[Surroundings]]:
        waited_s = self.cool(on_wait)
        names = [_card_name(device) for device in devices]
        with ExitStack() as watching:
            cards = {name: watching.enter_context(nvidia.watch(name)) for name in dict.fromkeys(names) if name}
            before, cpu_s = self.look(0.0), _children_cpu_s()
            outcomes = block()
        left_cpu_s = sum(outcome.left_cpu_s for outcome in outcomes if outcome is not None)
        around = Surroundings(
            waited_s=waited_s,
            before=before,
            after=self.look(0.0),
            child_cpu_s=_children_cpu_s() - cpu_s + left_cpu_s,
            gpu=None,
            gpu_neighbours=[],
        )
        on = [cards[name] if name else None for name in names]
        judged = [
            outcome and on_card(outcome, device, card.uuid if card else "")
            for outcome, device, card in zip(outcomes, devices, on, strict=True)
        ]
        return judged, [_with_card(around, card) for card in on]


@dataclass
class Judge:
    """Says what disturbed a trial, by what was seen around it and in those before it."""

    _top_clocks_mhz: dict[str, int] = field(default_factory=dict)

    def __call__(self, trial: TrialRecord, seen: Surroundings) -> TrialRecord:
        signals = of_surroundings(seen, processors(), self._top_clock(trial.device, seen))
        return dataclasses.replace(trial, surroundings=seen, noise=signals)

    def _top_clock(self, device: Device, seen: Surroundings) -> int | None:
        """Return the highest SM clock that this run has seen on the card."""
        known = (self._top_clocks_mhz.get(device.label), top_clock(seen.gpu or []))
        highest = max((mhz for mhz in known if mhz is not None), default=None)
        if highest is not None:
            self._top_clocks_mhz[device.label] = highest
        return highest


def _card_name(device: Device) -> str:
    """Return how CUDA is told of a device's card, empty for one that is none of NVIDIA's."""
    return cuda_visibility(device)["CUDA_VISIBLE_DEVICES"] if device.platform == CUDA else ""


def _with_card(around: Surroundings, card: Watched | None) -> Surroundings:
    if card is None:
        return around
    return dataclasses.replace(around, gpu=card.samples, gpu_neighbours=card.neighbours, card=card.uuid)


def on_card(outcome: Outcome, device: Device, asked: str) -> Outcome:
    """Return a failure (wrong-device) in the place of a measurement on another NVIDIA card than the one asked for.

    ``asked`` is its UUID as NVML tells it, empty where it does not. What either side does not tell is not compared.
    """
    used = outcome.measurement.proof.cards if outcome.measurement else []
    own = asked.partition("-")[2].lower()  # without GPU- or MIG-, which CUDA does not say
    if not asked or not used or used == [own]:
        return outcome
    cause = f"asked for {device.label}, which is {asked}, but CUDA computed on {', '.join(used)}"
    remedy = f"CUDA_VISIBLE_DEVICES={asked} and --device {GPU} ask for that card by its name"
    failure = shown(Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))
    return dataclasses.replace(outcome, measurement=None, failure=failure)


def _children_cpu_s() -> float:
    """Return the processor time of all children that have ended, those that they reaped included, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
