import dataclasses

import pytest

from kerasbench.analysis.estimates import mean_interval
from kerasbench.analysis.summary import summarize
from kerasbench.host.noise import Severity, Signal
from kerasbench.modes.explain.breakdown import Help, StepBreakdown, explained, share
from kerasbench.modes.explain.tell import ExplainReport, sentences
from kerasbench.protocol.columns import DEFAULT, Column, Options
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.results.merge import merge
from kerasbench.results.run import OperationCount, Run, Trial
from tests import made
from tests.made import known, with_parts
from tests.records import rivals

FLOPS = [OperationCount("dense", "default", 1e6)]  # for each sample of its batches of 32
ROUNDS = (1, 2, 3)


def taken_apart(*others: Trial, found: Measurement | None = None, options: Options = DEFAULT) -> StepBreakdown:
    mine = [made.trial(index, found=found or with_parts(), options=options) for index in ROUNDS]
    return only(dataclasses.replace(made.record(*mine, *others, rounds=3), flops=FLOPS))


def only(record: Run) -> StepBreakdown:
    (breakdown,) = explained(summarize(record))
    return breakdown


def ratios(breakdown: StepBreakdown) -> dict[Help, float]:
    """Return which other columns are advised, and how long a sample takes with them."""
    rivals = [advice for advice in breakdown.advice if advice.what is not Help.PREPARED]
    return {advice.what: advice.contrast.ratio.value for advice in rivals}


def test_the_parts_of_a_step_are_shares_of_it_whatever_it_took_when_they_were_measured() -> None:
    parts = taken_apart(found=with_parts(arrays_ms=4.0, ready_ms=3.0))
    of_a_step = [part.value for part in (parts.input_pipeline_ms, parts.framework_ms, parts.computation_ms)]
    assert of_a_step == pytest.approx([0.5, 1.0, 0.5])
    assert parts.overhead_ms.value + parts.steps * sum(of_a_step) == pytest.approx(parts.epoch_ms.value)
    assert (parts.overhead_ms.value, parts.epoch_ms.value, parts.later.value) == pytest.approx((10.0, 210.0, 2.0))


def test_an_epoch_without_a_full_step_is_not_taken_apart() -> None:
    short = dataclasses.replace(with_parts(), full_steps_per_epoch=0)
    assert explained(summarize(made.record(made.trial(1, found=short)))) == []


def turns(*times_ms: tuple[float, ...]) -> Samples:
    """A way's slices: those of each turn."""
    return Samples.of(Slice(10, int(10 * ms * made.MS), cycle, 0) for cycle, turn in enumerate(times_ms) for ms in turn)


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        # The machine takes three times as long in the second turn, and ten times in the third.
        (turns((1, 1), (3, 3), (10, 10)), turns((2, 2), (6, 6), (20, 20)), 0.5),
        # Each turn has its own share; the one in the middle stands for them.
        (turns((1, 3), (3, 3), (4, 4)), turns((4, 4), (4, 4), (4, 4)), 0.75),
        # Slices that no turn is known of are one turn.
        (Samples([10] * 3, [10, 20, 90]), Samples([10] * 3, [40, 10, 90]), 0.5),
    ],
)
def test_a_share_is_of_the_same_turn_whatever_drifts(part: Samples, whole: Samples, expected: float) -> None:
    assert share(part, whole) == pytest.approx(expected)


def test_parts_of_a_machine_that_drifts_have_the_interval_of_their_shares() -> None:
    drifting = [with_parts(2 * ms, 1.5 * ms, ms, steady_ms=2 * ms) for ms in (0.5, 1.5, 1.0)]
    trials = [made.trial(index, found=found) for index, found in zip(ROUNDS, drifting, strict=True)]
    parts = only(made.record(*trials, rounds=3))
    assert made.known(parts.epoch_ms.high) > 2 * parts.epoch_ms.value
    for part in (parts.input_pipeline_ms, parts.framework_ms, parts.computation_ms):
        assert (part.low, part.high) == pytest.approx((part.value, part.value), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "seen"), [((0.29, 0.3, 0.31), True), ((-3, 2, -1), False), ((-2.9, -3, -3.1), False)]
)
def test_an_amount_is_called_a_cost_only_where_it_is_above_zero(values: tuple[float, ...], seen: bool) -> None:
    parts = dataclasses.replace(taken_apart(), input_pipeline_ms=mean_interval(values))
    assert ("14 % input pipeline" in sentences(parts)[0]) is seen


def test_where_a_part_seems_longer_than_the_whole_its_share_is_not_told() -> None:
    record = made.record(
        *[made.trial(index, found=with_parts(arrays_ms=1.0, bare_ms=1.9)) for index in ROUNDS], rounds=3
    )
    (section, *_), (line,) = (
        ExplainReport().sections(summarize(record), {}),
        ExplainReport().sentences(summarize(record)),
    )
    assert ExplainReport().title(summarize(record)) == "dense: the parts of an epoch are undecided on PyTorch"
    assert "undecided, because a part seems to take longer than the whole. Measure more --rounds." in line
    assert "%" not in line and section.chart is None
    texts = [cell.text for cell in known(section.table).rows[0]]
    assert any(text.startswith("undecided (") for text in texts) and not any("%" in text for text in texts)


