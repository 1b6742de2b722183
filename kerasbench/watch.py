"""What surrounds a trial: the gate before it, the machine's counters and the GPU's clocks while it runs."""

import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kerasbench.devices import Device, cuda_visibility
from kerasbench.gate import Gate
from kerasbench.machine import nvidia
from kerasbench.machine.nvidia import Sample
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
        card = cuda_visibility(device)["CUDA_VISIBLE_DEVICES"] if device.platform == CUDA else None
        neighbours = (nvidia.compute_apps(card) or []) if card else []
        before, cpu_s = self.look(0.0), _children_cpu_s()  # after the canary, which is no neighbour
        with _gpu_samples(card) as samples:
            outcome = trial()
        return outcome, Surroundings(
            waited_s=passage.waited_s,
            refused=passage.refused,
            canary_ns=passage.canary_ns,
            before=before,
            after=self.look(0.0),
            child_cpu_s=_children_cpu_s() - cpu_s + outcome.left_cpu_s,
            gpu=samples if card else None,
            gpu_neighbours=neighbours,
        )


def _children_cpu_s() -> float:
    """Return the processor time of all children that have ended, those that they reaped included, in s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _gpu_samples(card: str | None) -> Iterator[list[Sample]]:
    """Have the driver's own tool write a line a second meanwhile; the list is filled at the end."""
    samples: list[Sample] = []
    if card is None:
        yield samples
        return
    with tempfile.TemporaryFile() as lines:
        process = None
        with suppress(OSError):  # no nvidia-smi: nothing is known, and nothing is said
            process = subprocess.Popen(nvidia.watch_command(card), stdout=lines, stderr=subprocess.DEVNULL)
        try:
            yield samples
        finally:
            if process is not None:
                process.kill()
                process.wait()
        lines.seek(0)
        samples += nvidia.parse_samples(lines.read().decode("utf-8", "replace"))
