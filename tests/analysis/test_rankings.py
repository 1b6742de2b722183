import dataclasses
from collections.abc import Sequence

import pytest

from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.findings import Findings, findings
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Slice
from kerasbench.report import page
from kerasbench.report.answer import sentences
from kerasbench.results.record import Record, TrialRecord
from tests import made

JAX, TORCH = Column("jax", "cpu"), Column("torch", "cpu")
SCATTER = (1.0, 1.001, 0.999)


def run(blocks: int = 3, control_of_jax: float | None = None, **steps_ms: float) -> Record:
    """Columns by backend in blocks whose ratios scatter by a thousandth, with slices that drift by half."""
    columns = [(backend, ms, False) for backend, ms in steps_ms.items()]
    columns += [("jax", control_of_jax, True)] if control_of_jax else []
    trials = [
        made.in_block(
            block, made.sliced(slices(ms * SCATTER[block % 3])), backend=backend, options=Options(control=twice)
        )
        for block in range(1, blocks + 1)
        for backend, ms, twice in columns
    ]
    return made.record(*trials, rounds=blocks)


def slices(step_ms: float) -> Sequence[float]:
    return [step_ms * (1 + 0.05 * cycle) for cycle in range(10)]


def only(record: Record) -> Ranking:
    (found,) = summarize(record).rankings
    return found


def test_one_block_is_enough_for_a_verdict_where_slices_tell() -> None:
    found = only(run(1, jax=1.0, torch=2.0))
    assert (found.first, found.proven, found.tentative, found.by_slices) == (JAX, True, False, True)
    assert not only(run(3, jax=1.0, torch=2.0)).by_slices


def test_the_others_stand_beside_the_fastest_by_their_ratio() -> None:
    found = only(run(jax=1.0, torch=2.0))
    (comparison,) = found.comparisons
    ratio = found.over_fastest(TORCH)
    assert ratio is not None and found.over_fastest(JAX) is None
    assert ratio.value == pytest.approx(1 / comparison.ratio.value)
    assert ratio.half_width == pytest.approx(comparison.ratio.half_width)


def test_a_control_is_compared_with_what_it_repeats_and_does_not_compete() -> None:
    record = run(jax=1.0, torch=2.0, control_of_jax=0.999)
    found = only(record)
    assert found.control is not None
    assert (found.fastest, [one.rival for one in found.comparisons]) == (JAX, [TORCH])
    assert (found.control.column, found.control.is_off, found.withheld) == (JAX, False, False)
    assert found.control.ratio.value == pytest.approx(0.999, rel=1e-3)
    assert summarize(record).columns == [JAX, TORCH]


@pytest.mark.parametrize(("control_ms", "off"), [(1.05, True), (0.95, True), (1.025, False)])
def test_a_control_is_off_where_its_interval_lies_outside_three_percent(control_ms: float, off: bool) -> None:
    assert only(run(jax=1.0, torch=2.0, control_of_jax=control_ms)).withheld is off


def test_what_is_far_off_but_may_be_chance_takes_nothing_away() -> None:
    assert not only(run(1, jax=1.0, torch=2.0, control_of_jax=1.04)).withheld


def test_a_control_that_is_off_takes_all_verdicts_of_its_row_away() -> None:
    found: Findings = findings(run(jax=1.0, torch=2.0, control_of_jax=1.5))
    (ranking,) = found.summary.rankings
    assert [one.verdict for one in ranking.comparisons] == [Verdict.INCONCLUSIVE]
    assert ranking.first is None
    assert ranking.level == [TORCH]


def test_verdicts_of_other_rows_are_not_corrected_for_those_that_are_withheld() -> None:
    off, fine = run(jax=1.0, torch=2.0, control_of_jax=1.5), run(jax=1.0, torch=2.0)
    fine.trials = [made.in_block(10 + one.block, one.measurement or made.sliced([1.0]), round_index=one.round,
                                name="other", backend=one.backend) for one in fine.trials]  # fmt: skip
    rankings = summarize(made.record(*off.trials, *fine.trials, rounds=3)).rankings
    assert [[one.verdict for one in each.comparisons] for each in rankings] == [
        [Verdict.INCONCLUSIVE],
        [Verdict.FASTER],
    ]


