import dataclasses
import math
from collections.abc import Sequence
from itertools import chain

import pytest

from kerasbench.analysis.cases import HEADLINE, STEADY
from kerasbench.analysis.contrasts import apart, by_session
from kerasbench.analysis.estimates import Verdict, estimate
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.rankings import Ranking, break_evens, longer_by_means, of_keras, speed_ups
from kerasbench.analysis.ratios import in_row, ratio_of
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.protocol.measurement import Compiler, Samples, Slice
from kerasbench.results.run import Run, Trial
from tests import made
from tests.made import known

JAX, TORCH = Column("jax", "cpu"), Column("torch", "cpu")


def run(blocks: int = 3, control_of_jax: float | None = None, **steps_ms: float) -> Run:
    """Columns by backend in blocks whose ratios scatter by a thousandth, with slices that drift by half."""
    columns = [(backend, ms, False) for backend, ms in steps_ms.items()]
    columns += [("jax", control_of_jax, True)] if control_of_jax else []
    trials = [
        made.in_block(
            block, made.sliced(slices(ms * made.SCATTER[block % 3])), backend=backend, options=Options(control=twice)
        )
        for block in range(1, blocks + 1)
        for backend, ms, twice in columns
    ]
    return made.record(*trials, rounds=blocks)


def slices(step_ms: float) -> Sequence[float]:
    return [step_ms * (1 + 0.05 * cycle) for cycle in range(10)]


def only(record: Run) -> Ranking:
    (found,) = summarize(record).rankings
    return found


@pytest.mark.parametrize("done", [Compiler(programs=9, while_measured=1), Compiler(programs=9, eager="at its limit")])
def test_what_was_not_compiled_when_it_was_measured_is_not_ranked_and_is_marked(done: Compiler) -> None:
    record = run(jax=1.0, torch=2.0, tensorflow=3.0)
    for place, trial in enumerate(record.trials):
        if trial.backend == "jax" and trial.block == 2:
            record.trials[place] = made.changed(trial, measurement={"compiler": done})
    summary = summarize(record)
    (found,) = summary.rankings
    assert (found.first, [contrast.over.column.backend for contrast in found.others]) == (TORCH, ["tensorflow"])
    assert {column for one in concerns(summary) for column in one.columns} == {JAX}


@pytest.mark.parametrize(
    ("control_ms", "blocks", "off"),
    [(1.05, 3, True), (0.95, 3, True), (1.025, 3, False), (1.04, 1, False)],  # what may be chance takes nothing away
)
def test_a_control_is_off_where_its_interval_lies_outside_three_percent(
    control_ms: float, blocks: int, off: bool
) -> None:
    assert only(run(blocks, jax=1.0, torch=2.0, control_of_jax=control_ms)).withheld is off


def test_a_control_that_is_off_takes_all_verdicts_of_its_row_away_and_of_no_other() -> None:
    off = run(jax=1.0, torch=2.0, control_of_jax=1.5).trials
    fine = [dataclasses.replace(one, scenario="other", block=10 + one.block) for one in run(jax=1.0, torch=2.0).trials]
    first, second = summarize(made.record(*off, *fine, rounds=3)).rankings
    assert [contrast.verdict for contrast in first.others] == [Verdict.INCONCLUSIVE]
    assert first.first is None
    assert [contrast.verdict for contrast in second.others] == [Verdict.SLOWER]


TENSORFLOW = Column("tensorflow", "cpu")


