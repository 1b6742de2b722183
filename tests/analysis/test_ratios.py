import dataclasses
import math
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis import ratios
from kerasbench.analysis.cases import HEADLINE, Measured, summarize_case
from kerasbench.analysis.cases import STEADY as STEP
from kerasbench.analysis.estimates import LogEstimate, estimate, median_error
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.ratios import BlockRatio, RowRatios, RunRatios, divide_means, estimate_ratio, neighbours
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import DEFAULT, Column, Options
from kerasbench.protocol.measurement import Measurement, Samples, Slice, kept_calls
from kerasbench.protocol.messages import Phase
from kerasbench.protocol.stages import EPOCH, TRAIN
from kerasbench.results.store import load
from tests import made
from tests.made import known

RUN = Path(__file__).parent / "recorded" / "jit_on_and_off.json"
RATE = "train_samples_per_s"
DRIFT = (1.0, 1.3, 1.7, 0.8, 2.0, 1.1)


def case(*blocks: Measurement, backend: str = "jax", options: Options = DEFAULT) -> Measured:
    return summarize_case(
        made.in_block(number, block, backend=backend, options=options) for number, block in enumerate(blocks, start=1)
    )


def level(*steps_ms: float, backend: str = "jax", options: Options = DEFAULT) -> Measured:
    return case(*[made.sliced([step] * 6) for step in steps_ms], backend=backend, options=options)


def over(a: Measured, b: Measured, metric: str = STEP, row: Sequence[Measured] = ()) -> LogEstimate:
    others = [case for case in row if case is not a and case is not b]
    return known(RowRatios(dict(enumerate([a, b, *others]))).estimate_within_sessions(0, 1, metric))


def test_drift_from_slice_to_slice_cancels() -> None:
    blocks = [[2.0 * drift * factor for drift in DRIFT] for factor in (1.0, 1.5, 0.7)]
    a, b = (case(*[made.sliced([ms * times for ms in block]) for block in blocks]) for times in (1, 3))
    ratio = over(a, b)
    assert (ratio.basis, ratio.trials) == ("trials", 3)
    assert (ratio.value, known(ratio.half_width)) == pytest.approx((1 / 3, 0), abs=1e-6)


@pytest.mark.parametrize(
    ("cycles", "disturbed", "is_left"), [(4, 1, True), (4, 3, False), (12, 6, True), (12, 7, False)]
)
def test_undisturbed_cycles_count_alone_where_enough_are_left(cycles: int, disturbed: int, is_left: bool) -> None:
    """Short epochs have three cycles, and one more for each that was disturbed."""
    columns = [
        Samples.of(
            Slice(1, int(1000 * ms * (5 if cycle < disturbed and ms > 1 else 1)), cycle, 0, disturbed=cycle < disturbed)
            for cycle in range(cycles)
        )
        for ms in (1.0, 2.0)
    ]
    ratio = known(ratios.divide_slices(*columns))
    assert ratio.disturbed is not is_left
    assert ratio.slices == (cycles - disturbed if is_left else cycles)
    assert (ratio.log == pytest.approx(math.log(1 / 2))) is is_left


def test_slices_are_paired_by_their_cycle() -> None:
    a, b = made.sliced([1.0, 2.0, 9.0]), made.sliced([2.0, 4.0, 18.0])
    late = made.with_samples(b, train=Samples.of([*b.samples[TRAIN]][1:]))
    ratio = over(case(a), case(late))
    assert (ratio.value, ratio.degrees) == pytest.approx((0.5, 1))


def test_the_interval_of_three_blocks_is_over_blocks() -> None:
    ratio, wanted = over(level(1.0, 1.1, 1.2), level(2.0, 2.0, 2.0)), estimate([0.5, 0.55, 0.6])
    assert (ratio.log_centre, ratio.log_error) == pytest.approx((wanted.log_centre, wanted.log_error))


