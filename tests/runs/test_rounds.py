"""Runs by a worker that answers at once: rounds, blocks, and what goes on after an interruption."""

import dataclasses
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kerasbench import events, variants
from kerasbench.analysis.ratios import RunRatios
from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError
from kerasbench.host.load import LoadLimit
from kerasbench.host.noise import Severity, Signal
from kerasbench.modes.fastest.plan import EFFORT as RACE
from kerasbench.plan.cases import Case
from kerasbench.plan.duration import History
from kerasbench.processes.block import BlockMember, OnBlockEvent
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import CaseKey, Column, Device, Options
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import TrialPlan, TrialRequest
from kerasbench.protocol.stages import EPOCH, ONE, PILOT, TRAIN
from kerasbench.results.run import QUICK, Effort, Run, Trial, exactly
from kerasbench.results.store import Store, load
from kerasbench.runs import machine, rounds, turns
from kerasbench.runs.launcher import pass_on_marked
from kerasbench.runs.schedule import order_cases
from tests import made
from tests.scripted import CASES, THREE, Events, FakeWorker, noisy, quiet, run
from tests.stand_in import handling

ONCE = exactly(1)
CONV = made.case("conv")
KNOWN = "who is faster is decided, and every interval is within ±5 % (beyond 2×: ±10 %)"


def tried(record: Run) -> list[tuple[int, int, CaseKey]]:
    return [(trial.round, trial.block, trial.case) for trial in record.trials]


@pytest.mark.parametrize(("plan", "left"), [(QUICK.plan, [1]), (RACE.plan, []), (TrialPlan(), [])])
def test_a_quick_look_alone_leaves_behind_what_is_slow(store: Store, plan: TrialPlan, left: list[int]) -> None:
    worker = FakeWorker()
    run(store, worker, effort=exactly(1, plan))
    slices = {0: [Slice(1, 1_000_000_000)] * 2, 1: [Slice(1, 20_000_000_000)] * 2}
    assert [*worker.rules.leaves(PILOT, slices)] == left


def test_a_row_that_is_decided_takes_no_further_block_also_when_the_run_is_resumed(store: Store) -> None:
    quiet, loud = made.case("quiet"), [made.case("loud"), made.case("loud", "jax")]
    heard = Events()
    whole = run(store, FakeWorker(jax=noisy(2, 3)), quiet, *loud, effort=Effort(3, 5), events=heard)
    had = Counter(trial.case for trial in whole.trials)
    assert (had[quiet.key], had[loud[0].key], whole.rounds_completed) == (3, 5, 5)
    assert whole.stopped_because == "1 workload: every time is known to ±5 %; 1 workload: all 5 rounds are done"
    assert heard.of(events.RowEnded) == [
        events.RowEnded([quiet], "every time is known to ±5 %"),
        events.RowEnded(loud, "all 5 rounds are done"),
    ]
    assert Counter(event.is_first for event in heard.of(events.BlockStarted)) == {True: 2, False: 6}
    before = [trial for trial in whole.trials if trial.round <= 3]
    resumed = run(store, FakeWorker(jax=noisy(3)), quiet, *loud, effort=Effort(3, 5), carried=before)
    assert tried(resumed) == tried(whole)


@pytest.mark.parametrize(
    ("effort", "free_gib", "alone"),
    [(exactly(5), 64, [True] * 3 + [False] * 2), (QUICK, 64, [False]), (QUICK, 3, [True])],
)
def test_only_a_row_s_first_blocks_start_one_by_one_and_of_a_quick_look_where_memory_is_scarce(
    store: Store, monkeypatch: pytest.MonkeyPatch, effort: Effort, free_gib: int, alone: list[bool]
) -> None:
    monkeypatch.setattr(machine, "available_bytes", lambda: free_gib << 30)
    worker = FakeWorker()
    record = run(store, worker, effort=effort)
    assert worker.alone == [trial.started_alone for trial in record.trials[::2]] == alone


