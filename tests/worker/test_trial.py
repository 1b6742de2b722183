"""Which phases a trial has, and what it makes of their findings; what they measure is their modules' affair."""

import contextlib
import dataclasses
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kerasbench.backends import jax
from kerasbench.protocol import measurement as records
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Code, Failure, Message, TrialFailure
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.results.times import step_ns
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.trainer import Trainer
from kerasbench.scenario import Workload
from kerasbench.variants import threads
from kerasbench.worker import checks, predict, train, trial
from kerasbench.worker.clock import Pace, SliceClock, WarmUpClock
from kerasbench.worker.trial import Bench, phases_of
from kerasbench.worker.usage import Meter
from tests import made

MS = 1_000_000
LONG, SHORT = Workload(train=320, batch=16), Workload(train=320)
REQUEST = TrialRequest("mine", "mine.py", "", "default", "torch", Device("cpu"), 0, "synthetic", Protocol())
NONE = Rows([], [])
FEED = Feed(LONG, NONE, NONE, NONE)
FIRST, PUBLISHED, STEPS, EPOCHS = trial.first_steps, trial.published_epochs, trial.steps, trial.short_epochs
LOOK, PREDICT, FINISH = trial.first_prediction, trial.predictions, trial.finish
SILENCED, PARTS = trial.silenced_parity, trial.parts


@pytest.mark.parametrize(
    ("protocol", "workload", "phases"),
    [
        (Protocol(), LONG, [FIRST, STEPS, EPOCHS, PREDICT, FINISH, SILENCED]),
        (Protocol(parts=True), LONG, [FIRST, STEPS, EPOCHS, PREDICT, FINISH, SILENCED, PARTS]),
        (Protocol(parts=True), SHORT, [FIRST, STEPS, PREDICT, FINISH, SILENCED]),  # its epochs are counted whole
        # A case's first trial alone builds a second model to compare.
        (Protocol(steps_per_slice=4, warmup_slices=2), LONG, [FIRST, STEPS, EPOCHS, PREDICT, FINISH]),
        (Protocol(steps_per_slice=4, epochs=False, predicts=False), LONG, [FIRST, STEPS, FINISH]),
        (Protocol("published"), LONG, [PUBLISHED, STEPS, EPOCHS, PREDICT, FINISH]),
        (Protocol("sweep"), LONG, [FIRST, STEPS, FINISH, SILENCED]),
        (Protocol("sweep_predictions"), LONG, [LOOK, PREDICT, FINISH]),
        (Protocol("calls", predicts=False), LONG, [LOOK, PREDICT, trial.calls, trial.texts, FINISH]),
        (Protocol("builds", predicts=False), LONG, [trial.builds, FINISH]),
    ],
)
def test_each_protocol_has_its_phases(protocol: Protocol, workload: Workload, phases: list[trial.Phase]) -> None:
    feed = dataclasses.replace(FEED, workload=workload)
    assert phases_of(protocol, feed) == phases
    streamed = phases_of(protocol, dataclasses.replace(feed, stream={}))
    assert streamed == [phase for phase in phases if phase is not EPOCHS]
    untrained = phases_of(protocol, feed, trains=False)
    assert untrained == (phases if protocol.agenda.name in ("calls", "builds") else [LOOK, PREDICT, FINISH])


def test_the_measurement_of_predictions_or_builds_has_no_training() -> None:
    bench = measured()
    bench.steps = bench.learning = None
    bench.prediction = [
        records.Latency(1, [5], records.Samples.of([records.Slice(1, 5, 0, 0)])),
        records.Latency(16, [8, 8], records.Samples.of([records.Slice(2, 16, 0, 0, 30)])),
        records.Latency(16, [1], records.Samples.of([records.Slice(1, 1, 0, 0, 90)]), way="call"),
    ]
    measurement = trial.measurement_of(bench)
    assert (measurement.training, step_ns(measurement), measurement.usage) == (None, 8, records.Usage(30, 16))
    bench.builds = records.Samples.of([records.Slice(3, 30, 0, 0, 40)])
    measurement = trial.measurement_of(bench)
    assert (measurement.slices, measurement.usage) == (bench.builds, records.Usage(40, 30))