@pytest.mark.parametrize(("backend", "apart"), [("torch", 0.03 * math.sqrt(2)), ("jax", 0.07)])
@pytest.mark.parametrize("blocks", [1, 2])
def test_the_interval_of_few_blocks_is_as_wide_as_blocks_differ(blocks: int, backend: str, apart: float) -> None:
    steps = [1.0, 1.02, 0.99, 1.05, 1.0, 0.97]
    ratio = over(case(*[made.sliced(steps)] * blocks, backend=backend), level(*[1.0] * blocks, backend="torch"))
    within = known(median_error([math.log(step) for step in steps]))
    assert (ratio.basis, ratio.trials, ratio.degrees) == ("slices", blocks, 5 * blocks)
    assert ratio.log_error == pytest.approx(math.hypot(within, apart) / math.sqrt(blocks), rel=1e-3)


@pytest.mark.parametrize("count", [6, 20])
def test_the_interval_of_one_block_holds_the_truth_where_backends_scatter_as_they_typically_do(count: int) -> None:
    rng, runs, hits = random.Random(1), 300, 0
    for _ in range(runs):
        levels = math.exp(rng.gauss(0, 0.05)), 1.0
        a, b = (made.sliced([level * math.exp(rng.gauss(0, 0.05)) for _ in range(count)]) for level in levels)
        ratio = over(case(a), case(b, backend="torch"))
        hits += known(ratio.low) <= 1.0 <= known(ratio.high)
    assert hits / runs >= 0.93


def epochs(epochs_ms: Sequence[float]) -> Measurement:
    slices = Samples.of(Slice(10, int(10 * ms * made.MS), cycle, 0, 0) for cycle, ms in enumerate(epochs_ms))
    return made.with_samples(made.epochs_measurement(1.0), train=slices)


def without_epochs(ms: float, *left_out: str) -> Measurement:
    sizes = dataclasses.replace(made.SIZES, left_out=list(left_out))
    return dataclasses.replace(made.without(made.sliced([ms] * 6), EPOCH), sizes=sizes)


@pytest.mark.parametrize(
    ("measured", "values"),
    [
        # Steps and short epochs, of two steps, are joined: without noise it is the ratio of the epochs.
        (lambda ms: made.sliced([ms] * 6, [6 + 6 * ms] * 6), {HEADLINE: 110 / 214, "epoch_s": 110 / 214}),
        # An epoch with fewer steps than a short one is left to its steps.
        (lambda ms: made.sliced([ms] * 6, steps=1), {HEADLINE: 1 / 2}),
        # Where short epochs were left out a step inside an epoch stands for all; a sweep has rates by its steps.
        (lambda ms: without_epochs(ms, "epoch"), {HEADLINE: 1 / 2, RATE: 2}),
        (without_epochs, {HEADLINE: None, RATE: 2}),
        (lambda ms: made.changed(without_epochs(ms), training={"streamed": True}), {HEADLINE: 1 / 2, RATE: 2}),
        # Where the epoch is the unit it is compared alone.
        (lambda ms: epochs([ms, 2 * ms, 4 * ms]), {HEADLINE: 1 / 2, "epoch_s": 1 / 2, RATE: 2, STEP: None}),
        # What is not above zero has no ratio.
        (lambda ms: made.measurement(overhead_ms=ms - 2), {"epoch_overhead_ms": None}),
        (lambda ms: made.measurement(overhead_ms=ms), {"epoch_overhead_ms": 1 / 2}),
    ],
)
def test_what_stands_for_a_case(measured: Callable[[float], Measurement], values: Mapping[str, float | None]) -> None:
    a, b = (case(measured(ms)) for ms in (1.0, 2.0))
    forth, back = ({metric: estimate_ratio(*pair, metric) for metric in values} for pair in ((a, b), (b, a)))
    assert {metric: ratio and ratio.value for metric, ratio in forth.items()} == pytest.approx(values)
    assert {metric: ratio and 1 / ratio.value for metric, ratio in back.items()} == pytest.approx(values)


def test_a_column_that_left_before_its_short_epochs_is_compared_by_steps_whichever_way_round() -> None:
    left, stayed = case(without_epochs(1.0, "epoch")), case(made.sliced([2.0] * 6, [90.0] * 6))
    for metric, ratio in ((HEADLINE, 2.0), (RATE, 1 / 2)):
        assert (over(stayed, left, metric).value, over(left, stayed, metric).value) == pytest.approx((ratio, 1 / ratio))


