"""How a soak ends: by Ctrl-C, with what there is, or when its control is left alone."""

import dataclasses
import signal
from collections.abc import Iterator

import pytest

from kerasbench.events import CycleEnded, Notice, RunEnded
from kerasbench.processes.block import BlockMember, OnBlockEvent
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol
from kerasbench.results.run import Effort, SoakConfig
from kerasbench.results.store import Store
from tests import made
from tests.scripted import CASES, Events, FakeWorker, run

SOAK = {"soak": SoakConfig()}
EFFORT = Effort(1, 1, cold=False, protocol=Protocol(soaks=True))
ROWS = (*CASES, made.case("conv"))


class Interrupted(FakeWorker):
    """Somebody presses Ctrl-C so often once a cycle of the first block has been measured, or before."""

    def __init__(self, times: int, first: bool = False) -> None:
        super().__init__()
        self.times, self.first = times, first

    def meanwhile(self, on_event: OnBlockEvent) -> None:
        assert not self.rules.enough("train", {0: [Slice(1, 1)], 1: [Slice(1, 1)]})
        if not self.first:
            on_event(CycleEnded("train", {member.label: [] for member in self.entrants}, False))
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        assert self.rules.enough("train", {0: [Slice(1, 1)], 1: [Slice(1, 1)]})


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have Ctrl-C raise as it does in a process of one's own: pytest's helpers ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_soak_with_what_its_column_has_measured(store: Store) -> None:
    events, before = Events(), signal.getsignal(signal.SIGINT)
    record = run(store, Interrupted(1), *ROWS, effort=EFFORT, config=SOAK, events=events)
    assert record.stopped_because == "interrupted"
    assert [trial.backend for trial in record.trials if trial.measurement] == ["torch", "jax"]
    assert events[-1] == RunEnded(interrupted=True)
    (notice,) = events.of(Notice)
    assert notice.text.startswith("ending after this turn")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("times", "first"), [(2, False), (1, True)])
def test_ctrl_c_again_or_before_anything_was_measured_ends_a_soak_at_once(
    store: Store, times: int, first: bool
) -> None:
    record = run(store, Interrupted(times, first), *ROWS, effort=EFFORT, config=SOAK)
    assert (record.stopped_because, record.trials) == ("interrupted", [])


@pytest.mark.parametrize(("effort", "config"), [(EFFORT, SOAK), (None, None)])
def test_a_block_is_over_once_its_control_is_left_alone_if_it_is_a_soak_s(
    store: Store, effort: Effort | None, config: dict[str, SoakConfig] | None
) -> None:
    class Leaving(FakeWorker):
        """Both columns are left after a cycle, then the one that goes on, then its control."""

        def meanwhile(self, on_event: OnBlockEvent) -> None:
            goes_on, control = (member.label for member in self.entrants)
            for left, is_over in (([goes_on, control], False), ([goes_on], False), ([control], config is SOAK)):
                on_event(CycleEnded("train", {label: [] for label in left}, False))
                assert self.rules.enough("train", {index: [Slice(1, 1)] for index in range(len(left))}) is is_over

    worker = Leaving()
    run(store, worker, CASES[0], made.case(options=Options(control=True)), effort=effort, config=config)
    assert worker.blocks[0] == ["torch", "torch"]


@pytest.mark.parametrize("had_turn", [True, False])
def test_memory_that_a_soak_has_used_up_was_taken_by_no_other(store: Store, had_turn: bool) -> None:
    class Leaking(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            return dataclasses.replace(super().answer(entrant), had_turn=had_turn)

    worker = Leaking(jax=[Failure(Code.OOM, "no memory", "less of it")])
    record = run(store, worker, effort=EFFORT, config=SOAK)
    assert worker.blocks == [["torch", "jax"]] + ([] if had_turn else [["jax"]])
    assert any(trial.crowded for trial in record.trials) is not had_turn