def test_shares_of_a_disturbed_trial_are_marked_in_the_table_and_told_nowhere_else() -> None:
    busy = Signal("others", Severity.INVALID, "other programs used 1.2 CPU cores in 7 of 9 turns")
    trials = [made.trial(index, found=with_parts(), noise=(busy,) if index == 2 else ()) for index in ROUNDS]
    summary = summarize(made.record(*trials, rounds=3))
    (section, *_), (line,) = ExplainReport().sections(summary, {}), ExplainReport().sentences(summary)
    assert ExplainReport().title(summary) == "dense: the parts of an epoch are undecided on PyTorch"
    assert "undecided, because other programs used 1.2 CPU cores in 7 of 9 turns. Measure again" in line
    assert "%" not in line and section.chart is None
    shares = [cell.text for cell in known(section.table).rows[0] if "%" in cell.text]
    assert shares and all(", disturbed (" in text for text in shares)


def test_the_rate_is_the_counted_operations_over_the_bare_step() -> None:
    parts = taken_apart()
    known = [made.known(amount).value for amount in (parts.flops_per_s, parts.peak_flops_per_s, parts.compile_ms)]
    assert known == pytest.approx([32 * 1e6 / 1e-3, 1e11, 280])
    record = made.record(*[made.trial(found=made.changed(with_parts(), training={"again_ns": []}))] * 3)
    parts = only(record)  # without a count and a second call
    assert (parts.flops_per_s, parts.peak_flops_per_s, parts.compile_ms) == (None, None, None)


@pytest.mark.parametrize(
    ("others", "advised"),
    [
        (rivals(4.0, Options(batch=128)), {Help.BATCH: 0.5}),  # four times the samples in twice the time
        (rivals(8.0, Options(batch=128)), {}),  # as much for each sample
        (rivals(0.1, Options(batch=16)), {}),  # what is smaller, however fast it is
        (rivals(0.1, Options(batch=128, width=0.25)), {}),
        (rivals(1.0, Options(jit=True)), {Help.JIT: 0.5}),
        (rivals(2.02, Options(jit=True)), {}),
        (rivals(1.0, Options(), made.GPU), {Help.DEVICE: 0.5}),
        (rivals(2.02, Options(), made.GPU), {}),
    ],
)
def test_what_is_faster_beyond_doubt_is_advised(others: list[Trial], advised: dict[Help, float]) -> None:
    assert ratios(taken_apart(*others)) == pytest.approx(advised)


def test_a_larger_batch_of_another_run_is_not_advised_for_the_days_may_differ() -> None:
    mine = made.record(*[made.trial(index, found=with_parts()) for index in ROUNDS], rounds=3)
    for day, advised in ((mine.started, True), ("2026-02", False)):
        larger = made.record(*rivals(4.0, Options(batch=128)), rounds=3)
        assert (Help.BATCH in ratios(only(merge([mine, made.changed(larger, started=day)])))) is advised


def test_of_a_stream_that_steps_wait_for_it_is_said_what_may_help() -> None:
    breakdown = taken_apart(found=with_parts(arrays_ms=4.0, ready_ms=3.0))
    assert not any("waits for the script's data" in sentence for sentence in sentences(breakdown))
    streamed = dataclasses.replace(breakdown.row.workload, streams=True)
    breakdown = dataclasses.replace(breakdown, row=dataclasses.replace(breakdown.row, workload=streamed))
    said = "PyTorch: 24 % of an epoch waits for the script's data: more workers"
    assert any(sentence.startswith(said) for sentence in sentences(breakdown))


def test_another_feed_or_more_workers_are_advised_and_arrays_are_not() -> None:
    loader = Options(feed="dataloader")
    assert ratios(taken_apart(*rivals(1.0, Options(feed="tf.data")), options=loader)) == {Help.FEED: 0.5}
    assert ratios(taken_apart(*rivals(1.0, loader.but(workers=2)), options=loader)) == {Help.FEED: 0.5}
    assert ratios(taken_apart(*rivals(1.0, Options()), options=loader)) == {}  # which have read all of it beforehand
    advised = taken_apart(*rivals(1.0, Options(feed="tf.data")), options=loader)
    said = "PyTorch (dataloader): with feed=tf.data a step takes 0.50× (0.48–0.52) as long, about 2 times as fast."
    assert said in sentences(advised)


def test_interpreters_with_labels_differ_in_more_than_the_jit() -> None:
    labelled, bare = Options(environment="keras-3.14"), Options(environment="keras-3.14", jit=False)
    advised = taken_apart(*rivals(1.0, bare), options=labelled).advice
    columns = {advice.what: advice.contrast.over.column for advice in advised}
    assert columns[Help.JIT] == Column("torch", "cpu", bare)
    assert ratios(taken_apart(*rivals(1.0, Options(jit=False)), options=labelled)) == {}  # by another interpreter, too
