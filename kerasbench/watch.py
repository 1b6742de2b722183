"""What surrounds a trial: the gate before it, the machine's counters and the GPU's clocks while it runs."""

import resource
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from kerasbench.devices import Device, cuda_visibility
from kerasbench.gate import Gate
from kerasbench.machine import nvidia
from kerasbench.machine.state import State, observe
from kerasbench.noise import Surroundings
from kerasbench.trial import Outcome

CUDA = "cuda"


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
        return outcome, Surroundings(
            waited_s=passage.waited_s,
            refused=passage.refused,
            canary_ns=passage.canary_ns,
            before=before,
            after=self.look(0.0),
            child_cpu_s=_children_cpu_s() - cpu_s,
            gpu=gpu.samples if gpu else None,
            gpu_neighbours=gpu.neighbours if gpu else [],
        )


def _children_cpu_s() -> float:
    """Return the processor time of all children that have ended, those that they reaped included, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