def test_a_block_without_short_epochs_has_the_pairs_of_the_one_before_it() -> None:
    a, b = (
        case(made.sliced([first] * 6, [epoch * drift for drift in DRIFT]), made.partial(made.sliced([second] * 6)))
        for first, second, epoch in ((1.0, 1.1, 12.0), (2.0, 2.0, 18.0))
    )
    epoch_ms = statistics.median(DRIFT)
    blocks = [math.exp(block.log) for block in ratios.divide_blocks(a, b, HEADLINE)]
    wanted = [(12 * epoch_ms + 98 * step) / (18 * epoch_ms + 98 * 2) for step in (1.0, 1.1)]
    assert blocks == pytest.approx(wanted, rel=1e-3)
    share = 12 * epoch_ms / (12 * epoch_ms + 98), 18 * epoch_ms / (18 * epoch_ms + 196)
    shared = ratios.share_of_epochs(a.trials[0][1], b.trials[0][1])
    assert shared == pytest.approx(statistics.fmean(share), rel=0.02)


def test_the_error_of_the_headline_follows_from_those_of_its_parts() -> None:
    rng = random.Random(4)

    def drawn(level: float, epoch: float) -> Measurement:
        steps = [level * math.exp(rng.gauss(0, 0.02)) for _ in range(40)]
        return made.sliced(steps, [epoch * math.exp(rng.gauss(0, 0.05)) for _ in range(15)], steps=20)

    headlines = [over(case(drawn(1.0, 30.0)), case(drawn(2.0, 50.0)), HEADLINE) for _ in range(120)]
    seen = statistics.stdev(ratio.log_centre for ratio in headlines)
    apart = math.hypot(0.01, 0.01)
    said = statistics.fmean(math.sqrt(known(ratio.log_error) ** 2 - apart**2) for ratio in headlines)
    assert said == pytest.approx(seen, rel=0.2)


def passes(ms: float) -> Measured:
    slices = Samples.of(Slice(1, int(50 * ms * drift * made.MS), cycle, 0) for cycle, drift in enumerate(DRIFT))
    return case(made.with_samples(made.sliced(DRIFT), predict_all=slices))


def called(*slices_ms: Sequence[float], complete: bool = True) -> Measured:
    slices = [Slice(len(calls), int(sum(calls) * made.MS), cycle, 0, 0) for cycle, calls in enumerate(slices_ms)]
    calls_ns = [int(calls[index] * made.MS) for calls in slices_ms for index in kept_calls(len(calls))]
    calls = made.predicted(1, calls_ns if complete else calls_ns[1:], Samples.of(slices))
    return case(made.with_predictions(made.sliced(DRIFT), calls))


STEADY, UNEVEN = called(*[[1.0] * 50] * 6), called([1.0, 2.0, 9.0], [4.0], [2.0, 2.0])


@pytest.mark.parametrize(
    ("a", "b", "metric", "value"),
    [
        (passes(1.0), passes(2.0), "predict_samples_per_s", 2.0),
        (called(*[[1.0] * 49 + [50.0]] * 6), STEADY, "predict_p50_ms", 1.0),
        (called(*[[1.0] * 1000] * 6), STEADY, "predict_p50_ms", 1.0),  # of these calls a file keeps some
        (*(called(*[[ms, 3 * ms]] * 6, complete=False) for ms in (1.0, 2.0)), "predict_p50_ms", 0.5),
        (UNEVEN, called([1.0], [4.0], [1.0]), "predict_p50_ms", 2.0),
        (UNEVEN, called([1.0], [1.0], [1.0]), "predict_p50_ms", 2.0),
    ],
)
def test_predictions_are_compared_by_their_slices(a: Measured, b: Measured, metric: str, value: float) -> None:
    ratio = over(a, b, metric)
    assert ratio.basis == "slices" and ratio.value == pytest.approx(value)


