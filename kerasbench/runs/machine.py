"""The machine during a block: whether it has memory for one more child, and what goes on around the trials."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from kerasbench.host import nvidia, programs
from kerasbench.host.noise import MachineState, Surroundings, cool_down, observe, of_slices, of_surroundings, top_clock
from kerasbench.processes.outcome import Outcome, shown
from kerasbench.processes.process import available_bytes
from kerasbench.protocol.columns import CUDA, GPU, Device, cuda_visibility
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Trial

# Of a child whose peak is not known: of all but its parameters, and of each, with its gradient, moments and copies.
CHILD_BYTES, PARAMETER_BYTES = 5 << 28, 32  # 1.25 GiB: small models take 0.4 to 1.2
STARTS_PER_CORE = 2  # more would be no sooner, and each so slow that its time may run out
SHARE = 0.8  # of what was free before the first: children grow after they have started, and the system needs some


@dataclass
class MemoryPool:
    """One kind of memory during a block: that of the machine, or of one card. Members are numbered as in the block."""

    free: Callable[[], int | None]
    peaks_bytes: Sequence[int | None]  # what each member is known to take; 0: not run yet, None: nothing of this memory
    exclusive: bool = False  # a card for one process
    seen_bytes: dict[int, int] = field(default_factory=dict)  # what each held when the next one was to be started
    _held_bytes: int = 0
    _largest_bytes: int = 0

    def __post_init__(self) -> None:
        self._before_bytes = self.free()

    def fits(self, started: Sequence[int], member: int) -> bool:
        """What has not run yet counts as large as the largest so far; what has only just started, by its known peak."""
        needed_bytes = self.peaks_bytes[member]
        peaks_bytes = [peak for index in started if (peak := self.peaks_bytes[index]) is not None]
        fits = not (self.exclusive and peaks_bytes and needed_bytes is not None)
        free_bytes = self.free()
        if self._before_bytes is None or free_bytes is None:
            return fits
        held_bytes = max(0, self._before_bytes - free_bytes)
        last_bytes = held_bytes - self._held_bytes
        self.seen_bytes[started[-1]] = max(last_bytes, self.seen_bytes.get(started[-1], 0))  # asked again, it is 0
        self._held_bytes = held_bytes
        self._largest_bytes = max(self._largest_bytes, last_bytes, *peaks_bytes)
        if needed_bytes is None:
            return fits
        held_bytes = max(held_bytes, sum(peaks_bytes))
        return fits and held_bytes + (needed_bytes or self._largest_bytes) <= SHARE * self._before_bytes


class MemoryBudget:
    """The memory of a block's children, of which the first always fits."""

    def __init__(self, pools: Sequence[MemoryPool]) -> None:
        self.pools = pools  # the machine's, and one of each card
        self._started = [0]

    def reserve(self, member: int) -> bool:
        """Reserve memory for a child that is about to start; return False where it does not fit beside the others."""
        answers = [pool.fits(self._started, member) for pool in self.pools]  # each notes what is held
        if all(answers):
            self._started.append(member)
        return all(answers)


def starts_at_once(peaks_bytes: Sequence[int], parameters: int | None, cores: int) -> int:
    """Return how many children may start without a look at what those before take; the peaks are known, or 0."""
    guess_bytes = CHILD_BYTES + PARAMETER_BYTES * (parameters or 0)
    if all(peaks_bytes):
        return STARTS_PER_CORE * cores
    largest_bytes = max(peak or guess_bytes for peak in peaks_bytes)
    return max(1, min(STARTS_PER_CORE * cores, int(SHARE * available_bytes() // largest_bytes)))


def memory_budget(devices: Sequence[Device], peaks_bytes: Sequence[int], on_card_bytes: Sequence[int]) -> MemoryBudget:
    card_of = list(map(_card, devices))
    pools = [MemoryPool(available_bytes, peaks_bytes)]
    for card in sorted(set(filter(None, card_of))):
        peaks_on_card = [peak if on == card else None for on, peak in zip(card_of, on_card_bytes, strict=True)]
        pools.append(MemoryPool(partial(nvidia.free_bytes, card), peaks_on_card, nvidia.is_exclusive(card)))
    return MemoryBudget(pools)


Outcomes = Sequence[Outcome | None]


@dataclass
class MachineMonitor:
    look: Callable[[float], MachineState] = observe
    cool: Callable[[Callable[[str], None]], float] = cool_down
    look_at_programs: Callable[[], programs.CpuTimes] = programs.cpu_times
    _top_clocks_mhz: dict[str, int] = field(default_factory=dict)  # the highest that each card has shown

    def watch(
        self, devices: Sequence[Device], block: Callable[[], Outcomes], on_wait: Callable[[str], None]
    ) -> tuple[Outcomes, Sequence[Surroundings]]:
        """Run a block once the machine is not hot. Only a column on a card has the card's figures."""
        waited_s = self.cool(on_wait)
        names = list(map(_card, devices))
        with ExitStack() as watching:
            cards = {name: watching.enter_context(nvidia.watch(name)) for name in dict.fromkeys(names) if name}
            others_before, before = self.look_at_programs(), self.look(0.0)
            outcomes = block()
        after, busiest = self.look(0.0), programs.busiest(others_before, self.look_at_programs())
        checked: list[Outcome | None] = []
        readings: list[Surroundings] = []
        for outcome, device, name in zip(outcomes, devices, names, strict=True):
            card = cards.get(name) or nvidia.CardReading()
            checked.append(outcome and on_card(outcome, device, card.uuid))
            samples = card.samples if name else None
            readings.append(Surroundings(waited_s, before, after, samples, card.neighbours, card.uuid, busiest))
        return checked, readings

    def judge(self, trial: Trial, surroundings: Surroundings) -> Trial:
        card = trial.device.label
        clocks_mhz = (self._top_clocks_mhz.get(card), top_clock(surroundings.gpu or []))
        highest_mhz = max(filter(None, clocks_mhz), default=None)
        if highest_mhz is not None:
            self._top_clocks_mhz[card] = highest_mhz
        noise = of_surroundings(surroundings, highest_mhz)
        if trial.measurement is not None:
            noise = [*of_slices(trial.measurement.slices), *noise]
        return replace(trial, surroundings=surroundings, noise=noise)


def card_now(device: Device) -> tuple[str, list[int] | None]:
    """Return an NVIDIA card's UUID and the processes on it now; empty and None: not told, or it is no such card."""
    card = _card(device)
    return nvidia.uuid_and_processes(card) if card else ("", None)


def _card(device: Device) -> str:
    return cuda_visibility(device)["CUDA_VISIBLE_DEVICES"] if device.platform == CUDA else ""


def on_card(outcome: Outcome, device: Device, uuid: str) -> Outcome:
    """Return a failure (wrong-device) if it is not the card of this UUID. What a side does not tell is not compared."""
    used = outcome.measurement.proof.cards if outcome.measurement else []
    if not uuid or not used or used == [uuid.partition("-")[2].lower()]:  # CUDA does not say GPU- or MIG-
        return outcome
    cause = f"asked for {device.label}, which is {uuid}, but CUDA computed on {', '.join(used)}"
    remedy = f"set CUDA_VISIBLE_DEVICES={uuid} and add --device {GPU}"
    failure = shown(Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))
    return replace(outcome, measurement=None, failure=failure)
