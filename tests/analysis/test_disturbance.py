"""What others did to a row, by slices that are marked and slices that are not."""

import dataclasses
from collections.abc import Sequence

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.analysis.summary import Disturbance, disturbance
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement, Slice
from kerasbench.report import answer, page
from kerasbench.results.record import TrialRecord
from tests import made

CORES = made.MACHINE.cores


def measured(step_ms: float, slower: float, hit: Sequence[int], cycles: int = 12, cores: float = 1.0) -> Measurement:
    """Slices of one column, of which some are disturbed: others take so many cores there, and it so much longer."""
    whole = made.measurement(step_ms)
    ns = int(50 * step_ms * made.MS)
    slices = [
        Slice(50, int(ns * slower), cycle, 0, ns, int(ns * slower * cores), 0, None, disturbed=True)
        if cycle in hit
        else Slice(50, ns, cycle, 0, ns, 0, 0)
        for cycle in range(cycles)
    ]
    epochs = [Slice(1, int(2 * step_ms * made.MS), cycle, 0) for cycle in range(cycles)]
    return dataclasses.replace(whole, training=dataclasses.replace(made.trained(whole), slices=slices, epochs=epochs))


def trial(block: int, backend: str, found: Measurement) -> TrialRecord:
    return dataclasses.replace(made.trial(block, backend=backend, found=found), block=block)


def found_in(hit: Sequence[int], blocks: int = 1, slower: float = 6.0) -> Findings:
    trials = [
        trial(block, backend, measured(step_ms, factor, hit))
        for block in range(1, blocks + 1)
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, slower))
    ]
    return findings(made.record(*trials, rounds=blocks))


def test_a_few_disturbed_cycles_are_left_out_of_the_ratio_and_the_row_is_decided() -> None:
    found = found_in(range(4))
    (ranking,) = found.plain.rankings
    assert not ranking.disturbed
    assert ranking.first == Column("jax", "cpu")
    assert ranking.comparisons[0].ratio.inverse.value == pytest.approx(3.0)


def test_where_too_few_are_left_nobody_is_fastest_and_the_sentence_says_why() -> None:
    found = found_in(range(7))
    (ranking,) = found.plain.rankings
    assert ranking.disturbed
    assert (ranking.first, ranking.level) == (None, [])
    (said,) = answer.sentences(found)
    assert said.startswith("dense: JAX looks fastest, ")
    assert "⚠ Not decided: other processes used 50% of this machine; torch suffers most from that (6 times as" in said
    assert said.endswith("Close them and run again.")


def test_blocks_without_disturbance_decide_alone() -> None:
    trials = [
        trial(block, backend, measured(step_ms, factor, hit))
        for block, hit in ((1, range(12)), (2, ()), (3, ()), (4, ()))
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, 6.0))
    ]
    (ranking,) = findings(made.record(*trials, rounds=4)).plain.rankings
    assert not ranking.disturbed
    assert ranking.comparisons[0].ratio.trials == 3
    assert ranking.comparisons[0].ratio.inverse.value == pytest.approx(3.0)


def test_who_suffers_most_is_said_only_where_it_was_measured() -> None:
    (all_hit,) = found_in(range(12)).plain.rows
    assert disturbance(all_hit, CORES) == Disturbance(1 / CORES)
    (none_hit,) = found_in(()).plain.rows
    assert disturbance(none_hit, CORES) is None
    (alike,) = found_in(range(7), slower=1.1).plain.rows
    even = disturbance(alike, CORES)
    assert even is not None
    assert even.share == pytest.approx(1 / CORES)
    assert even.slowed is None


def test_the_terminal_the_page_and_the_warnings_mark_the_row() -> None:
    text = page.document(found_in(range(12)))
    assert "**1." not in text
    assert (
        "Not decided: other processes used the processors: dense. Remedy: close other programs and run again." in text
    )
