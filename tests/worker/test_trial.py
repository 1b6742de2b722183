"""Whole trials of a model that trains nothing, whose parent grants turns at once: what is measured and told."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench.backends import jax
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Compiler, Measurement, Parity, Proof, Resolved, Samples, Slice, Turn, Usage
from kerasbench.protocol.messages import Code, Failure, Message, TrialFailure
from kerasbench.protocol.requests import Sizes, TrialPlan, TrialRequest
from kerasbench.protocol.stages import (
    ALL,
    BATCH,
    BUILD_CLEARED,
    EPOCH,
    FEED,
    ONE,
    PARTS,
    PARTS_OF_STEP,
    PILOT,
    PREDICTIONS,
    STAGES,
    TRAIN,
    UNTRAINED,
)
from kerasbench.scenario import Workload
from kerasbench.variants import threads
from kerasbench.worker import checks, train, trial
from kerasbench.worker.clock import Pace
from kerasbench.worker.context import TrialContext
from kerasbench.worker.memory import HostCounter, PhaseMemory
from kerasbench.worker.usage import Meter
from tests import made
from tests.worker.stand_in_keras import WORKLOAD, Baseline, Turns, fed, runner_of

MS = 1_000_000
PLAN = TrialPlan(slice_ns=1, warmup_min_ns=0, warmup_max_ns=1, predict_warmup_ns=0)
EXPLAINED = dataclasses.replace(PLAN, stages=(*PLAN.stages, PARTS))
LATER = dataclasses.replace(PLAN, steps_per_slice=4, warmup_slices=1, sizes=made.SIZES)  # of a case's later trials
CALLED = PLAN.of_kind("calls").leaving_out("generate_call")  # its model writes by a function of its own
SHORT = Workload(train=64, batch=16)
REQUEST = TrialRequest("mine", "mine.py", "", "default", "torch", made.CPU, 0, "synthetic", PLAN)
CYCLES = 2


class Parent:
    """The other end of the pipe: it grants two turns in each stage, and keeps what it is told."""

    def __init__(self, sizes: Sizes = made.SIZES, pilots: int = 1, last: str = "") -> None:
        self.sizes, self.pilots = sizes, pilots
        self.last = last  # the stage after which the column is to leave
        self.phases: list[str] = []
        self.memory, self.on_device = PhaseMemory(HostCounter()), None
        self.slices: dict[str, list[Slice]] = {}  # by stage, in the order in which the child was ready for them

    @contextmanager
    def phase(self, name: str, stage: str = "") -> Iterator[None]:
        self.phases.append(name)
        yield

    def ask(self, message: Message) -> Turn | Sizes | None:
        if message.ready is not None:
            self.slices[message.ready] = []
        stage = [*self.slices][-1]
        slices = self.slices[stage]
        slices += [message.slice] if message.slice is not None else []
        if stage == PILOT:
            return Turn(len(slices), 0) if len(slices) < self.pilots else self.sizes
        if len(slices) < CYCLES:
            return Turn(len(slices), 0)
        return self.sizes.ending_with(stage) if stage == self.last else None


class Echo(Baseline):
    """Predicts what it is given, in each way but the compiled one."""

    def predict(self, x: Any, batch: int) -> Any:
        return x


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A synchronisation costs nothing, and a turn disturbs no cache."""
    monkeypatch.setattr(train, "measure_sync_ns", lambda synchronize: 0)
    monkeypatch.setattr("kerasbench.worker.context.SETTLE_NS", 0)