def learns(monkeypatch: pytest.MonkeyPatch, loss: float = 2.0) -> None:
    """Have a first step and the ones after it teach nothing but their losses."""
    monkeypatch.setattr(train, "first_step", lambda *given: (1, loss, records.Batch("", "")))
    monkeypatch.setattr(train, "learn", lambda *given: (None, [train.Step(loss, 1, 1)], made.SIZES))
    monkeypatch.setattr(train, "single_step", lambda runner, index: train.Step(loss, 2 + index, 1))


RANDOM_ROWS = {"dataset": lambda workload: SimpleNamespace(random=True)}


@pytest.mark.parametrize("draws", [True, False])
def test_what_a_pipeline_draws_is_not_compared(draws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "sample_outputs", lambda runner: [[1.0]])
    monkeypatch.setattr(trial, "can_be_silenced", lambda layers: False)
    monkeypatch.setattr(trial, "untrained", lambda runner, request: SimpleNamespace(layers=[]))
    learns(monkeypatch)
    scenario = SimpleNamespace(keeps_weights=True, **RANDOM_ROWS)
    feed = dataclasses.replace(FEED, draws=draws)
    parities = []
    for phase in (trial.silenced_parity, trial.first_prediction, trial.first_steps):
        phase(bench := subject(Protocol(sizes=made.SIZES), scenario=scenario, feed=feed))
        parities.append(bench.parity)
    outputs = records.Parity([], [], [[1.0]])
    assert parities == ([None] * 3 if draws else [outputs, outputs, records.Parity([2.0, 2.0], [])])


def test_losses_of_which_keras_shows_none_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = SimpleNamespace(**RANDOM_ROWS)
    for loss in (0.0, 0.5):
        learns(monkeypatch, loss)
        trial.first_steps(bench := subject(scenario=scenario, overrides=["train_step"]))
        assert (bench.parity is not None) is bool(loss)


def test_steps_are_measured_in_turns_until_the_sizes_of_the_row_are_known() -> None:
    steps = iter([7, 5])
    ask = Mock(side_effect=[records.Turn(0, 0), records.Turn(1, 0), made.SIZES])
    assert subject(pipe=SimpleNamespace(ask=ask)).sized(lambda: next(steps)) is made.SIZES
    assert [call.args[0].slice for call in ask.call_args_list[1:]] == [records.Slice(1, 7), records.Slice(1, 5)]
    assert subject(Protocol(sizes=made.SIZES)).sized(lambda: next(steps)) is made.SIZES


def test_what_keras_cuts_up_is_not_predicted_on_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "time_batches", lambda runner, batch, *rest: records.Latency(batch, []))
    monkeypatch.setattr(predict, "time_passes", passed := Mock())
    bench = subject(Protocol(), takes_batches=lambda: False)
    bench.sizes = dataclasses.replace(made.SIZES, left_out=[])
    trial.predictions(bench)
    assert (bench.prediction, passed.call_count) == ([], 1)


def test_slow_predictions_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "time_batches", lambda runner, batch, *rest: records.Latency(batch, []))
    sweep = Protocol("sweep_predictions")
    for protocol, left_out, batches, passes in (
        (Protocol(), ["predict_one", "predict_all"], [16], 0),
        (Protocol(), [], [1, 16], 1),
        (sweep, [], [16], 0),  # one size is all it asks for
    ):
        bench = subject(protocol)
        bench.sizes = dataclasses.replace(made.SIZES, left_out=left_out)
        monkeypatch.setattr(predict, "time_passes", passed := Mock())
        trial.predictions(bench)
        assert ([latency.batch for latency in bench.prediction], passed.call_count) == (batches, passes)


def test_a_column_that_leaves_measures_nothing_more() -> None:
    ask = Mock(side_effect=[records.Turn(0, 0), made.SIZES.ending_with("train")])
    bench = subject(pipe=SimpleNamespace(ask=ask))
    asked = bench.ask("train")
    assert (asked(None), asked(records.Slice(1, 7))) == (records.Turn(0, 0), None)
    assert [name for name in ("epoch", "predict_one", "parts") if not bench.leaves_out(name)] == []
    assert bench.sizes is not None and bench.sizes.silenced_steps == 0


