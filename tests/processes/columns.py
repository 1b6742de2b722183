"""Columns that are small scripts: each is an interpreter of its own, which runs nothing but that."""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kerasbench.processes import block
from kerasbench.processes.block import BlockMember, BlockPolicy
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Code, Failure, Message
from kerasbench.protocol.requests import Sizes, TrialPlan, TrialRequest
from tests import made

CYCLES = 2
# What a script has: what it says, the turn that it is given, a stage as it should be, a log of its own.
HEAD = f"""#!{sys.executable} -IS
import json, os, signal, sys, time
fd, token = int(sys.argv[2]), sys.stdin.readline().partition(" ")[0]
def say(*others, **message):  # in one write, for after some of these it is stopped
    os.write(fd, "".join(token + " " + json.dumps(said) + "\\n" for said in (*others, message)).encode())
def turn(): return json.loads(sys.stdin.readline())
def log(line):
    with open(sys.argv[0] + ".log", "a") as file: print(line, file=file)
def slices(stage, ns=1000):
    say(ready=stage)
    while "cycle" in (given := turn() or ()):
        log(" ".join([stage, str(given["cycle"]), str(given["position"]), *["led in"] * bool(given["lead_ns"])]))
        say(slice=dict(count=1, ns=ns, cycle=given["cycle"]))
    return given
def pilot(ns): log("sized " + str(slices("pilot", ns)["learn_steps"]))
def hang():
    while True: time.sleep(60)
ANSWER = {json.loads(Message(measurement=made.measurement()).encode())!r}
def answer(): say(**ANSWER)
log(os.getpid())
"""
FINE = "slices('train')\nslices('epoch')\nanswer()"


class Columns(BlockPolicy):
    """A block's columns, by rules that can be changed; ``stages`` are the slices each time ``enough`` was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[block.BlockEvent] = []  # of trials and phases
        self.cycles: list[tuple[str, dict[str, int], bool]] = []  # how many slices each column has had
        self.on_phase: Callable[[int, str], None] = lambda index, name: None  # "began" is the first
        self.on_tick: Callable[[], None] = lambda: None
        self.stages: list[tuple[str, list[int]]] = []
        self.drawn: list[int] = []
        self.fits: Callable[[], bool] = lambda: True
        self.on_cycle: Callable[[], None] = lambda: None
        self.pilots = 1  # steps, before a row's sizes are known
        self.steps_ns: list[dict[int, list[int]]] = []  # each time that the sizes were asked for
        self.limits = Limits(900.0, "900 s")
        self.rest_s = 0.0
        self.leaving: dict[str, dict[int, Failure | None]] = {}  # after a cycle of a stage
        self.devices: dict[int, Device] = {}  # of those that are not on the CPU

    def measure(self, *bodies: str, at_once: int = 1) -> list[Outcome | None]:
        """Measure a block of these scripts; a name with a slash is an interpreter itself."""
        return block.measure(list(map(self._member, range(len(bodies)), bodies)), self, self._note, at_once, {})

    def failures(self, *bodies: str, at_once: int = 1) -> list[Failure | None]:
        """Return why each of them has no number, None for one that has; all were started."""
        outcomes = [outcome for outcome in self.measure(*bodies, at_once=at_once) if outcome is not None]
        assert len(outcomes) == len(bodies)
        assert all((outcome.measurement is None) is not (outcome.failure is None) for outcome in outcomes)
        return [outcome.failure for outcome in outcomes]

    def codes(self, *bodies: str, at_once: int = 1) -> list[Code | None]:
        return [failure.code if failure else None for failure in self.failures(*bodies, at_once=at_once)]

    def log(self, index: int) -> list[str]:
        """Return a column's process and the turns that it has had: stage, cycle, position."""
        return (self.folder / f"python-{index}.log").read_text().splitlines()

    def number(self, index: int) -> int:
        return int(self.log(index)[0])

    def _note(self, event: block.BlockEvent) -> None:
        match event:
            case block.Tick():
                self.on_tick()
            case block.CycleEnded(stage, slices, is_last):
                self.cycles.append((stage, {label: len(of_column) for label, of_column in slices.items()}, is_last))
            case _:
                self.events.append(event)
                phase = "began" if isinstance(event, block.TrialStarted) else event.phase
                if isinstance(phase, str) and not isinstance(phase, block.TrialState):
                    self.on_phase(int(event.label), phase)

    def _member(self, index: int, body: str) -> BlockMember:
        python = self.folder / f"python-{index}"
        python.write_text(HEAD + body)
        python.chmod(0o755)
        device = self.devices.get(index, made.CPU)
        request = TrialRequest("mine", "/mine.py", "hash", "default", "jax", device, 0, "synthetic", TrialPlan())
        return BlockMember(body if body.startswith("/") else str(python), request, self.limits, str(index))

    def orders(self, columns: int) -> Iterator[Sequence[int]]:
        """Each cycle begins with another column than the one before."""
        self.drawn.append(columns)
        for first in itertools.count():
            yield [(first + place) % columns for place in range(columns)]

    def sizes(self, steps_ns: Mapping[int, Sequence[int]]) -> Sizes | None:
        self.steps_ns.append({index: list(of_column) for index, of_column in steps_ns.items()})
        return made.SIZES if min(map(len, steps_ns.values())) >= self.pilots else None

    def reserve(self, member: int) -> bool:
        return self.fits()

    def leaves(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> Mapping[int, Failure | None]:
        assert slices  # there is nobody to ask about
        return self.leaving.get(stage, {})

    def enough(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> bool:
        self.on_cycle()
        counts = [len(column) for column in slices.values()]
        self.stages.append((stage, counts))
        return counts[0] >= CYCLES


class Clock:
    """Stands for the module ``time``: its clock leaps when a test says so, and no child has to be waited for."""

    monotonic = staticmethod(time.monotonic)
    _leapt_ns = 0

    def monotonic_ns(self) -> int:
        return time.monotonic_ns() + self._leapt_ns

    def leap(self, by_ns: int = 10**12) -> None:
        self._leapt_ns += by_ns