def test_what_has_no_slices_is_paired_by_block() -> None:
    def first(ms: float, alone: Sequence[int] = (1, 2, 3)) -> Measured:
        measured = [(block, {"first_step_ns": int(ms * block * made.MS)}) for block in (1, 2, 3)]
        whole = made.sliced([1.0] * 6)
        return summarize_case(made.in_block(n, made.changed(whole, training=step), n in alone) for n, step in measured)

    ratio = over(first(1.0), first(3.0), "first_step_ms")
    assert (ratio.trials, ratio.basis) == (3, "trials") and ratio.value == pytest.approx(1 / 3)
    crowded = first(3.0, alone=(1, 2))  # who started beside others does not count
    ratio = over(first(1.0), crowded, "first_step_ms")
    assert (ratio.trials, ratio.has_interval) == (2, False)
    assert over(first(1.0), crowded, "peak_rss_mib").trials == 3


def test_a_phase_that_was_started_beside_others_is_no_figure() -> None:
    crowded = made.in_block(1, made.sliced([1.0]), alone=False)
    assert summarize_case([crowded]).estimate("startup_ms") is None
    alone = dataclasses.replace(crowded, started_alone=True, phases=[Phase("spawn", 0, made.MS)])
    assert made.estimated(summarize_case([alone]).estimate("startup_ms")).value == 1.0


def blocks(numbers: Sequence[int], steps_ms: Sequence[float], in_one_round: bool = True) -> Measured:
    return summarize_case(
        made.in_block(number, made.sliced([step] * 6), round_index=1 if in_one_round else place)
        for place, (number, step) in enumerate(zip(numbers, steps_ms, strict=True), start=1)
    )


def test_a_column_that_had_blocks_with_both_stands_between_those_that_did_not_fit_together() -> None:
    a, b = blocks([1, 3, 5], [1.0, 1.1, 1.2]), blocks([2, 4, 6], [6.0, 6.3, 6.1])
    both = blocks([1, 2, 3, 4, 5, 6], [2.0, 3.0, 2.0, 3.0, 2.0, 3.0])  # the machine was slower in every second block
    ours, theirs = over(a, both), over(both, b)
    ratio = over(a, b, row=[blocks([7], [1.0]), a, b, both])
    assert ratio.value == pytest.approx(ours.value * theirs.value)
    assert ratio.log_error == pytest.approx(math.hypot(known(ours.log_error), known(theirs.log_error)))
    assert 2 < ratio.degrees < 4
    assert (ratio.trials, ratio.basis) == (3, "trials")
    assert over(b, a, row=[both]).value == pytest.approx(1 / ratio.value)


def test_what_stands_between_two_is_no_firmer_than_either() -> None:
    firm, other = blocks([1, 2, 3], [1.0, 1.1, 1.2]), blocks([1, 2, 3, 4], [2.0] * 4)
    assert over(firm, blocks([4], [2.0]), row=[other]).basis == "slices"
    assert not over(firm, summarize_case([made.in_block(4, made.sliced([2.0]))]), row=[other]).has_interval


def test_one_block_in_common_does_not_stand_for_many_by_way_of_another_column() -> None:
    a, b = blocks([1, 2, 4], [1.0, 1.1, 1.2]), blocks([1, 3, 5], [2.0, 6.3, 6.1])
    both, brief = blocks([1, 2, 3, 4, 5], [2.0, 2.0, 3.0, 2.0, 3.0]), blocks([1], [5.0])
    ratio = over(a, b, row=[a, brief, both, b])
    assert (ratio.trials, ratio.basis) == (3, "trials")
    assert ratio.value == pytest.approx(over(a, both).value * over(both, b).value)
    assert over(a, b, row=[a, brief, b]).basis == "slices"  # nobody knows more than their own block


OLDER = summarize_case(made.in_rounds(1.0, 1.0, 1.0))  # a file of an older kerasbench has no blocks


