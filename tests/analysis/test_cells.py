import dataclasses

import pytest

from kerasbench.analysis.cells import HEADLINE, STEADY, headline, summarize_cell
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import Size
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.record import TrialRecord
from tests import made

NOTED = Signal("blocks", Severity.WARN, "blocks spread by 12% (quartiles)")


def value_of(*trials: TrialRecord) -> tuple[float, list[int]]:
    """Return a cell's step in ms and the rounds that stay noisy."""
    cell = summarize_cell(trials)
    found = cell.estimate(HEADLINE)
    assert found is not None
    return round(found.value, 3), cell.noisy


def step(step_ms: float) -> Measurement:
    return made.measurement(step_ms=step_ms, overhead_ms=0)


def test_every_bout_counts_however_it_was_disturbed() -> None:
    quiet, disturbed = made.in_bout(1, step(2)), made.in_bout(2, step(8), noise=(made.DISTURBED,))
    value, noisy = value_of(quiet, disturbed)
    assert (value, noisy) == (4.0, [2])


def test_a_column_with_two_bouts_in_a_round_has_their_mean_there_and_two_values() -> None:
    cell = summarize_cell(made.in_bout(bout, step(ms), round_index=1) for bout, ms in ((1, 2.0), (2, 4.0)))
    assert cell.by_round(BY_NAME[STEADY]) == {1: pytest.approx(3.0)}
    assert cell.values(BY_NAME[STEADY]) == pytest.approx([2.0, 4.0])
    assert cell.steps_ms == pytest.approx([2.0, 4.0])


def test_in_a_sweep_the_step_inside_an_epoch_stands_for_a_cell() -> None:
    assert [headline(size) for size in (None, Size(batch=4))] == [HEADLINE, STEADY]


def test_running_out_of_memory_beside_others_counts_only_where_a_cell_has_nothing_else() -> None:
    oom = Failure(Code.OOM, "no memory", "less of it")
    crowded = dataclasses.replace(made.trial(failure=oom), bout=1, crowded=True)
    alone = made.in_bout(2, made.measurement(), round_index=1)
    assert (crowded.ends_cell, dataclasses.replace(crowded, crowded=False).ends_cell) == (False, True)
    found = summarize_cell([crowded, alone])
    assert (found.failure, len(found.trials)) == (None, 1)
    assert summarize_cell([crowded]).failure == oom