def runner(workload: Workload = WORKLOAD, backend: Mapping[str, Any] | None = None, **different: Any) -> Any:
    """Return a runner that can do all, without a backend; ``different`` are other attributes."""
    whole: Any = runner_of(Echo(), fed(workload))
    of_backend = {
        "device_bytes": lambda device, peak: None,
        "flush_subnormals": None,
        "fallbacks": None,
        "LOSS_BY_LOGITS": False,
        "compiler": lambda model: None,
        "ready": lambda batch, steps: whole.feed.train[: steps * workload.batch_size],
    }
    vars(whole.backend).update(of_backend | (dict(backend) if backend else {}))
    rows = SimpleNamespace(random=False)
    by_itself = {
        "scenario": SimpleNamespace(keeps_weights=False, new_tokens=4, dataset=lambda workload: rows),
        "to_numpy": np.asarray,
        "generate": lambda x, tokens: np.zeros((len(x), tokens), np.int32),
        "resolved": lambda: Resolved(False, "float32", [], [], "ieee", "channels_last", None, {}),
        "proof": lambda x: Proof(["cpu:0"], [], ["cpu:0"], ["cpu:0"]),
        "bare_steps": lambda batch: lambda: nullcontext(lambda steps: None),
        "peak_flops": lambda: 1e9,
        "build_again": Mock(),
        "trained_weights": lambda: [("dense/kernel", np.full((2, 2), whole.model.steps, np.float32))],
    }
    vars(whole).update(by_itself | different)
    return whole


def context(plan: TrialPlan, parent: Any, its_runner: Any) -> TrialContext:
    return TrialContext(dataclasses.replace(REQUEST, plan=plan), parent, its_runner, Meter())


def measured(plan: TrialPlan, parent: Parent | None = None, its_runner: Any = None) -> Measurement:
    return trial.measured(context(plan, parent or Parent(), its_runner or runner()))


FIRST, PREDICT = ["first step", "learn"], ["predict"] * 3
CALLS = [*["first call", "calls"] * 2, *["first call"] * 2, *["first call", "calls"] * 2]  # none of a compiled one


@pytest.mark.parametrize(
    ("plan", "workload", "phases"),
    [
        (PLAN, WORKLOAD, [*FIRST, "train", "epoch", *PREDICT, "finish"]),
        (EXPLAINED, WORKLOAD, [*FIRST, "train", "epoch", *PREDICT, "finish", "parts"]),
        (PLAN.leaving_out(EPOCH), SHORT, [*FIRST, "train", *PREDICT, "finish"]),  # its epochs are counted whole
        (LATER.leaving_out(EPOCH, BATCH, ALL), WORKLOAD, [*FIRST, "train", "predict", "finish"]),
        (PLAN.of_kind("published"), WORKLOAD, ["published", "train", "epoch", *PREDICT, "finish"]),
        (PLAN.of_kind("sweep"), WORKLOAD, [*FIRST, "train", "finish"]),
        (PLAN.of_kind("sweep_predictions").leaving_out(ONE), WORKLOAD, ["first prediction", "predict", "finish"]),
        (CALLED, WORKLOAD, ["first prediction", *PREDICT, *CALLS, *["generate"] * 2, "finish"]),
        (dataclasses.replace(PLAN.of_kind("builds"), stages=(BUILD_CLEARED,)), WORKLOAD, ["builds", "finish"]),
        *(  # a model that is not trained has no published epochs either
            (dataclasses.replace(plan, stages=(*UNTRAINED.shares,)), WORKLOAD, ["first prediction", *PREDICT, "finish"])
            for plan in (PLAN, PLAN.of_kind("published"))
        ),
    ],
)
def test_the_stages_of_a_plan_are_measured_in_their_order(
    plan: TrialPlan, workload: Workload, phases: Sequence[str]
) -> None:
    parent, its_runner = Parent(), runner(workload)
    measurement = measured(plan, parent, its_runner)
    stages = [stage for stage in plan.stages if "compiled" not in stage]  # it has no such way
    assert parent.phases == phases
    assert [stage for stage in parent.slices if stage != PILOT] == stages
    assert {stage: len(slices) for stage, slices in parent.slices.items() if stage != PILOT} == dict.fromkeys(
        stages, CYCLES
    )
    # The parent has the slices but for those of a sum, and each stage's own facts lie beside them.
    assert measurement.samples.keys() == ({*PARTS_OF_STEP} if PARTS in stages else set())
    assert (measurement.training is not None, measurement.short_epoch is not None) == (TRAIN in stages, EPOCH in stages)
    assert (measurement.learning is not None) is (TRAIN in stages and plan.steps_per_slice is None)
    predicted = [stage for stage in stages if STAGES[stage].way and STAGES[stage].phase != "generate"]
    batches = [16 if STAGES[stage].batched else 1 for stage in predicted]
    assert {stage: calls.batch for stage, calls in measurement.calls.items()} == dict(
        zip(predicted, batches, strict=True)
    )
    assert (measurement.passes is not None, [*measurement.texts]) == (
        ALL in stages,
        [stage for stage in stages if STAGES[stage].phase == "generate"],
    )
    if BUILD_CLEARED in stages:
        its_runner.build_again.assert_called_with(True, False)  # Keras' session is cleared, nothing is trained