def test_no_column_always_starts_first_unless_not_all_fit_into_memory_and_the_same_ones_meet(store: Store) -> None:
    drawn: dict[str, Any] = {"effort": exactly(3), "config": {"seed": 16}, "in_order": order_cases}
    together, worker, resumed = FakeWorker(), FakeWorker(2), FakeWorker(2)
    run(store, together, *THREE, **drawn)
    first, last = ({block[place] for block in together.blocks} for place in (0, 2))
    assert first == last == {"torch", "jax", "tensorflow"}
    whole = run(store, worker, *THREE, **drawn).trials
    assert worker.blocks == worker.blocks[:2] * 3
    run(store, resumed, *THREE, **drawn, carried=whole[:4])
    assert resumed.blocks == worker.blocks[2:]


@pytest.mark.parametrize(
    ("worker", "blocks"),
    [
        (FakeWorker(2), [["torch", "jax"], ["torch", "tensorflow"]]),  # beside the first column again
        (FakeWorker(1), [["torch"], ["jax"], ["tensorflow"]]),
        (FakeWorker(large="jax"), [["torch", "tensorflow"], ["torch"], ["jax"]]),
    ],
)
def test_what_does_not_fit_has_further_blocks(store: Store, worker: FakeWorker, blocks: list[list[str]]) -> None:
    record = run(store, worker, *THREE)
    assert worker.blocks == blocks * 2
    assert [(trial.block, trial.backend) for trial in record.trials] == [
        (number, backend) for number, block in enumerate(worker.blocks, start=1) for backend in block
    ]
    assert {trial.round for trial in record.trials if trial.block <= len(blocks)} == {1}


def test_a_column_that_was_found_to_differ_takes_no_other_with_it_in_later_rounds(store: Store) -> None:
    def computing(*losses: float) -> list[Measurement]:
        parity = {"losses": [*losses], "sensitive": ["BatchNormalization"]}
        return [made.changed(made.measurement(), parity=parity)]

    worker = FakeWorker(torch=computing(1.0, 1.08), jax=computing(1.0, 0.92), tensorflow=computing(1.05, 1.0))
    record = run(store, worker, *THREE)
    assert worker.blocks == [["torch", "jax", "tensorflow"], ["torch", "jax"]]
    failed = [column.backend for column, case in summarize(record).rows[0].cases.items() if case.failure]
    assert failed == ["tensorflow"]
    again = run(store, worker, *THREE, carried=load(store.journal).trials[:3])
    assert [trial.failure is None for trial in again.trials] == [trial.failure is None for trial in record.trials]


@pytest.mark.parametrize("room", [3, 2])
def test_a_column_that_computes_something_else_is_measured_once_and_decides_nothing(store: Store, room: int) -> None:
    odd = [made.measurement(step, losses=(9.0, 8.0, 7.0, 6.0, 5.0, 4.0)) for step in (3, 9, 4)]
    worker = FakeWorker(room, torch=noisy(1, 1.001), jax=noisy(2, 2.001), tensorflow=odd)
    record = run(store, worker, *THREE, effort=Effort())
    assert (record.rounds_completed, record.stopped_because) == (3, KNOWN)
    measured, failed = [trial for trial in record.trials if trial.backend == "tensorflow"]
    assert measured.measurement == odd[0]
    assert failed.failure is not None and failed.failure.code is Code.PARITY
    assert load(store.journal).trials == record.trials
    row = summarize(record).rows[0]
    assert row.rounds == 3 and row.cases[measured.column].failure == failed.failure
    assert [len(case.trials) for case in row.cases.values()] == [3, 1, 3 if room == 3 else 4]


def test_a_first_trial_calibrates_and_later_ones_leave_out_what_is_known_or_what_no_row_waits_for(store: Store) -> None:
    worker = FakeWorker()
    run(store, worker, effort=exactly(6))
    asked = [request.plan for request in worker.requests if request.backend == "torch"]
    assert [(plan.steps_per_slice, plan.warmup_slices) for plan in asked] == [(None, None), *[(50, 1)] * 5]
    assert [(plan.repeats_first_step, EPOCH in plan.stages, ONE in plan.stages) for plan in asked] == [
        (True, True, True),
        *[(True, False, True)] * 2,  # what an epoch costs once is a small part of these
        *[(False, False, False)] * 2,
        (False, True, True),
    ]


