import dataclasses
import math
from collections.abc import Mapping, Sequence

import pytest

from kerasbench.analysis.cases import HEADLINE, STEADY
from kerasbench.analysis.contrasts import apart, by_session
from kerasbench.analysis.estimates import Verdict, estimate
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.rankings import Ranking, beside, break_evens, longer_by_means, speed_ups
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Compiler, Measurement, Samples, Slice
from kerasbench.results.run import Run, Trial
from kerasbench.variants.native import Native
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH, known


def by_blocks(*blocks: Mapping[Column, float], in_a_round: int = 1) -> Run:
    """Blocks of those columns whose ratios scatter by a thousandth, with slices that drift by half."""
    trials = [
        made.in_block(
            block,
            made.sliced([ms * made.SCATTER[block % 3] * (1 + 0.05 * cycle) for cycle in range(10)]),
            round_index=math.ceil(block / in_a_round),
            backend=column.backend,
            options=column.options,
        )
        for block, columns in enumerate(blocks, start=1)
        for column, ms in columns.items()
    ]
    return made.record(*trials, rounds=len(blocks) // in_a_round)


def only(record: Run) -> Ranking:
    (ranking,) = summarize(record).rankings
    return ranking


def row_of(record: Run) -> Row:
    (row,) = summarize(record).rows
    return row


@pytest.mark.parametrize("done", [Compiler(programs=9, while_measured=1), Compiler(programs=9, eager="at its limit")])
def test_what_was_not_compiled_when_it_was_measured_is_not_ranked_and_is_marked(done: Compiler) -> None:
    record = by_blocks(*[{JAX: 1.0, TORCH: 2.0, TENSORFLOW: 3.0}] * 3)
    record.trials[3] = made.changed(record.trials[3], measurement={"compiler": done})  # of JAX
    summary = summarize(record)
    (ranking,) = summary.rankings
    assert (ranking.winner, [contrast.over.column for contrast in ranking.others]) == (TORCH, [TENSORFLOW])
    assert {column for concern in concerns(summary) for column in concern.columns} == {JAX}


@pytest.mark.parametrize(
    ("control_ms", "blocks", "off"),
    [(1.05, 3, True), (0.95, 3, True), (1.025, 3, False), (1.04, 1, False)],  # what may be chance takes nothing away
)
def test_a_control_that_is_off_takes_all_verdicts_of_its_row_away(control_ms: float, blocks: int, off: bool) -> None:
    columns = {JAX: 1.0, TORCH: 2.0}
    record = by_blocks(*[columns | {JAX.with_options(control=True): control_ms}] * blocks)
    another = by_blocks(*[columns] * 3).trials
    record.trials += [dataclasses.replace(trial, scenario="other", block=10 + trial.block) for trial in another]
    controlled, other = summarize(made.record(*record.trials, rounds=3)).rankings
    assert (controlled.withheld, controlled.winner is None) == (off, off)
    verdicts = [contrast.verdict for ranking in (controlled, other) for contrast in ranking.others]
    assert verdicts == [Verdict.INCONCLUSIVE if off else Verdict.SLOWER, Verdict.SLOWER]


def test_the_fastest_is_chosen_by_ratios_where_columns_did_not_fit_into_memory_together() -> None:
    # In every second block the machine takes twice as long, so that JAX, which is quicker than torch, looks slower.
    ranking = only(by_blocks(*[{TENSORFLOW: 2.0, TORCH: 1.25}, {TENSORFLOW: 4.0, JAX: 2.0}] * 3, in_a_round=2))
    assert (ranking.fastest, ranking.winner) == (JAX, JAX)
    assert {contrast.over.column: contrast.verdict for contrast in ranking.others} == {
        TENSORFLOW: Verdict.SLOWER,
        TORCH: Verdict.SLOWER,
    }
    assert known(ranking.over_fastest(TORCH)).ratio.value == pytest.approx(1.25, rel=1e-2)


def test_where_each_column_is_slower_than_another_none_is_the_fastest_and_none_level() -> None:
    pairs = [{JAX: 1.0, TORCH: 2.0}, {TORCH: 1.0, TENSORFLOW: 2.0}, {TENSORFLOW: 1.0, JAX: 2.0}]
    ranking = only(by_blocks(*[pair for pair in pairs for _ in range(4)], in_a_round=2))
    assert (ranking.proven, ranking.winner) == (True, None)
    assert sorted(known(contrast.verdict) for contrast in ranking.others) == [Verdict.FASTER, Verdict.SLOWER]


def test_a_row_whose_mean_lies_outside_its_interval_says_both_and_who_waited() -> None:
    def waiting(slices_ms: Sequence[float], busy: Sequence[float]) -> Measurement:
        """Return full batches by their epochs, and by how many processors were busy in each."""
        slices = Samples.of(
            Slice(1, int(ms * made.MS), cycle, 0, int(ms * made.MS * cores))
            for cycle, (ms, cores) in enumerate(zip(slices_ms, busy, strict=True))
        )
        return made.with_samples(made.epochs_measurement(1.0), train=slices)

    trials = [
        made.in_block(block, measurement, backend=backend)
        for block in (1, 2, 3)
        for backend, measurement in (
            ("jax", waiting([10.0 * (1 + block / 1000)] * 6, [2.0] * 6)),
            ("tensorflow", waiting([20.0] * 5 + [80.0], [2.0] * 5 + [0.5])),
            ("torch", waiting([20.0] * 6, [2.0] * 6)),  # whose mean is not worth a word
        )
    ]
    summary = summarize(made.record(*trials, rounds=3))
    (ranking,) = summary.plain.rankings
    longer = {contrast.over.column: longer_by_means(contrast) for contrast in ranking.others}
    assert longer == {TENSORFLOW: pytest.approx(3.0, rel=0.01), TORCH: None}
    (waited,) = (concern for concern in concerns(summary) if TENSORFLOW in concern.columns)
    assert (waited.what, waited.columns, waited.detail) == (WarningKind.WAITED, (TENSORFLOW,), "in 3 of 18 turns")


@pytest.mark.parametrize(
    ("step_ms", "first_ms", "extra_ms"),
    [(1.0, 1_100, [1_000]), (1.0, 100, []), (3.0, 1_100, []), (1.99, 1_100, []), (1.0, 101, [])],
)
def test_a_longer_first_step_is_repaid_by_quicker_ones(step_ms: float, first_ms: float, extra_ms: list[float]) -> None:
    trials = [
        made.changed(trial, measurement={"training": {"first_step_ns": int(first * made.MS)}})
        for backend, ms, first in (("jax", step_ms, first_ms), ("torch", 2.0, 100))
        for trial in made.in_rounds(*(ms * scatter for scatter in made.SCATTER), backend=backend)
    ]
    row = row_of(made.record(*trials, rounds=3))
    for column in (JAX, TORCH):
        repaid = [repaid for repaid in break_evens(row, column, 0.03) if repaid.slow_start == JAX]
        assert [pays.extra_ms for pays in repaid] == pytest.approx(extra_ms)
        assert [pays.steps for pays in repaid] == pytest.approx(extra_ms)  # each step is 1 ms quicker
        assert all(pays.rival == TORCH for pays in repaid)


@pytest.mark.parametrize(("gpu_ms", "verdict"), [(1.0, Verdict.FASTER), (2.8, Verdict.SLOWER)])
def test_the_gpu_is_judged_beside_the_cpu_of_the_same_backend(gpu_ms: float, verdict: Verdict) -> None:
    gpu = Column("torch", "gpu")
    trials = made.in_blocks({TORCH: 2.0, gpu: gpu_ms, JAX: 1.0}, lambda ms, _: made.predicting([ms] * 8))
    (contrast,) = speed_ups([row_of(made.untrained(made.record(*trials, rounds=3)))], 0.03)
    assert (contrast.under.column, contrast.over.column, contrast.verdict) == (TORCH, gpu, verdict)
    assert contrast.ratio.value == pytest.approx(gpu_ms / 2)
    assert contrast.metric == "predict_batch_p50_ms"  # nothing is trained


def bare(column: Column) -> Column:
    return column.with_options(native=True)


def test_the_price_is_the_ratio_to_the_baseline_of_the_same_column_which_is_never_the_fastest() -> None:
    threads = JAX.with_options(threads=1)
    columns = {TORCH: 3.0, bare(TORCH): 0.5, JAX: 1.0, bare(JAX): 2.0, threads: 4.0, bare(threads): 2.0}
    record = by_blocks(*[columns] * 3)
    prices = [price for price in beside(Native(), summarize(record).rows, 0.03) if price.metric == STEADY]
    assert {price.over.column: (price.under.column, price.verdict) for price in prices} == {
        JAX: (bare(JAX), Verdict.FASTER),
        threads: (bare(threads), Verdict.SLOWER),
        TORCH: (bare(TORCH), Verdict.SLOWER),
    }
    assert sorted(price.ratio.value for price in prices) == pytest.approx([0.5, 2.0, 6.0])
    ranking = only(record)
    assert (ranking.fastest, {contrast.over.column for contrast in ranking.others}) == (JAX, {TORCH, threads})


@pytest.mark.parametrize(
    ("keras", "native", "prices"),
    [
        # What computes something else has no price; where an epoch is one step there is the epoch alone.
        (made.measurement(), made.measurement(losses=(2.3, 9.0, 9.0, 9.0, 9.0, 9.0)), {}),
        (made.epochs_measurement(4.0), made.epochs_measurement(2.0), {"epoch_s": 2.0}),
        (made.measurement(2.0, 20), made.measurement(2.0, 20), {STEADY: 1.0, "epoch_s": 1.0}),
    ],
)
def test_what_has_a_price(keras: Measurement, native: Measurement, prices: Mapping[str, float]) -> None:
    trials = made.trial(found=keras), made.trial(found=native, options=Options(native=True))
    contrasts = beside(Native(), [row_of(made.record(*trials))], 0.03)
    assert {price.metric: price.ratio.value for price in contrasts} == prices


BLOCKS = (1.0, 1.01, 0.99)


def in_sessions(*torch_ms: float) -> Run:
    """Three blocks of JAX (1 ms) and torch in each session, whose torch takes so long."""
    trials: list[Trial] = []
    for session, ms in enumerate(torch_ms, start=1):
        for index, factor in enumerate(BLOCKS):
            ended = f"2026-01-0{session}T00:0{index}:00Z"
            for backend, step_ms in (("jax", 1.0), ("torch", ms * factor)):
                found = made.sliced([step_ms] * 8, [2 * step_ms] * 8)
                trials.append(made.in_block(len(trials) // 2 + 1, found, backend=backend, session=session, ended=ended))
    return made.record(*trials, rounds=3 * len(torch_ms))


@pytest.mark.parametrize(("again_ms", "details"), [(2.5, ["by 25 %"]), (2.02, [])])
def test_two_that_differ_by_more_than_their_intervals_are_warned_of(again_ms: float, details: list[str]) -> None:
    summary = summarize(in_sessions(2.0, again_ms))
    first, second = by_session(summary.rankings[0].others[0]).values()
    assert (first.trials, second.trials) == (3, 3)
    ratio = known(apart({1: first, 2: second}))
    assert ratio.value == pytest.approx(again_ms / 2, rel=0.01)
    assert ratio.is_above(1) is bool(details)
    warned = [concern for concern in concerns(summary) if concern.what is WarningKind.SESSIONS]
    assert [(concern.columns, concern.detail) for concern in warned] == [((TORCH,), detail) for detail in details]
    # A session that others disturbed is not held against the other.
    assert not known(apart({1: first, 2: dataclasses.replace(second, disturbed=True)})).is_above(1)


@pytest.mark.parametrize(("steps_ms", "deviation"), [([2.0], 0.02), ([2.0, 2.1], 0.02 / math.sqrt(2))])
def test_one_session_or_two_allow_for_others(steps_ms: list[float], deviation: float) -> None:
    row = row_of(in_sessions(*steps_ms))
    ratio = known(row.ratios.estimate(TORCH, JAX, HEADLINE))
    assert ratio.between_sessions == pytest.approx(deviation)
    alone = row.ratios.estimate_within_sessions(TORCH, JAX, HEADLINE)
    assert dataclasses.replace(ratio, between_sessions=0) == alone
    assert known(row.ratios.estimate(TORCH, JAX, "peak_rss_mib")).between_sessions == 0


def test_sessions_count_by_the_blocks_that_have_a_figure() -> None:
    record = in_sessions(2.0, 2.1)
    for index, trial in enumerate(record.trials):
        if trial.session == 2:
            record.trials[index] = dataclasses.replace(trial, measurement=made.partial(known(trial.measurement)))
    row = row_of(record)
    assert known(row.ratios.estimate(TORCH, JAX, "predict_p50_ms")).between_sessions == pytest.approx(0.02)
    assert known(row.ratios.estimate(TORCH, JAX, STEADY)).between_sessions == pytest.approx(0.02 / math.sqrt(2))


@pytest.mark.parametrize(
    ("options", "family"), [(Options(control=True), Family.REPEATED), (Options(jit=True), Family.OPTIONS)]
)
def test_another_session_hits_two_of_the_same_alike_and_other_options_not(options: Options, family: Family) -> None:
    other = Column("torch", "cpu", options)
    row = row_of(by_blocks(*[{TORCH: 2.0, other: 1.0}] * 3))
    assert known(row.ratios.estimate(TORCH, other, HEADLINE)).between_sessions == ASSUMED[family].between_sessions


def test_of_three_the_interval_is_over_sessions() -> None:
    steps_ms = (2.0, 2.5, 2.2)
    (contrast,) = only(in_sessions(*steps_ms)).others
    mean = math.prod(BLOCKS) ** (1 / 3)
    ratio, wanted = contrast.ratio, estimate([ms * mean for ms in steps_ms])
    assert (ratio.trials, ratio.basis, ratio.degrees) == (9, "sessions", 2)
    assert (ratio.log_centre, ratio.log_error) == pytest.approx((wanted.log_centre, wanted.log_error))
    assert apart(by_session(contrast)) is None  # the interval says it
    assert made.estimated(contrast.over.case.estimate(STEADY)).trials == 9
    # A disturbed session does not count where three others do.
    record = in_sessions(*steps_ms, 9.0)
    record.trials = [made.disturbed(trial) if trial.session == 4 else trial for trial in record.trials]
    (contrast,) = only(record).others
    assert contrast.ratio.trials == 9 and contrast.ratio.value < 2.5