def test_at_a_size_of_its_own_a_model_predicts_batches_of_that_alone() -> None:
    measurement = measured(PLAN.of_kind("sweep_predictions").leaving_out(BATCH))
    assert {stage: calls.batch for stage, calls in measurement.calls.items()} == {ONE: 16}


def test_what_takes_too_long_is_left_out_and_a_column_that_leaves_measures_nothing_more() -> None:
    parent = Parent(dataclasses.replace(made.SIZES, left_out=[EPOCH, ONE, ALL, PARTS]))
    measurement = measured(EXPLAINED, parent)
    assert ([*parent.slices], measurement.sizes) == ([PILOT, TRAIN, BATCH], parent.sizes)
    measurement = measured(EXPLAINED, parent := Parent(last=TRAIN))
    assert ([*parent.slices], parent.phases[-2:]) == ([PILOT, TRAIN], ["train", "finish"])
    assert made.known(measurement.sizes).silenced_steps == 0


@pytest.mark.parametrize(
    ("lacking", "predictions"), [({"takes_batches": lambda: False}, [ALL]), ({"predicts": False}, [])]
)
def test_what_a_model_cannot_predict_is_left_out(lacking: dict[str, Any], predictions: list[str]) -> None:
    """Keras cuts its batches up, or a script has given it a training step alone."""
    measured(PLAN, parent := Parent(), runner(**lacking))
    assert [stage for stage in parent.slices if stage in PREDICTIONS] == predictions


def test_steps_are_measured_until_the_parent_has_found_the_sizes_of_the_row() -> None:
    for plan in (PLAN, CALLED.leaving_out(*CALLED.stages[1:])):
        measurement = measured(plan, parent := Parent(pilots=3))
        assert [slice_.count for slice_ in parent.slices[PILOT]] == [1] * 3
        assert measurement.sizes == made.SIZES
        measured(dataclasses.replace(plan, sizes=made.SIZES), parent := Parent())
        assert PILOT not in parent.slices


@pytest.mark.parametrize("repeats", [True, False])
def test_a_later_trial_tells_neither_what_it_learned_nor_how_far_its_weights_moved(repeats: bool) -> None:
    first, plan = measured(PLAN), dataclasses.replace(LATER, repeats_first_step=repeats)
    later = measured(plan, its_runner=runner(layers=[Dropout()]))
    assert first.learning and first.movement and first.parity
    assert (later.learning, later.movement, later.parity) == (None, None, None)
    assert [len(made.trained(trial).again_ns) for trial in (first, later)] == [5, 5 * repeats]


class Dropout:
    """A layer that draws random numbers, so that losses are those of a second model without."""

    name = "dropout"
    _seed_generators = ("its own",)

    def __init__(self) -> None:
        self.rate = 0.5