def test_a_baseline_is_asked_for_by_the_hash_of_its_file_and_the_record_keeps_it(store: Store) -> None:
    chosen = made.changed(made.selected(), entry={"baselines": {"torch": "hash of its baseline"}})
    worker = FakeWorker()
    record = run(store, worker, *(Case(chosen, "torch", made.CPU, Options(native=native)) for native in (None, True)))
    asked = {variants.has(request.options, "replaces"): request.baseline_hash for request in worker.requests}
    assert asked == {False: "", True: "hash of its baseline"}
    assert record.scenarios[0].baselines == {"torch": "hash of its baseline"}


def test_a_run_of_which_everything_failed_ends_and_what_is_absent_is_recorded_without_being_tried(store: Store) -> None:
    worker = FakeWorker(torch=[made.FAILURE])
    record = run(store, worker, CASES[0], absent=((CASES[1], made.FAILURE),))
    assert [(trial.backend, trial.round) for trial in record.trials] == [("jax", 0), ("torch", 1)]
    assert (worker.blocks, record.stopped_because) == ([["torch"]], "every case has failed")


def test_a_full_disk_ends_the_run_and_loses_nothing_measured(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add, heard = store.add, Events()

    def until_it_is_full(trials: Sequence[Trial]) -> None:
        if trials[0].round == 2:
            raise ResultsError("no space left")
        add(trials)

    monkeypatch.setattr(store, "add", until_it_is_full)
    record = run(store, FakeWorker(), effort=exactly(3), events=heard)
    assert (record.stopped_because, len(record.trials)) == ("results could not be written", 4)
    assert len(load(store.journal).trials) == 2
    assert heard.of(events.Notice) == [events.Notice("no space left")]


def test_a_child_is_told_who_was_on_its_card_before_the_block(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"gpu": ("GPU-1", [7]), "cpu": ("", None)}
    monkeypatch.setattr("kerasbench.runs.machine.card_now", lambda device: told[device.kind])
    worker = FakeWorker()
    run(store, worker, made.case(device=Device("cuda")), CASES[1], effort=ONCE)
    assert {request.device.kind: (request.card, request.neighbours) for request in worker.requests} == told


def test_a_disturbed_block_is_kept_and_marked_and_nothing_is_repeated(store: Store) -> None:
    record = run(store, FakeWorker(), monitor=quiet(1))
    assert [(trial.round, trial.disturbed) for trial in record.trials] == [(1, True)] * 2 + [(2, False)] * 2
    assert record.trials[0].noise[0].reason == "thermal pressure level 2"


def test_later_trials_of_a_case_are_limited_by_its_first_unless_a_limit_was_asked_for(store: Store) -> None:
    worker = FakeWorker()
    run(store, worker, CASES[0], effort=exactly(3))
    run(store, worker, CASES[0], config={"timeout_s": 90.0})
    assert [limits.timeout_s for limits in worker.limits] == [300.0, 60.0, 60.0, 90.0, 90.0]  # a trial takes one second


def test_a_block_has_its_interpreters_and_rules_and_a_quota_recovers_between_turns(store: Store) -> None:
    worker, state = FakeWorker(), made.state(quota_cores=0.5)
    run(store, worker, effort=ONCE, interpreter=lambda backend, runtime: f"/{backend}/python", state=state)
    assert [member.python for member in worker.entrants] == ["/torch/python", "/jax/python"]
    assert worker.rules.rest_s == turns.QUOTA_PERIOD_S
    assert all(sorted(order) == [0, 1] for order in islice(worker.rules.orders(2), 9))
    same = [Slice(1, 100 * made.MS)] * 6
    assert worker.rules.enough("train", {0: same, 1: same})
    assert not worker.rules.enough("train", {0: same[:5], 1: same[:5]})


def test_a_block_is_judged_by_what_others_took(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.cpu_count", lambda: made.MACHINE.cores)
    slices = [Slice(50, 100 * made.MS, cycle, 0, others_ns=12 * made.MS + cycle % 2) for cycle in range(10)]
    measured = made.with_samples(made.measurement(), train=Samples.of(slices))
    worker = FakeWorker(torch=[measured], jax=[measured])
    record = run(store, worker, effort=ONCE)
    disturbed = [made.known(trial.measurement).slices.disturbed for trial in record.trials]
    assert disturbed == [[False, True] * 5] * 2
    assert not worker.rules.enough("train", {0: slices[:10], 1: slices[:10]})  # five of ten are left
    assert worker.rules.enough("train", {0: slices[:10:2] * 2, 1: slices[:10:2] * 2})
    assert record.load == LoadLimit(0.0, 0.12, 1)
    busier = run(store, worker, effort=ONCE, state=made.state(busy_share=0.005))
    assert busier.load == LoadLimit(0.005 * made.MACHINE.cores, 0.12, 1)
    assert not any(made.known(trial.measurement).slices.disturbed for trial in busier.trials)


def test_the_order_of_turns_is_drawn_from_the_run_s_seed_and_differs_from_block_to_block(store: Store) -> None:
    def of_block(number: int) -> list[list[int]]:
        worker = FakeWorker()
        run(store, worker, effort=exactly(number))
        return [list(order) for order in islice(worker.rules.orders(5), 10)]

    assert of_block(1) == of_block(1) != of_block(2)


def test_a_run_tells_in_order_what_happens(store: Store) -> None:
    heard = Events()
    record = run(store, FakeWorker(), effort=ONCE, events=heard, monitor=quiet(hot=True))
    torch, jax = CASES
    assert heard == [
        events.RunStarted(made.plan(*CASES, effort=ONCE), record, History()),
        events.BlockStarted(CASES, True, TRAIN, []),
        events.Waiting("dense", "hot"),
        events.TrialStarted(torch.label),
        events.PhaseStarted(torch.label, "train"),
        events.TrialStarted(jax.label),
        events.PhaseStarted(jax.label, "train"),
        events.Tick(),
        events.TrialEnded(torch, record.trials[0]),
        events.TrialEnded(jax, record.trials[1]),
        events.RowEnded(CASES, "one round was asked for"),
        events.RoundEnded(record),
        events.RunEnded(),
    ]


@pytest.mark.parametrize("blocks", [0, 2, 4, 12])  # of three rows in three rounds; the second is in a round's midst
def test_every_round_has_every_case_once_and_a_resumed_run_measures_what_is_missing(store: Store, blocks: int) -> None:
    cases = [*CASES, CONV, made.case("quiet")]
    whole = run(store, FakeWorker(), *cases, effort=exactly(3))
    each_once = Counter((number, case.key) for number in (1, 2, 3) for case in cases)
    assert Counter((trial.round, trial.case) for trial in whole.trials) == each_once
    before = [trial for trial in whole.trials if trial.block <= blocks]
    worker, heard = FakeWorker(), Events()
    resumed = run(store, worker, *cases, effort=exactly(3), events=heard, carried=before)
    assert tried(resumed) == tried(whole)
    assert (resumed.rounds_completed, resumed.stopped_because) == (3, "all 3 rounds are done")
    assert resumed.finished
    assert len(worker.requests) == len(heard.of(events.TrialEnded)) == len(whole.trials) - len(before)
    assert load(store.journal).trials == resumed.trials


def test_a_resumed_run_began_when_it_was_begun(store: Store) -> None:
    signal, again = Signal("load", Severity.WARN, "20%"), "2026-01-02T09:00:00Z"
    earlier = made.changed(made.record(made.trial(1)), resumed=[again], parent_cpu_ns=7, noise=[signal])
    record = run(store, FakeWorker(), CASES[0], earlier=earlier)
    assert (record.started, record.resumed, record.noise) == (earlier.started, [again], [signal])
    assert record.parent_cpu_ns >= 7
    assert load(store.journal).started == earlier.started


def test_what_was_given_up_in_a_round_that_its_row_has_not_had_stays_given_up(store: Store) -> None:
    whole = run(store, FakeWorker()).trials
    worker = FakeWorker()
    resumed = run(store, worker, carried=[*whole[:2], made.trial(2, failure=made.FAILURE)])
    assert (worker.blocks, resumed.rounds_completed) == ([["jax"]], 2)


def test_all_rows_of_a_round_are_decided_by_the_same_knowledge(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[RunRatios[Column]] = []

    def run_ratios() -> RunRatios[Column]:
        runs.append(RunRatios())
        return runs[-1]

    def trials() -> list[list[int]]:
        return [[max(len(case.trials) for case in row.cases.values()) for row in run.rows] for run in runs]

    monkeypatch.setattr(rounds, "RunRatios", run_ratios)
    whole = run(store, FakeWorker(), *CASES, CONV)
    assert trials() == [[1, 1], [2, 2]]
    run(store, FakeWorker(), *CASES, CONV, effort=exactly(3), carried=whole.trials)
    assert trials() == [[1, 1], [2, 2], [1, 1], [2, 2], [3, 3]]  # the same again


def test_a_resumed_run_s_budget_counts_what_was_spent_before(store: Store) -> None:
    carried = [made.in_block(1, made.measurement(), backend=case.backend) for case in CASES]  # 9 s, side by side
    resumed = run(store, FakeWorker(), effort=Effort(budget_s=15.0), carried=carried)
    assert resumed.stopped_because == "another round of about 9 s does not fit into the 6 s that --budget leaves"


def test_a_row_is_sized_by_its_first_steps_once_for_all_its_columns_and_blocks(store: Store) -> None:
    sized = made.changed(made.measurement(), sizes=made.changed(made.SIZES, learn_steps=9))

    class Sizing(FakeWorker):
        def meanwhile(self, on_event: OnBlockEvent) -> None:
            if self.entrants[0].request.plan.sizes is None:
                assert self.rules.sizes({0: [10**8], 1: [10**9 // 2]}) is None  # a hiccup, perhaps
                assert self.rules.sizes({0: [10**8], 1: [2 * 10**9]})

    worker, heard = Sizing(torch=[sized], jax=[made.FAILURE, sized]), Events()
    run(store, worker, events=heard)
    assert [request.plan.sizes for request in worker.requests] == [None, None, sized.sizes]
    (known,) = heard.of(events.StepsKnown)
    assert known.steps_ns == [(CASES[0], 10**8), (CASES[1], 2 * 10**9)]
    assert known.left_s > 12 * 2  # six slices of the slower one and what comes before


WARM = made.case(backend="jax", options=Options(warm_cache=True))


def test_a_first_process_fills_the_caches_that_a_case_s_trials_find_and_they_go_with_the_run(store: Store) -> None:
    def without_folder(request: TrialRequest) -> Failure | None:
        return made.FAILURE if request.caches and not Path(request.caches).is_dir() else None

    worker = FakeWorker(fails=without_folder)
    record = run(store, worker, WARM, *CASES)
    assert worker.blocks[0] == ["jax"]
    assert [request.fills_caches for request in worker.requests] == [True] + [False] * 6
    assert worker.requests[0].plan.warmup_max_ns == 0
    (folder,) = {request.caches for request in worker.requests if variants.has(request.options, "prepares")}
    assert folder and not Path(folder).exists()
    assert {request.caches for request in worker.requests if not variants.has(request.options, "prepares")} == {""}
    assert [trial.failure for trial in record.trials] == [None] * 6


def test_a_case_whose_caches_cannot_be_filled_has_failed_and_the_others_go_on(store: Store) -> None:
    record = run(store, FakeWorker(jax=[made.FAILURE]), WARM, CASES[0])
    tried = [(trial.backend, trial.failure is None) for trial in record.trials]
    assert tried == [("jax", False), ("torch", True), ("torch", True)]


SOAKING = Effort(1, 1, cold=False, plan=TrialPlan(fixed_time=True))


class Interrupted(FakeWorker):
    """Somebody presses Ctrl-C so often once a cycle of the first block has been measured, or before."""

    def __init__(self, times: int, first: bool = False) -> None:
        super().__init__()
        self.times, self.first = times, first

    def meanwhile(self, on_event: OnBlockEvent) -> None:
        assert not self.rules.enough("train", {0: [Slice(1, 1)], 1: [Slice(1, 1)]})
        if not self.first:
            on_event(events.CycleEnded("train", {member.label: [] for member in self.entrants}, False))
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        assert self.rules.enough("train", {0: [Slice(1, 1)], 1: [Slice(1, 1)]})


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have Ctrl-C raise as it does in a process of one's own: pytest's helpers ignore it."""
    with handling(signal.SIGINT, signal.default_int_handler):
        yield


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_soak_with_what_its_column_has_measured(store: Store) -> None:
    heard, before = Events(), signal.getsignal(signal.SIGINT)
    record = run(store, Interrupted(1), *CASES, CONV, effort=SOAKING, events=heard)
    assert record.stopped_because == "interrupted"
    assert [trial.backend for trial in record.trials if trial.measurement] == ["torch", "jax"]
    assert heard[-1] == events.RunEnded(interrupted=True)
    (notice,) = heard.of(events.Notice)
    assert notice.text.startswith("ending after this turn")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("times", "first"), [(2, False), (1, True)])
def test_ctrl_c_again_or_before_any_cycle_ends_a_soak_at_once(store: Store, times: int, first: bool) -> None:
    record = run(store, Interrupted(times, first), *CASES, CONV, effort=SOAKING)
    assert (record.stopped_because, record.trials) == ("interrupted", [])


@pytest.mark.parametrize("effort", [SOAKING, None])
def test_when_a_block_is_over(store: Store, effort: Effort | None) -> None:
    class Leaving(FakeWorker):
        """Both columns are left after a cycle, then the one that goes on, then its control."""

        def meanwhile(self, on_event: OnBlockEvent) -> None:
            goes_on, control = (member.label for member in self.entrants)
            for left, is_over in (([goes_on, control], False), ([goes_on], False), ([control], effort is SOAKING)):
                on_event(events.CycleEnded("train", {label: [] for label in left}, False))
                assert self.rules.enough("train", {index: [Slice(1, 1)] for index in range(len(left))}) is is_over

    worker = Leaving()
    run(store, worker, CASES[0], made.case(options=Options(control=True)), effort=effort)
    assert worker.blocks[0] == ["torch", "torch"]


@pytest.mark.parametrize("had_turn", [True, False])
def test_memory_that_a_soak_has_used_up_was_taken_by_no_other(store: Store, had_turn: bool) -> None:
    class Leaking(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            return dataclasses.replace(super().answer(entrant), had_turn=had_turn)

    worker = Leaking(jax=[Failure(Code.OOM, "no memory", "less of it")])
    record = run(store, worker, effort=SOAKING)
    assert worker.blocks == [["torch", "jax"]] + ([] if had_turn else [["jax"]])
    assert any(trial.crowded for trial in record.trials) is not had_turn


def test_turns_that_other_programs_interrupt_are_told_as_such() -> None:
    cases, heard = [made.case(backend=name) for name in ("jax", "torch")], list[object]()
    busy = [Slice(10, 100 * made.MS, cycle, 0, others_ns=(cycle < 2) * 90 * made.MS) for cycle in range(4)]
    event = events.CycleEnded("train", {case.label: busy for case in cases[::-1]}, False)
    pass_on_marked(cases, [LoadLimit(), LoadLimit()], heard.append, event)
    (told,) = heard
    assert isinstance(told, events.CycleEnded) and list(told.slices) == list(event.slices)
    assert [[slice_.disturbed for slice_ in slices] for slices in told.slices.values()] == [
        [True, True, False, False]
    ] * 2
    pass_on_marked(cases, [LoadLimit()] * 2, heard.append, events.Tick())
    assert heard[1:] == [events.Tick()]