TENSORFLOW = Column("tensorflow", "cpu")


def by_blocks(*blocks: dict[str, float]) -> Record:
    """Blocks of those columns, two in each round."""
    trials = [
        made.in_block(
            number, made.sliced(slices(ms * SCATTER[number % 3])), round_index=(number + 1) // 2, backend=backend
        )
        for number, columns in enumerate(blocks, start=1)
        for backend, ms in columns.items()
    ]
    return made.record(*trials, rounds=len(blocks) // 2)


def test_the_fastest_is_chosen_by_ratios_where_columns_did_not_fit_into_memory_together() -> None:
    # In every second block the machine takes twice as long, so that JAX, which is quicker than torch, looks slower.
    found = only(by_blocks(*[{"tensorflow": 2.0, "torch": 1.25}, {"tensorflow": 4.0, "jax": 2.0}] * 3))
    assert (found.fastest, found.first) == (JAX, JAX)
    assert [(one.rival, one.verdict) for one in found.comparisons] == [
        (TENSORFLOW, Verdict.FASTER),
        (TORCH, Verdict.FASTER),
    ]
    ratio = found.over_fastest(TORCH)
    assert ratio is not None and ratio.value == pytest.approx(1.25, rel=1e-2)


def test_where_each_column_is_slower_than_another_none_is_the_fastest_and_none_level() -> None:
    pairs = [{"jax": 1.0, "torch": 2.0}, {"torch": 1.0, "tensorflow": 2.0}, {"tensorflow": 1.0, "jax": 2.0}]
    record = by_blocks(*[pair for pair in pairs for _ in range(4)])
    found = only(record)
    assert (found.proven, found.first, found.level) == (True, None, [])
    assert sorted(one.verdict for one in found.comparisons) == [Verdict.FASTER, Verdict.SLOWER]
    (said,) = sentences(findings(record))
    assert said.endswith("no column is the fastest of all.")


def waiting(block: int, backend: str, slices_ms: Sequence[float], busy: Sequence[float]) -> TrialRecord:
    """A trial of a full-batch workload by its epochs, and by how many processors were busy in each."""
    found = made.epochs_measurement(1.0)
    slices = [
        Slice(1, int(ms * made.MS), cycle, 0, int(ms * made.MS * cores))
        for cycle, (ms, cores) in enumerate(zip(slices_ms, busy, strict=True))
    ]
    found = dataclasses.replace(found, training=dataclasses.replace(made.trained(found), slices=slices))
    return dataclasses.replace(made.trial(block, backend=backend, found=found), block=block)


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
    found = findings(made.record(*trials, rounds=3))
    (ranking,) = found.plain.rankings
    (comparison,) = ranking.comparisons
    assert comparison.by_means is not None
    assert 1 / comparison.by_means == pytest.approx(3.0, rel=0.01)
    (said,) = sentences(found)
    assert "By means instead of medians: TensorFlow 2.99×." in said
    (line,) = [line for line in page.document(found).splitlines() if "Processors were idle" in line]
    assert "dense tensorflow cpu (in 3 of 18 slices)" in line


def test_a_mean_inside_the_interval_is_not_worth_a_word() -> None:
    trials = [
        waiting(block, backend, [ms * (1 + block / 100)] * 6, [2.0] * 6)
        for block in (1, 2, 3)
        for backend, ms in (("jax", 10.0), ("torch", 20.0))
    ]
    found = findings(made.record(*trials, rounds=3))
    assert [one.by_means for one in found.plain.rankings[0].comparisons] == [None]
    assert "means" not in sentences(found)[0]