@pytest.fixture(autouse=True)
def second_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a stand-in says how another is made of it, that is the one that is not trained."""
    monkeypatch.setattr(trial, "untrained", lambda runner, request: runner.fresh())


def test_losses_are_compared_where_all_backends_compute_the_same() -> None:
    losses = [100_000.0 - step for step in range(6)]
    assert measured(PLAN).parity == Parity(losses, [])
    draws = dataclasses.replace(fed(), draws=True)  # a pipeline gives other batches each time
    assert measured(PLAN, its_runner=runner(feed=draws)).parity is None
    hides = runner(overrides=["train_step"])  # of a step that does not update its loss Keras shows 0
    hides.model.losses = iter([0.0] * 10_000)
    assert measured(PLAN, its_runner=hides).parity is None
    parent, silent = Parent(), runner(layers=[Dropout()])
    drawing = runner(layers=[Dropout()], fresh=lambda: silent)
    assert measured(PLAN, parent, drawing).parity == Parity(losses, ["dropout"])
    assert (parent.phases[-1], silent.layers[0].rate, drawing.layers[0].rate) == ("parity", 0.0, 0.5)
    assert measured(PLAN, Parent(last=ALL), drawing).parity is None  # it has no time for a second model


def test_a_stream_is_trained_on_before_any_array_and_what_it_teaches_is_compared_last() -> None:
    streamed = runner(feed=dataclasses.replace(fed(), stream={"x": None}), fresh=runner)
    arrays, fit = streamed.feed.train, streamed.fit
    are_streams: list[bool] = []

    def fit_stream(rows: Any, *arguments: Any, **options: Any) -> Any:
        are_streams.append(isinstance(rows, Mapping))
        return fit(arrays, *arguments, **options)

    streamed.fit = fit_stream
    measurement = measured(PLAN.leaving_out(EPOCH), parent := Parent(), streamed)
    assert are_streams == [True, True]  # the first steps, and the slices
    assert measurement.parity == Parity([100_000.0 - step for step in range(6)], [])
    learning = made.taught(measurement)
    assert (learning.steps, learning.batch_loss_before, learning.loss) == (7, 100_000.0, 99_994.0)
    assert (parent.phases[-1], measurement.batch.x) == ("parity", "float32[16, 1]")
    assert len(made.trained(measurement).again_ns) == 5


@pytest.mark.parametrize("draws", [True, False])
def test_predictions_are_compared_that_are_of_the_same_weights(draws: bool) -> None:
    feed = dataclasses.replace(fed(), draws=draws)
    outputs = [] if draws else [[float(row) for row in range(16)]]
    for plan in (dataclasses.replace(PLAN, compares_outputs=True), dataclasses.replace(PLAN, stages=PREDICTIONS)):
        parity = measured(plan, its_runner=runner(feed=feed, fresh=lambda: runner(feed=feed))).parity
        assert (parity.outputs if parity else []) == outputs


def test_a_second_model_that_cannot_be_had_costs_nothing_but_one_whose_numbers_are_not_finite_is_a_failure() -> None:
    failures = [TrialFailure(Failure(code, "numbers that are not finite", "")) for code in (Code.OOM, Code.NONFINITE)]
    plan, build = dataclasses.replace(PLAN, compares_outputs=True), Mock(side_effect=failures)
    assert len(made.known(measured(plan, its_runner=runner(fresh=build)).parity).losses) == 6
    with pytest.raises(TrialFailure, match="not finite"):
        measured(plan, its_runner=runner(fresh=build))


def test_a_loss_of_saturated_outputs_is_not_compared_nor_where_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, by_logits = dataclasses.replace(PLAN, compares_outputs=True), {"LOSS_BY_LOGITS": True}
    for saturates in (True, False):
        monkeypatch.setattr(checks, "saturates", lambda fresh, steps, answer=saturates: answer)
        measurement = measured(plan, its_runner=runner(backend=by_logits, fresh=runner))
        parity = made.known(measurement.parity)
        assert (parity.losses == [], measurement.movement is None, parity.outputs == []) == (
            saturates,
            saturates,
            False,
        )


def test_options_are_checked_by_what_the_stage_used_that_stands_for_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "check_options", checked := Mock())
    for plan, stage in (PLAN, TRAIN), (dataclasses.replace(PLAN, stages=PREDICTIONS), BATCH):
        measured(plan, parent := Parent())
        assert checked.call_args.args[-1] == Usage.of(Samples.of(parent.slices[stage]))


def test_a_short_epoch_has_the_order_of_all_rows() -> None:
    shuffle_ns = Mock(return_value=10**12)
    measurement = measured(PLAN, parent := Parent(), runner(shuffle_ns=shuffle_ns))
    shuffle_ns.assert_called_once_with(320, 2 * 16, 16)
    assert made.known(measurement.short_epoch).shuffle_ns == 10**12
    assert all(slice_.unit_ns > 10**12 for slice_ in parent.slices[EPOCH])
    ask = trial.lengthen(turns := Turns(2), 7)
    assert (ask(None), ask(Slice(2, 100)), turns.slices) == (turns.turn, turns.turn, [Slice(2, 114)])


def test_in_each_turn_helpers_are_looked_for_and_what_is_compiled_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(Meter, "look_for_helpers", lambda meter: order.append("look"))
    programs = iter([3, 5, 5, 5])  # before and after the slices of two stages
    compiling = {"compiler": lambda model: Compiler(programs=next(programs))}
    subject = context(PLAN, parent := Parent(), runner(backend=compiling))
    for stage in (TRAIN, ONE):
        ask, slice_ = subject.ask(stage), None
        while ask(slice_) is not None:
            order.append("measure")
            slice_ = Slice(1, 1)
    assert order == ["look", "measure"] * 2 * CYCLES
    assert (subject.programs, parent.slices) == (2, {stage: [Slice(1, 1)] * CYCLES for stage in (TRAIN, ONE)})


def meter_of(request: TrialRequest, monkeypatch: pytest.MonkeyPatch) -> Meter:
    """Return the meter with which a trial begins, and go no further."""
    monkeypatch.setattr(trial, "started", Mock())
    monkeypatch.setattr(trial, "built", Mock())
    monkeypatch.setattr(trial, "refuse_other_frameworks", Mock())
    monkeypatch.setattr(trial, "measured", measures := Mock(side_effect=InterruptedError))
    nothing: Any = SimpleNamespace(phase=None)
    with pytest.raises(InterruptedError):
        trial.run_trial(request, nothing, nothing)
    meter: Meter = measures.call_args.args[0].meter
    return meter


def test_a_meter_counts_the_processors_that_a_trial_has_been_limited_to(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(threads, "limit_processors", limits.append)
    monkeypatch.setattr(trial, "counters_reader", limits.copy)
    meter: Any = meter_of(dataclasses.replace(REQUEST, options=Options(threads=3)), monkeypatch)
    assert meter.machine == [3]


def test_a_meter_that_reads_memory_asks_a_gpu_what_is_held_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "device_bytes", lambda device, peak: 5)
    for platform, reads, held_bytes in ("mps", True, 5), ("cpu", True, None), ("mps", False, None):
        plan = TrialPlan(reads_memory=reads)
        request = dataclasses.replace(REQUEST, backend="jax", device=Device(platform), plan=plan)
        assert meter_of(request, monkeypatch).with_card(Slice(1, MS)).device_bytes == held_bytes


def test_what_fills_a_slice_is_not_calibrated() -> None:
    pace = Pace(TrialPlan(warmup_max_ns=1), lambda: None, 0)
    for step_ms, units, warmup in (199, None, None), (200, 4, None), (599, 4, None), (600, 4, 0):
        plan = trial.unhurried(pace, step_ms * MS, 4).plan
        assert (plan.steps_per_slice, plan.warmup_slices) == (units, warmup)
    longer = Pace(TrialPlan(), lambda: None, 0)  # which is to warm up for seconds
    assert trial.unhurried(longer, 2000 * MS, 4).plan.warmup_slices is None
    assert trial.unhurried(pace, None, 4) is pace  # after published epochs


def test_steps_that_waited_for_a_feed_are_calibrated_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "unhurried", lambda pace, step_ns, units: dataclasses.replace(pace, plan=LATER))
    counts = []
    for queued in (0, 8):
        measured(PLAN, parent := Parent(), runner(queued_batches=queued))
        counts.append([slice_.count for slice_ in parent.slices[TRAIN]])
    assert counts[0] == [4, 4]
    assert min(counts[1]) >= 8  # as many as its workers deliver at once


def test_a_feed_is_measured_by_itself_beside_steps_on_a_batch_that_lies_ready() -> None:
    batches = itertools.repeat(None, 10**6)
    plan = dataclasses.replace(PLAN, stages=(*PLAN.stages, FEED))
    found = measured(plan, parent := Parent(), runner(epochs=lambda rows: lambda: batches))
    steps = made.trained(found).steps_per_slice
    assert [slice_.count for slice_ in parent.slices[FEED]] == [steps] * CYCLES
    assert len(made.known(found.feed).ready_ns) == CYCLES
    hidden = measured(plan, Parent(), runner(epochs=lambda rows: None))
    assert hidden.feed is None and hidden.training is not None