def by_blocks(*blocks: dict[str, float]) -> Run:
    """Blocks of those columns, two in each round."""
    trials = [
        made.in_block(
            number, made.sliced(slices(ms * made.SCATTER[number % 3])), round_index=(number + 1) // 2, backend=backend
        )
        for number, columns in enumerate(blocks, start=1)
        for backend, ms in columns.items()
    ]
    return made.record(*trials, rounds=len(blocks) // 2)


def test_the_fastest_is_chosen_by_ratios_where_columns_did_not_fit_into_memory_together() -> None:
    # In every second block the machine takes twice as long, so that JAX, which is quicker than torch, looks slower.
    found = only(by_blocks(*[{"tensorflow": 2.0, "torch": 1.25}, {"tensorflow": 4.0, "jax": 2.0}] * 3))
    assert (found.fastest, found.first) == (JAX, JAX)
    assert [(contrast.over.column, contrast.verdict) for contrast in found.others] == [
        (TENSORFLOW, Verdict.SLOWER),
        (TORCH, Verdict.SLOWER),
    ]
    assert made.known(found.over_fastest(TORCH)).ratio.value == pytest.approx(1.25, rel=1e-2)


def test_where_each_column_is_slower_than_another_none_is_the_fastest_and_none_level() -> None:
    pairs = [{"jax": 1.0, "torch": 2.0}, {"torch": 1.0, "tensorflow": 2.0}, {"tensorflow": 1.0, "jax": 2.0}]
    record = by_blocks(*[pair for pair in pairs for _ in range(4)])
    found = only(record)
    assert (found.proven, found.first) == (True, None)
    assert sorted(known(contrast.verdict) for contrast in found.others) == [Verdict.FASTER, Verdict.SLOWER]


def waiting(block: int, backend: str, slices_ms: Sequence[float], busy: Sequence[float]) -> Trial:
    """A trial of a full-batch workload by its epochs, and by how many processors were busy in each."""
    slices = Samples.of(
        Slice(1, int(ms * made.MS), cycle, 0, int(ms * made.MS * cores))
        for cycle, (ms, cores) in enumerate(zip(slices_ms, busy, strict=True))
    )
    return made.in_block(
        block, made.changed(made.epochs_measurement(1.0), training={"slices": slices}), backend=backend
    )


def test_a_row_whose_mean_lies_outside_its_interval_says_both_and_who_waited() -> None:
    steady, late = [10.0] * 6, [20.0] * 5 + [80.0]
    trials = [
        trial
        for block in (1, 2, 3)
        for trial in (
            waiting(block, "jax", [ms * (1 + block / 1000) for ms in steady], [2.0] * 6),
            waiting(block, "tensorflow", late, [2.0] * 5 + [0.5]),
        )
    ]
    found = Findings.of(made.record(*trials, rounds=3))
    assert {one.what for one in concerns(found.summary) if TENSORFLOW in one.columns} <= {WarningKind.WAITED}
    (ranking,) = found.plain.rankings
    (contrast,) = ranking.others
    assert made.known(longer_by_means(contrast)) == pytest.approx(3.0, rel=0.01)
    (waited,) = [one for one in concerns(found.summary) if one.what is WarningKind.WAITED]
    assert (waited.columns, waited.detail) == ([TENSORFLOW], "in 3 of 18 turns")


def test_a_mean_inside_the_interval_is_not_worth_a_word() -> None:
    trials = [
        waiting(block, backend, [ms * (1 + block / 100)] * 6, [2.0] * 6)
        for block in (1, 2, 3)
        for backend, ms in (("jax", 10.0), ("torch", 20.0))
    ]
    found = Findings.of(made.record(*trials, rounds=3))
    assert [longer_by_means(contrast) for contrast in found.plain.rankings[0].others] == [None]


CARD = Device("cuda", 0, "H200")


def of_steps(*columns: tuple[str, Device, float, float]) -> Run:
    """Columns of backend, device, step and first step, in ms."""
    trials = [
        made.changed(trial, measurement={"training": {"first_step_ns": int(first_ms * made.MS)}})
        for backend, device, step_ms, first_ms in columns
        for trial in made.thrice(step_ms, backend=backend, device=device)
    ]
    return made.record(*trials, rounds=3)


def test_a_longer_first_step_is_repaid_by_quicker_ones() -> None:
    record = of_steps(("jax", made.CPU, 1.0, 1_100), ("torch", made.CPU, 2.0, 100))
    (row,) = summarize(record).rows
    jax, torch = row.cases
    for column in (jax, torch):
        (repaid,) = break_evens(row, column, 0.03)
        assert (repaid.slow_start, repaid.rival) == (jax, torch)
        assert [repaid.extra_ms, repaid.steps] == pytest.approx([1_000, 1_000])


@pytest.mark.parametrize(("step", "first"), [(1.0, 100), (3.0, 1_100), (1.99, 1_100), (1.0, 101)])
def test_where_nothing_is_given_or_nothing_gained_there_is_nothing_to_repay(step: float, first: float) -> None:
    record = of_steps(("jax", made.CPU, step, first), ("torch", made.CPU, 2.0, 100))
    (row,) = summarize(record).rows
    jax, _ = row.cases
    assert [repaid for repaid in break_evens(row, jax, 0.03) if repaid.slow_start == jax] == []


@pytest.mark.parametrize(("gpu_ms", "verdict"), [(1.0, Verdict.FASTER), (2.8, Verdict.SLOWER)])
def test_the_gpu_is_judged_beside_the_cpu_of_the_same_backend(gpu_ms: float, verdict: Verdict) -> None:
    record = of_steps(("torch", made.CPU, 2.0, 100), ("torch", CARD, gpu_ms, 100), ("jax", made.CPU, 1.0, 100))
    (found,) = speed_ups(Findings.of(record).plain.rows, 0.03)
    assert (found.under.column, found.over.column, found.verdict) == (TORCH, Column("torch", "gpu"), verdict)
    assert found.ratio.value == pytest.approx(gpu_ms / 2)


def test_the_gpu_is_judged_by_predictions_where_nothing_is_trained() -> None:
    trials = [
        made.in_block(block, made.predicting([ms] * 8), backend="torch", device=device)
        for block in range(1, 4)
        for device, ms in ((made.CPU, 2.0), (CARD, 1.0))
    ]
    found = Findings.of(made.untrained(made.record(*trials, rounds=3)))
    (one,) = speed_ups(found.plain.rows, 0.03)
    assert (one.metric, one.verdict) == ("predict_batch_p50_ms", Verdict.FASTER)


def with_baselines(*columns: tuple[str, Options, float]) -> Run:
    """Columns of backend, options and step in ms."""
    trials = [made.thrice(step_ms, backend=backend, options=options) for backend, options, step_ms in columns]
    return made.record(*chain.from_iterable(trials), rounds=3)


KERAS, NATIVE = Options(), Options(native=True)


def test_the_price_is_the_ratio_to_the_baseline_of_the_same_backend() -> None:
    record = with_baselines(("torch", KERAS, 3.0), ("torch", NATIVE, 1.5), ("jax", KERAS, 1.0), ("jax", NATIVE, 2.0))
    found = of_keras(summarize(record).rows, 0.03)
    assert [(price.over.column.backend, price.metric, price.verdict) for price in found] == [
        ("jax", "steady_step_ms", Verdict.FASTER),
        ("jax", "epoch_s", Verdict.FASTER),
        ("torch", "steady_step_ms", Verdict.SLOWER),
        ("torch", "epoch_s", Verdict.SLOWER),
    ]
    assert [price.ratio.value for price in found] == pytest.approx([0.5, 0.5, 2.0, 2.0])


def test_a_baseline_is_never_the_fastest_of_its_row() -> None:
    record = with_baselines(("torch", KERAS, 3.0), ("torch", NATIVE, 1.5), ("jax", KERAS, 2.0), ("jax", NATIVE, 1.0))
    (ranking,) = summarize(record).rankings
    assert ranking.fastest == JAX
    assert [contrast.over.column for contrast in ranking.others] == [TORCH]


def test_a_baseline_is_compared_under_its_own_other_options() -> None:
    one, two = Options(threads=1), Options(threads=1, native=True)
    found = of_keras(summarize(with_baselines(("jax", KERAS, 9.0), ("jax", one, 2.0), ("jax", two, 1.0))).rows, 0.03)
    assert {(price.over.column.options.label, price.under.column.options.label) for price in found} == {
        ("threads=1", "threads=1 native=on")
    }
    assert found[0].ratio.value == pytest.approx(2.0)


def test_a_baseline_that_computes_something_else_has_no_price() -> None:
    wrong = made.trial(1, options=NATIVE, found=made.measurement(losses=(2.3, 9.0, 9.0, 9.0, 9.0, 9.0)))
    record = made.record(made.trial(1), wrong, rounds=1)
    assert of_keras(summarize(record).rows, 0.03) == []


def test_where_an_epoch_is_one_step_there_is_the_epoch_alone() -> None:
    trials = [
        made.trial(1, options=one, found=made.epochs_measurement(ms)) for one, ms in ((KERAS, 4.0), (NATIVE, 2.0))
    ]
    found = of_keras(summarize(made.record(*trials)).rows, 0.03)
    assert [(one.metric, one.ratio.value) for one in found] == [("epoch_s", 2.0)]


BLOCKS = (1.0, 1.01, 0.99)


def in_sessions(torch_ms: Sequence[float]) -> Run:
    """Three blocks of JAX (1 ms) and torch in each session, whose torch takes so long."""
    trials: list[Trial] = []
    for session, ms in enumerate(torch_ms, start=1):
        for index, factor in enumerate(BLOCKS):
            block = 3 * (session - 1) + index + 1
            for backend, step_ms in (("jax", 1.0), ("torch", ms * factor)):
                one = made.in_block(block, made.sliced([step_ms] * 8, [2 * step_ms] * 8), backend=backend)
                trials.append(dataclasses.replace(one, session=session, ended=f"2026-01-0{session}T00:0{index}:00Z"))
    return made.record(*trials, rounds=3 * len(torch_ms))


@pytest.mark.parametrize(("again_ms", "details"), [(2.5, ["by 25 %"]), (2.02, [])])
def test_two_that_differ_by_more_than_their_intervals_are_warned_of(again_ms: float, details: list[str]) -> None:
    summary = summarize(in_sessions([2.0, again_ms]))
    ratios = by_session(summary.rankings[0].others[0])
    assert [ratio.trials for ratio in ratios.values()] == [3, 3]
    assert made.known(apart(ratios)).value == pytest.approx(again_ms / 2, rel=0.01)
    warned = [one for one in concerns(summary) if one.what is WarningKind.SESSIONS]
    assert [(one.columns, one.detail) for one in warned] == [([TORCH], detail) for detail in details]


def test_a_sitting_that_others_disturbed_is_not_held_against_the_other() -> None:
    summary = summarize(in_sessions([2.0, 2.5]))
    first, second = by_session(summary.rankings[0].others[0]).values()
    assert known(apart({1: first, 2: second})).is_above(1)
    assert not known(apart({1: first, 2: dataclasses.replace(second, disturbed=True)})).is_above(1)


@pytest.mark.parametrize(("steps_ms", "deviation"), [([2.0], 0.02), ([2.0, 2.1], 0.02 / math.sqrt(2))])
def test_one_sitting_or_two_allow_for_others(steps_ms: list[float], deviation: float) -> None:
    (row,) = summarize(in_sessions(steps_ms)).rows
    jax, torch = row.cases
    own = known(ratio_of(row.cases[torch], row.cases[jax], HEADLINE, row.cases.values()))
    found = known(in_row(row, torch, jax, HEADLINE))
    assert found.between_sessions == pytest.approx(deviation)
    assert dataclasses.replace(found, between_sessions=0) == own
    assert known(in_row(row, torch, jax, "peak_rss_mib")).between_sessions == 0


def test_sessions_count_by_the_blocks_that_have_a_figure() -> None:
    record = in_sessions([2.0, 2.1])
    without = [dataclasses.replace(one, measurement=made.partial(known(one.measurement))) for one in record.trials]
    partial = [one if one.session == 1 else other for one, other in zip(record.trials, without, strict=True)]
    (row,) = summarize(dataclasses.replace(record, trials=partial)).rows
    jax, torch = row.cases
    assert known(in_row(row, torch, jax, "predict_p50_ms")).between_sessions == pytest.approx(0.02)
    assert known(in_row(row, torch, jax, STEADY)).between_sessions == pytest.approx(0.02 / math.sqrt(2))


@pytest.mark.parametrize(
    ("options", "family"), [(Options(control=True), Family.REPEATED), (Options(jit=True), Family.OPTIONS)]
)
def test_another_sitting_hits_two_of_the_same_alike_and_other_options_not(options: Options, family: Family) -> None:
    trials = [
        made.in_block(index, made.sliced([ms] * 6), options=set_by)
        for index in range(1, 4)
        for set_by, ms in ((Options(), 2.0), (options, 1.0))
    ]
    (row,) = summarize(made.record(*trials, rounds=3)).rows
    first, second = row.cases
    assert known(in_row(row, first, second, HEADLINE)).between_sessions == ASSUMED[family].between_sessions


def test_of_three_the_interval_is_over_sessions() -> None:
    summary = summarize(in_sessions([2.0, 2.5, 2.2]))
    (contrast,) = summary.rankings[0].others
    mean = math.exp(sum(map(math.log, BLOCKS)) / 3)
    wanted = estimate([2.0 * mean, 2.5 * mean, 2.2 * mean])
    found = contrast.ratio
    assert (found.trials, found.basis, found.degrees) == (9, "sessions", 2)
    assert found.log_centre == pytest.approx(wanted.log_centre)
    assert found.log_error == pytest.approx(wanted.log_error)
    assert apart(by_session(contrast)) is None  # the interval says it
    assert made.estimated(summary.rows[0].cases[TORCH].estimate("steady_step_ms")).trials == 9


def test_a_disturbed_sitting_does_not_count_where_three_others_do() -> None:
    record = in_sessions([2.0, 2.5, 2.2, 9.0])
    trials = [made.disturbed(one) if one.session == 4 else one for one in record.trials]
    (contrast,) = summarize(dataclasses.replace(record, trials=trials)).rankings[0].others
    assert contrast.ratio.trials == 9
    assert contrast.ratio.value < 2.5