@pytest.mark.parametrize(("repeats", "again_ns"), [(True, [3, 4, 5, 6, 7]), (False, [])])
def test_what_the_first_trial_has_learned_is_known(
    repeats: bool, again_ns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    learns(monkeypatch)
    protocol = Protocol(steps_per_slice=4, sizes=made.SIZES, repeats=repeats)
    trial.first_steps(bench := subject(protocol))
    assert (bench.first_step_ns, bench.again_ns, bench.learning, bench.parity) == (1, again_ns, None, None)


def test_a_second_model_that_predicts_what_is_no_number_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [TrialFailure(Failure(code, "numbers that are not finite", "")) for code in (Code.OOM, Code.NONFINITE)]
    monkeypatch.setattr(trial, "untrained", build := Mock(side_effect=failures))
    bench = subject(Protocol(sizes=made.SIZES), scenario=SimpleNamespace(keeps_weights=True))
    trial.silenced_parity(bench)  # what was measured stands
    with pytest.raises(TrialFailure, match="not finite"):
        trial.silenced_parity(bench)
    known = subject()
    known.sizes, known.parity = made.SIZES, records.Parity([1.0], [])
    trial.silenced_parity(known)  # is not looked for again
    assert build.call_count == 2


def test_the_measurement_has_what_the_phases_found() -> None:
    bench = measured()
    measurement = trial.measurement_of(bench)
    training = measurement.training
    assert training is not None and bench.steps is not None
    assert (training.unit, training.steps_per_slice, [*training.slices]) == ("step", 4, bench.steps.slices)
    assert (measurement.steps_per_epoch, measurement.full_steps_per_epoch, measurement.parameters) == (20, 20, 7)
    assert (measurement.usage, step_ns(measurement)) == (records.Usage(cpu_ns=24 * MS, wall_ns=16 * MS), 2 * MS)


def test_a_short_epoch_has_the_order_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "measure_epochs", lambda *rest: records.Samples([2] * 3, [100] * 3, [0, 1, 2]))
    few = 2 * 16 + LONG.train % 16
    for shuffle_ns, epoch_ns in (7, 114), (None, 100):
        bench = subject(shuffle_ns=lambda *given, ns=shuffle_ns: ns if given == (LONG.train, few, 16) else 0)
        trial.short_epochs(bench)
        assert (bench.shuffle_ns, bench.epochs.ns) == (shuffle_ns, [epoch_ns] * 3)


def test_in_each_turn_helpers_are_looked_for_and_what_is_compiled_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(Meter, "look_for_helpers", lambda meter: heard.append("look"))
    turns = iter([records.Turn(0, 0), records.Turn(1, 0), None] * 2)
    programs = iter([3, 5, 5, 5])  # before and after the slices of two stages

    def wait(message: Message) -> records.Turn | None:
        heard.append("wait")
        return next(turns)

    bench = subject(pipe=SimpleNamespace(ask=wait), compiler=lambda: records.Compiler(programs=next(programs)))
    for stage in ("train", "predict_one"):
        ask, slice_ = bench.ask(stage), None
        while ask(slice_) is not None:
            heard.append("measure")
            slice_ = records.Slice(1, 1)
    assert heard == (["wait", "look", "measure"] * 2 + ["wait"]) * 2
    assert bench.made == 2


def meter_of(request: TrialRequest, monkeypatch: pytest.MonkeyPatch) -> Meter:
    """Return the meter with which a trial begins, and go no further."""
    monkeypatch.setattr(trial, "started", Mock())
    monkeypatch.setattr(trial, "built", Mock())
    monkeypatch.setattr(trial, "refuse_other_frameworks", Mock())
    monkeypatch.setattr(trial, "measured", measured := Mock(side_effect=InterruptedError))
    nothing: Any = SimpleNamespace(phase=None)
    with pytest.raises(InterruptedError):
        trial.run_trial(request, nothing, nothing)
    meter: Meter = measured.call_args.args[0].meter
    return meter


