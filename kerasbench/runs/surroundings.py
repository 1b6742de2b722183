"""What surrounds a bout: the gate before it, the machine's counters and the GPU's clocks while it runs, which GPU."""

import dataclasses
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol as Interface

from kerasbench.children.deaths import shown
from kerasbench.children.trial import Outcome
from kerasbench.exchange.devices import CUDA, GPU, Device, cuda_visibility
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Code, Failure
from kerasbench.machine import nvidia
from kerasbench.machine.nvidia import Watched
from kerasbench.machine.state import State, observe
from kerasbench.quiet.gate import Gate
from kerasbench.quiet.signals import Surroundings, of_measurement, of_surroundings, top_clock
from kerasbench.results.record import TrialRecord
from kerasbench.runs.begun import processors

Outcomes = Sequence[Outcome | None]


class Watcher(Interface):
    """Runs one bout on these devices when the machine is quiet, and says what went on around each of its columns."""

    def __call__(
        self, devices: Sequence[Device], bout: Callable[[], Outcomes], on_wait: Callable[[str], None], /
    ) -> tuple[Outcomes, Sequence[Surroundings]]: ...


@dataclass(frozen=True)
class Watch:
    """By the gate, this machine's counters and NVIDIA's driver. Only a column on a card has the card's figures."""

    gate: Gate
    look: Callable[[float], State] = observe

    def __call__(
        self, devices: Sequence[Device], bout: Callable[[], Outcomes], on_wait: Callable[[str], None], /
    ) -> tuple[Outcomes, Sequence[Surroundings]]:
        passage = self.gate.wait(on_wait)
        names = [_card_name(device) for device in devices]
        with ExitStack() as watching:
            cards = {name: watching.enter_context(nvidia.watch(name)) for name in dict.fromkeys(names) if name}
            before, cpu_s = self.look(0.0), _children_cpu_s()  # after the canary, which is no neighbour
            outcomes = bout()
        left_cpu_s = sum(outcome.left_cpu_s for outcome in outcomes if outcome is not None)
        around = Surroundings(
            waited_s=passage.waited_s,
            refused=passage.refused,
            canary_ns=passage.canary_ns,
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

    def __call__(self, trial: TrialRecord, seen: Surroundings, earlier: Sequence[Measurement]) -> TrialRecord:
        signals = of_surroundings(seen, processors(), self._top_clock(trial.device, seen))
        if trial.measurement is not None:
            signals += of_measurement(trial.measurement, earlier)
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