@pytest.mark.parametrize(
    ("a", "b", "trials", "basis"),
    [
        (blocks([1, 2, 4], [1.0] * 3, False), blocks([1, 3, 5], [2.0] * 3, False), 3, "trials"),
        (blocks([1, 2], [1.0] * 2, False), blocks([1, 3], [2.0] * 2, False), 1, "slices"),
        (blocks([1, 2], [1.0] * 2), blocks([3], [2.0]), 1, "trials"),  # none in common
        (OLDER, summarize_case(made.in_rounds(2.0, 9.0, 2.0)[::2]), 2, "trials"),
    ],
)
def test_one_block_in_common_stands_for_no_rounds_apart(a: Measured, b: Measured, trials: int, basis: str) -> None:
    ratio = over(a, b)
    assert (ratio.trials, ratio.basis) == (trials, basis) and ratio.value == pytest.approx(0.5)


def test_a_case_that_failed_and_one_without_common_rounds_have_no_ratio() -> None:
    failed = Measured(level(1.0).trials, made.FAILURE)
    assert estimate_ratio(failed, level(1.0), STEP) is None
    first, second = (summarize_case([made.trial(index)]) for index in (1, 2))
    assert estimate_ratio(first, second, STEP) is None


def test_the_means_of_the_same_slices_count_what_medians_leave_out() -> None:
    a, b = (case(*[epochs(epochs_ms)] * 3) for epochs_ms in ([10.0] * 5 + [40.0], [5.0] * 6))
    assert (over(a, b, HEADLINE).value, divide_means(a, b)) == pytest.approx((2.0, 3.0))
    assert divide_means(a, Measured([], None)) is None
    assert divide_means(*(case(without_epochs(ms, "epoch")) for ms in (1.0, 2.0))) == pytest.approx(0.5)
    a, b = case(made.sliced([4.0] * 6, [30.0] * 6)), case(made.sliced([1.0] * 6, [10.0] * 6))
    assert divide_means(a, b) == pytest.approx((30 + 4 * 98) / (10 + 98))  # of steps, and of what an epoch costs once


def test_means_leave_out_blocks_that_others_disturbed_as_medians_do() -> None:
    a, b, slow = (epochs([ms] * 6) for ms in (3.0, 1.0, 39.0))
    slow = made.with_samples(slow, train=dataclasses.replace(slow.samples[TRAIN], disturbed=[True] * 6))
    ours, theirs = case(a, a, a, slow), case(b, b, b, b)
    assert (over(ours, theirs, HEADLINE).value, divide_means(ours, theirs)) == pytest.approx((3.0, 3.0))
    assert divide_means(case(slow), case(b)) == pytest.approx(39.0)  # there is nothing else


def thrice(backend: str = "jax", **options: Any) -> Measured:
    return level(1.0, 1.0, 1.0, backend=backend, options=Options(**options))


def run_of(rows: Iterable[Sequence[Measured]]) -> RunRatios[int]:
    run: RunRatios[int] = RunRatios()
    for row in rows:
        run.add_row(dict(enumerate(row)))
    return run


def test_a_ratio_borrows_from_those_of_its_run_what_its_few_blocks_do_not_know() -> None:
    scales = (0.02, 0.05, 0.06, 0.07, 0.05, 0.12)  # of the scatter over three blocks
    rows = [(level(2 * math.exp(-scale), 2.0, 2 * math.exp(scale)), thrice("torch")) for scale in scales]
    prior = run_of(rows).prior(STEP, Family.BACKENDS)
    assert prior is not None and 0.02 < math.sqrt(prior.variance) < 0.1
    own = [known(estimate_ratio(a, b, STEP)) for a, b in rows]
    moderated = [known(row.estimate_within_sessions(0, 1, STEP)) for row in run_of(rows).rows]
    assert [ratio.log_centre for ratio in moderated] == pytest.approx([ratio.log_centre for ratio in own])
    assert {ratio.degrees for ratio in moderated} == {2 + prior.degrees}
    before, after = ([known(ratio.log_error) for ratio in borrowing] for borrowing in (own, moderated))
    assert after[0] > 1.5 * before[0]  # by luck its three blocks agree
    assert after[5] < before[5]
    a, b = (dataclasses.replace(side, trials=side.trials[:2]) for side in rows[0])
    *_, brief = run_of([*rows, (a, b)]).rows
    assert brief.estimate_within_sessions(0, 1, STEP) == estimate_ratio(a, b, STEP)  # two blocks borrow nothing