def test_a_meter_counts_the_processors_that_a_trial_has_been_limited_to(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(threads, "limit_processors", limits.append)
    monkeypatch.setattr(trial, "counters_reader", limits.copy)
    meter: Any = meter_of(dataclasses.replace(REQUEST, options=Options(threads=3)), monkeypatch)
    assert meter.machine == [3]


def test_the_meter_of_a_soak_asks_a_gpu_what_is_held_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "device_bytes", lambda device, peak: 5)
    for platform, lasts, held_bytes in ("mps", True, 5), ("cpu", True, None), ("mps", False, None):
        request = dataclasses.replace(REQUEST, backend="jax", device=Device(platform), protocol=Protocol(lasts=lasts))
        assert meter_of(request, monkeypatch).with_card(records.Slice(1, MS)).device_bytes == held_bytes


def test_what_fills_a_slice_is_not_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    units: list[int | None] = []
    warmed: list[int | None] = []

    def measure(runner: Any, pace: Any, ask: Any) -> Any:
        units.append(pace.protocol.steps_per_slice)
        warmed.append(pace.protocol.warmup_slices)
        return SimpleNamespace(epoch_ends_ns=[])

    monkeypatch.setattr(train, "measure_steps", measure)
    for workload, step_ms in (LONG, 200), (SHORT, 200), (LONG, 199), (SHORT, 199):
        bench = subject(feed=dataclasses.replace(FEED, workload=workload))
        bench.step_ns = step_ms * MS
        trial.steps(bench)
    assert (units, warmed) == ([4, 1, None, None], [None] * 4)
    for step_ms in 599, 2000:  # its first steps have warmed it up, for longer than it was to take
        bench = subject(Protocol(warmup_max_ns=1))
        bench.step_ns = step_ms * MS
        trial.steps(bench)
    assert warmed[4:] == [None, 0]
    bench = subject(queued_batches=24)  # its first step waited for workers
    bench.step_ns = 200 * MS
    trial.steps(bench)
    assert units[-1] is None


def measured() -> Bench:
    protocol = Protocol(steps_per_slice=4, warmup_slices=1)
    clock = SliceClock(WarmUpClock(protocol, 20, 0), Pace(protocol, lambda: None, 0))
    clock.slices += [records.Slice(4, 8 * MS, cycle, 0, 12 * MS) for cycle in range(2)]
    bench = subject()
    bench.steps, bench.learning = clock, records.Learning(65, 2.0, 2.0, 1.0, 1.0, None)
    bench.batch, bench.proof = records.Batch("float32[16, 1]", "int32[16]"), records.Proof([], [], [], [])
    bench.resolved = records.Resolved(False, "float32", [], [], "ieee", "channels_last", None, {})
    bench.peak_rss_bytes = 1
    return bench


@Trainer.register
class StandIn(SimpleNamespace):
    pass


def subject(protocol: Protocol | None = None, pipe: Any = None, **different: Any) -> Bench:
    """A trial of stand-ins; ``different`` are attributes of its runner."""
    stand_ins: dict[str, Any] = {
        "scenario": SimpleNamespace(keeps_weights=False, trains=True),
        "feed": FEED,
        "layers": [],
        "overrides": [],
        "steps_per_execution": 4,
        "queued_batches": 0,
        "parameters": 7,
        "predict_on_batch": lambda x: x,
        "wait": lambda: None,
        "takes_batches": lambda: True,
        "compiler": lambda: None,
        "trained_weights": list,
        "updates": lambda: None,
        "backend": SimpleNamespace(LOSS_BY_LOGITS=False),
    }
    runner: Any = StandIn(**(stand_ins | different))
    pipe = pipe or SimpleNamespace(phase=lambda name: contextlib.nullcontext())
    protocol = protocol or Protocol()
    return Bench(dataclasses.replace(REQUEST, protocol=protocol), pipe, runner, Meter(), sizes=protocol.sizes)


def test_all_that_phases_find_is_in_a_measurement_or_for_other_phases() -> None:
    names, others = set(Bench.__dataclass_fields__), {"request", "pipe", "runner", "meter", "cache", "made", "moves"}
    others |= {"steps", "step_ns", "recurrent"}
    assert names - set(records.Measurement.__dataclass_fields__) - set(records.Training.__dataclass_fields__) == others
