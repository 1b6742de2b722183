import dataclasses

import pytest

from kerasbench.analysis.cases import HEADLINE, STEADY, headline, summarize_case
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import Size
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Code, Failure
from tests import made

NOTED = Signal("slices", Severity.WARN, "slices spread by 12% (quartiles)")


def step(step_ms: float) -> Measurement:
    return made.measurement(step_ms=step_ms, overhead_ms=0)


def test_every_block_counts_however_it_was_disturbed() -> None:
    quiet, disturbed = made.in_block(1, step(2)), made.in_block(2, step(8), noise=(made.DISTURBED,))
    estimate = summarize_case([quiet, disturbed]).estimate(HEADLINE)
    assert estimate is not None and estimate.value == pytest.approx(4.0)


def test_a_column_with_two_blocks_in_a_round_has_their_mean_there_and_two_values() -> None:
    case = summarize_case(made.in_block(block, step(ms), round_index=1) for block, ms in ((1, 2.0), (2, 4.0)))
    assert case.by_round(BY_NAME[STEADY]) == {1: pytest.approx(3.0)}
    assert case.values(BY_NAME[STEADY]) == pytest.approx([2.0, 4.0])
    assert case.steps_ms == pytest.approx([2.0, 4.0])


def test_in_a_sweep_the_step_inside_an_epoch_stands_for_a_case() -> None:
    assert [headline(size) for size in (None, Size(batch=4))] == [HEADLINE, STEADY]


def test_running_out_of_memory_beside_others_counts_only_where_a_case_has_nothing_else() -> None:
    oom = Failure(Code.OOM, "no memory", "less of it")
    crowded = dataclasses.replace(made.trial(failure=oom), block=1, crowded=True)
    alone = made.in_block(2, made.measurement(), round_index=1)
    assert (crowded.ends_case, dataclasses.replace(crowded, crowded=False).ends_case) == (False, True)
    found = summarize_case([crowded, alone])
    assert (found.failure, len(found.trials)) == (None, 1)
    assert summarize_case([crowded]).failure == oom
