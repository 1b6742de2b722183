import dataclasses

import pytest

from kerasbench.analysis.cases import HEADLINE, STEADY, summarize_case
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.stages import EPOCH
from tests import made


def test_every_block_counts_however_it_was_disturbed() -> None:
    quiet, noisy = made.in_rounds(2.0, 8.0)
    case = summarize_case([quiet, dataclasses.replace(noisy, noise=[Signal("others", Severity.INVALID, "busy")])])
    assert made.estimated(case.estimate(HEADLINE)).value == pytest.approx(4.0)


def test_a_column_with_two_blocks_in_a_round_has_their_mean_there_and_two_values() -> None:
    case = summarize_case(
        made.in_block(block, made.measurement(ms, 0), round_index=1) for block, ms in ((1, 2.0), (2, 4.0))
    )
    assert case.by_round(STEADY) == {1: pytest.approx(3.0)}
    assert case.values(STEADY) == pytest.approx([2.0, 4.0])
    assert case.steps_ms == pytest.approx([2.0, 4.0])


def test_a_trial_that_left_out_short_epochs_has_those_before_it_for_the_step_alone() -> None:
    first, second = made.measurement(2.0, overhead_ms=10), made.measurement(2.0, overhead_ms=20)
    trials = [made.in_block(block, whole) for block, whole in enumerate((first, made.partial(first), second), start=1)]
    case = summarize_case([*trials, made.in_block(4, made.partial(made.measurement(4.0)))])
    assert case.values(HEADLINE) == pytest.approx([2.1, 2.1, 2.2, (20 + 4 + 98 * 4) / 100])
    assert case.values("epoch_overhead_ms") == pytest.approx([10, 20])
    assert case.values("peak_rss_mib") == [512, 512]
    assert [len(case.values(name)) for name in ("predict_p50_ms", "final_loss", "compile_ms")] == [2, 2, 2]
    assert summarize_case([made.in_block(1, made.partial(first))]).values(HEADLINE) == []


def test_short_epochs_that_others_disturbed_are_lent_as_such() -> None:
    first = made.measurement(2.0, overhead_ms=10)
    disturbed = made.disturbed(made.in_block(1, first))
    case = summarize_case([disturbed, made.in_block(2, made.partial(first))])
    lent = [measurement.samples[EPOCH] for _, measurement in case.trials]
    assert [any(epochs.disturbed or ()) for epochs in lent] == [True, True]
    assert lent[0].ns == lent[1].ns


def test_running_out_of_memory_beside_others_counts_only_where_a_case_has_nothing_else() -> None:
    oom = Failure(Code.OOM, "no memory", "less of it")
    crowded = dataclasses.replace(made.trial(failure=oom), block=1, crowded=True)
    alone = made.in_block(2, made.measurement(), round_index=1)
    assert (crowded.ends_case, dataclasses.replace(crowded, crowded=False).ends_case) == (False, True)
    both = summarize_case([crowded, alone])
    assert (both.failure, len(both.trials)) == (None, 1)
    assert summarize_case([crowded]).failure == oom
