"""One block: a child for each column of a row, all alive together, of which one runs at a time, in turns."""

import errno
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from functools import partial

from kerasbench.files import scratch_folder
from kerasbench.processes import group
from kerasbench.processes.outcome import Outcome, ReceivedMessages, not_started, outcome_of
from kerasbench.processes.process import Child, Limits, Listener
from kerasbench.processes.variables import task_of
from kerasbench.protocol.columns import CPU, CUDA_FAMILY, GPU
from kerasbench.protocol.measurement import Samples, Slice, Turn, encode_turn
from kerasbench.protocol.messages import COMPILES, Failure, Message, Phase
from kerasbench.protocol.requests import Sizes, TrialRequest
from kerasbench.protocol.stages import PARTS, PILOT, STAGES


@dataclass(frozen=True)
class BlockMember:
    python: str
    request: TrialRequest
    limits: Limits
    label: str = ""  # in events


class BlockPolicy:
    """What is decided while a block runs. Columns are told by their place among its members.

    As it stands, each stage has one cycle.
    """

    rest_s = 0.0  # nobody runs for so long before each turn

    def reserve(self, member: int) -> bool:
        """Reserve memory for one more child; return False where there is too little."""
        return True

    def sizes(self, steps_ns: Mapping[int, Sequence[int]]) -> Sizes | None:
        """Return how much columns do, by their first steps; None: one more step of each would show more."""
        raise NotImplementedError

    def orders(self, columns: int) -> Iterator[Sequence[int]]:
        """Yield the order of so many columns in each cycle."""
        return itertools.repeat(range(columns))

    def enough(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> bool:
        """Tell whether a stage can end."""
        return True

    def leaves(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> Mapping[int, Failure | None]:
        """Return who leaves after a cycle: by a failure at once, else to answer with what it has measured."""
        return {}


@dataclass(frozen=True)
class TrialStarted:
    label: str


@dataclass(frozen=True)
class PhaseStarted:
    label: str
    phase: str


@dataclass(frozen=True)
class PhaseEnded:
    label: str
    phase: Phase


class TrialState(StrEnum):  # phases that the parent alone knows: the child says nothing now
    READY = "ready"  # for the first slice of a stage
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class CycleEnded:
    """Each column has measured one more slice of a stage. Nobody runs until this has been taken in."""

    stage: str
    slices: Mapping[str, Sequence[Slice]]  # of this stage so far, by label
    is_last: bool


@dataclass(frozen=True)
class Tick:
    """A display may be redrawn now."""


BlockEvent = TrialStarted | PhaseStarted | PhaseEnded | CycleEnded | Tick
OnBlockEvent = Callable[[BlockEvent], None]


def measure(
    members: Sequence[BlockMember], policy: BlockPolicy, on_event: OnBlockEvent, at_once: int, kept: Mapping[str, str]
) -> list[Outcome | None]:
    """Measure columns side by side. None: others have taken the memory. ``at_once``: so many start while others do."""
    with ExitStack() as stack:
        try:
            guard = stack.enter_context(group.guarded())
        except OSError as error:  # without a guardian, no child is started
            return [Outcome([], 0, failure=not_started(error, member.python)) for member in members]
        block = _Block(policy, on_event, kept, stack, guard, at_once)
        block.start(members)
        block.run_pilot()
        for stage in STAGES:
            block.run_stage(stage)
        started_alone = all(map(block.runs_alone, block.columns)) or len(block.columns) == 1
        outcomes = {column.index: column.outcome(started_alone) for column in block.columns}
    return [outcomes.get(index) for index in range(len(members))]


LEAD_IN_NS = 500_000_000  # a GPU that idled through the turns of others is back at its clocks after about so long
_ORDER = (PILOT, *STAGES)
# A child that cannot be started for want of these may be when the others of its block have ended.
_SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class _State(Enum):
    SETTING_UP = "runs up to its next ready, or to its end"
    WAITING = "is parked (stopped, with its process group) until its next turn, or until its stage is over"
    MEASURING = "has its turn"


@dataclass
class _Column:
    index: int  # its place among the members
    member: BlockMember
    on_phase: Callable[["_Column", str | Phase], None]
    state: _State = _State.SETTING_UP
    stage: str = ""  # the one that it was last ready for
    by_stage: dict[str, list[Slice]] = field(default_factory=dict)
    child: Child | None = None
    failure: Failure | None = None
    had_turn: bool = False
    reported_state: TrialState | None = None

    def __post_init__(self) -> None:
        self.received = ReceivedMessages(partial(self.on_phase, self), self.take_turn_message)

    def take(self, line: bytes) -> bool:
        return self.state is not _State.WAITING and self.received.take(line)  # one that waits says nothing

    def take_turn_message(self, message: Message) -> bool:
        """Note that a stage or a slice is ready, and park the child; return False if that could not come now."""
        if message.ready is not None:
            later = _ORDER[_ORDER.index(self.stage) + 1 :] if self.stage else _ORDER
            if self.state is not _State.SETTING_UP or message.ready not in later:
                return False
            self.stage = message.ready
            self.by_stage[self.stage] = []
        elif message.slice is not None:
            if self.state is not _State.MEASURING or message.slice.count < 1 or message.slice.ns < 1:
                return False
            self.slices.append(message.slice)
            self.had_turn = self.stage != PILOT
        assert self.child is not None
        self.state = _State.WAITING
        self.child.park()
        return True

    @property
    def slices(self) -> list[Slice]:
        """Those so far of the stage that it was last ready for."""
        return self.by_stage.get(self.stage, [])

    @property
    def samples(self) -> dict[str, Samples]:
        """Its slices as a measurement has them, without those that its own message tells in more detail."""
        by_stage = {stage: slices for stage, slices in self.by_stage.items() if slices}
        return {stage: Samples.of(slices) for stage, slices in by_stage.items() if stage not in (PILOT, PARTS)}

    @property
    def kind(self) -> str:
        return self.member.request.device.kind

    @property
    def lives(self) -> bool:
        return self.child is not None and self.child.exit is None

    @property
    def trial_state(self) -> TrialState | None:
        """What its events have not told of it; None while its child speaks, or measures in turns."""
        if self.child is not None and self.child.exit is not None:
            answer = self.received.answer
            return TrialState.DONE if answer is not None and answer.measurement is not None else TrialState.FAILED
        return TrialState.READY if self.state is _State.WAITING and not self.slices else None

    def waits_for(self, stage: str) -> bool:
        return self.lives and self.state is _State.WAITING and self.stage == stage

    def give(self, turn: Turn | Sizes | None) -> None:
        """Let it measure a slice; None, or sizes: let it go on to its next stage."""
        assert self.child is not None
        self.state = _State.MEASURING if isinstance(turn, Turn) else _State.SETTING_UP
        self.child.resume()
        self.child.say(encode_turn(turn))

    def outcome(self, started_alone: bool) -> Outcome:
        if self.child is None or self.child.exit is None:
            return Outcome([], 0, failure=self.failure, started_alone=started_alone)
        ended = outcome_of(self.child.exit, self.received, self.member.limits, started_alone, self.had_turn)
        if ended.measurement is not None:
            samples = self.samples | ended.measurement.samples
            ended = replace(ended, measurement=replace(ended.measurement, samples=samples))
        return ended if self.failure is None else replace(ended, failure=self.failure)


@dataclass
class _Block:
    policy: BlockPolicy
    on_event: OnBlockEvent
    kept: Mapping[str, str]
    stack: ExitStack
    guard: Callable[[str], None]
    at_once: int
    columns: list[_Column] = field(default_factory=list)
    sizes: Sizes | None = None  # of all columns, once they are known

    def __post_init__(self) -> None:
        self.listener = self.stack.enter_context(Listener(self.tick))

    def start(self, members: Sequence[BlockMember]) -> None:
        self.sizes = members[0].request.plan.sizes
        for index, member in enumerate(members):
            if index and not self.policy.reserve(index):
                continue
            column = _Column(index, member, self._take_phase)
            self.on_event(TrialStarted(member.label))
            try:
                scratch = self.stack.enter_context(scratch_folder())
                task = task_of(member.python, member.request, member.limits, column.received.token, self.kept, scratch)
                column.child = self.stack.enter_context(Child(task, column.take, self.guard))
            except OSError as error:
                if error.errno in _SCARCE and any(other.lives for other in self.columns):
                    continue
                column.failure = not_started(error, member.python)
            else:
                column.child.begin()
                self.listener.add(column.child)
            self.columns.append(column)
            if self.runs_alone(column) or len(self.columns) % self.at_once == 0:
                self.listener.listen()
        self.listener.listen()

    def runs_alone(self, column: _Column) -> bool:
        """Tell whether nobody is started or let go on until it is ready: XLA times kernels on a card to choose them."""
        return self.at_once == 1 or column.member.request.device.platform in CUDA_FAMILY

    def tick(self) -> None:
        for column in self.columns:
            before, column.reported_state = column.reported_state, column.trial_state
            if column.reported_state is not None and column.reported_state is not before:
                self.on_event(PhaseStarted(column.member.label, column.reported_state))
        self.on_event(Tick())

    def _take_phase(self, column: _Column, phase: str | Phase) -> None:
        label = column.member.label
        if column.child is not None:
            column.child.compiles(phase in COMPILES)
        self.on_event(PhaseStarted(label, phase) if isinstance(phase, str) else PhaseEnded(label, phase))

    def run_pilot(self) -> None:
        """Have each column make steps, by which all learn how much they do; then let them go on as they started."""
        cycles = itertools.count()
        while (columns := self._waiting(PILOT)) and self.sizes is None:
            cycle = next(cycles)
            for position, column in enumerate(columns):
                self._give_turn(column, PILOT, Turn(cycle, position))
            steps_ns = {column.index: [slice_.ns for slice_ in column.slices] for column in self._staying(PILOT)}
            self.sizes = self.policy.sizes(steps_ns) if steps_ns else None
        self._let_go_on(columns, self.sizes)

    def run_stage(self, stage: str) -> None:
        columns = self._waiting(stage)
        orders = self.policy.orders(len(columns))
        before = GPU
        for cycle in itertools.count() if columns else ():
            # The CPU's columns go first: a GPU that idles between its columns lowers its clocks.
            drawn = sorted((columns[place] for place in next(orders)), key=lambda column: column.kind == GPU)
            for position, column in enumerate(drawn):
                time.sleep(self.policy.rest_s)
                lead_ns = LEAD_IN_NS if (before, column.kind) == (CPU, GPU) else 0
                self._give_turn(column, stage, Turn(cycle, position, lead_ns))
                before = column.kind
            left = self._staying(stage)
            if len(left) < len(columns):
                columns, orders = left, self.policy.orders(len(left))
            is_last = not columns or self.policy.enough(stage, {column.index: column.slices for column in columns})
            self.on_event(CycleEnded(stage, {column.member.label: column.slices for column in columns}, is_last))
            if is_last:
                break
        self._let_go_on(columns, None)

    def _staying(self, stage: str) -> list[_Column]:
        """Let those go that the policy has leave; return the others."""
        waiting = self._waiting(stage)
        leaves = self.policy.leaves(stage, {column.index: column.slices for column in waiting}) if waiting else {}
        leaving = [column for column in waiting if column.index in leaves]
        for column in leaving:
            column.failure = leaves[column.index]
            if column.failure is not None and column.child is not None:
                self.listener.end(column.child)
        if done := [column for column in leaving if column.failure is None]:
            assert self.sizes is not None  # they have told how long their steps take
            self._let_go_on(done, self.sizes.ending_with(stage))
        return self._waiting(stage)

    def _let_go_on(self, columns: Sequence[_Column], sizes: Sizes | None) -> None:
        for column in columns:
            if column.lives:
                column.give(sizes)
            if self.runs_alone(column):
                self.listener.listen()
        self.listener.listen()

    def _waiting(self, stage: str) -> list[_Column]:
        return [column for column in self.columns if column.waits_for(stage)]

    def _give_turn(self, column: _Column, stage: str, turn: Turn) -> None:
        if column.waits_for(stage):
            column.give(turn)
            self.listener.listen()
