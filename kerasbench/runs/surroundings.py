"""What surrounds a trial: the gate before it, the machine's counters and the GPU's clocks while it runs, which GPU."""

import dataclasses
import resource
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from kerasbench.children.deaths import shown
from kerasbench.children.trial import Outcome
from kerasbench.exchange.devices import CUDA, GPU, Device, cuda_visibility
from kerasbench.exchange.messages import Code, Failure
from kerasbench.machine import nvidia
from kerasbench.machine.state import State, observe
from kerasbench.quiet.gate import Gate
from kerasbench.quiet.signals import Surroundings


@dataclass(frozen=True)
class Watch:
    """Run one trial when the machine is quiet, and say what went on around it."""

    gate: Gate
    look: Callable[[float], State] = observe

    def __call__(
        self, device: Device, trial: Callable[[], Outcome], on_wait: Callable[[str], None]
    ) -> tuple[Outcome, Surroundings]:
        passage = self.gate.wait(on_wait)
        with (
            nvidia.watch(cuda_visibility(device)["CUDA_VISIBLE_DEVICES"])
            if device.platform == CUDA
            else nullcontext() as gpu
        ):
            before, cpu_s = self.look(0.0), _children_cpu_s()  # after the canary, which is no neighbour
            outcome = trial()
        return on_card(outcome, device, gpu.uuid if gpu else ""), Surroundings(
            waited_s=passage.waited_s,
            refused=passage.refused,
            canary_ns=passage.canary_ns,
            before=before,
            after=self.look(0.0),
            child_cpu_s=_children_cpu_s() - cpu_s + outcome.left_cpu_s,
            gpu=gpu.samples if gpu else None,
            gpu_neighbours=gpu.neighbours if gpu else [],
            card=gpu.uuid if gpu else "",
        )


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