OF_FAMILY = {
    Family.REPEATED: (thrice(), thrice(control=True)),
    Family.OPTIONS: (thrice(), thrice(jit=False)),
    Family.BACKENDS: (thrice(), thrice("torch")),
}


@pytest.mark.parametrize("family", Family)
def test_a_family_borrows_nothing_from_another(family: Family) -> None:
    run = run_of([OF_FAMILY[family]] * 6)
    assert {kind for kind in Family if run.prior(STEP, kind) is not None} == {family}
    others = {kind: RowRatios(dict(enumerate(pair)), run.prior) for kind, pair in OF_FAMILY.items()}
    degrees = {kind: known(row.estimate_within_sessions(0, 1, STEP)).degrees for kind, row in others.items()}
    assert {kind for kind, freedom in degrees.items() if freedom > 2} == {family}


def test_the_order_of_columns_changes_nothing_and_a_ratio_that_follows_from_others_counts_as_none() -> None:
    scales = (0.02, 0.05, 0.06, 0.07, 0.05, 0.12)
    rows = [
        (
            level(math.exp(-scale), 1.0, math.exp(scale)),
            level(2 * math.exp(scale / 3), 2.0, 2.0, backend="tensorflow"),
            level(3.0, 3 * math.exp(scale / 5), 3.0, backend="torch"),
        )
        for scale in scales
    ]
    given, turned = (
        known(run_of(ordered).prior(STEP, Family.BACKENDS)) for ordered in (rows, [row[::-1] for row in rows])
    )
    assert given.ratios == turned.ratios == 12  # of eighteen
    assert (given.variance, given.degrees) == pytest.approx((turned.variance, turned.degrees))


def test_each_case_is_paired_with_what_it_has_most_in_common_with() -> None:
    jax, off, control = thrice(), thrice(jit=False), thrice(jit=False, control=True)
    torch, torch_off = thrice("torch"), thrice("torch", jit=False)
    row = [jax, off, control, torch, torch_off]
    assert neighbours(row) == [(jax, off), (off, control), (jax, torch), (torch, torch_off)]
    assert [ratios.family_of(*pair).name for pair in neighbours(row)] == ["OPTIONS", "REPEATED", "BACKENDS", "OPTIONS"]


def test_jit_on_and_off_are_not_taken_for_the_same_thing_twice() -> None:
    (row,) = (row for row in summarize(load(RUN)).rows if row.label == "mnist_dense")
    jax, off = Column("jax", "cpu"), Column("jax", "cpu", Options(jit=False))
    ratio = known(row.ratios.estimate(off, jax, HEADLINE))
    assert ratio.between_sessions == ASSUMED[Family.OPTIONS].between_sessions > 0
    a, b = (dataclasses.replace(row.cases[column], trials=row.cases[column].trials[:2]) for column in (off, jax))
    shown = known(estimate_ratio(a, b, HEADLINE))
    assumed = ASSUMED[Family.OPTIONS].between_blocks("jax", HEADLINE)
    assert known(shown.log_error) > assumed / math.sqrt(2) > ASSUMED[Family.REPEATED].between_blocks("jax", HEADLINE)


@pytest.mark.parametrize(
    ("of_epochs", "of_steps", "least", "most"),
    [(0.0, 0.02, 31, 31), (0.02, 0.0, 3, 3), (0.02, 0.02, 4, 30), (0.0, 0.0, 3, 3)],
)
def test_a_sum_is_worth_the_slices_of_its_error(of_epochs: float, of_steps: float, least: int, most: int) -> None:
    measurement = made.measurement(2.0, overhead_ms=10)
    ratio = ratios.join_ratios(
        (measurement, measurement), 10, BlockRatio(0.0, of_steps, 31), BlockRatio(0.0, of_epochs, 3)
    )
    assert least <= ratio.slices <= most
