import dataclasses

import pytest

from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.host.noise import Signal
from kerasbench.protocol.columns import Column, Options
from kerasbench.report.figures import metric_section, timed, title_of, value, whole_steps
from kerasbench.report.sections import EMPTY, NOTHING
from kerasbench.results.record import TrialRecord
from tests import made
from tests.report import table
from tests.report.table import drawn

JAX, TORCH = Column("jax", "cpu"), Column("torch", "cpu")
ALONE = Ranking(None, [], False)


def summed(*trials: TrialRecord, rounds: int = 1) -> Summary:
    return summarize(made.record(*trials, rounds=rounds))


def of_three(backend: str, step_ms: float, noise: tuple[Signal, ...] = ()) -> list[TrialRecord]:
    found = [made.measurement(step_ms * factor) for factor in (1.0, 1.001, 0.999)]
    return [made.trial(index, backend=backend, found=one, noise=noise) for index, one in enumerate(found, start=1)]


def test_a_column_is_named_by_what_is_not_empty() -> None:
    assert Column("jax", "gpu:1", Options(threads=1)).label == "jax gpu:1 threads=1"
    assert JAX.label == "jax cpu"


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (0.2, "1 step"),
        (1, "1 step"),
        (1.01, "2 steps"),
        (77.5, "78 steps"),
        (99.2, "100 steps"),
        (1234.0, "1,230 steps"),
    ],
)
def test_steps_are_whole_and_rounded_up(steps: float, text: str) -> None:
    assert whole_steps(steps) == text


def test_a_metric_s_title_has_its_unit() -> None:
    assert title_of("train_step_ms") == "Training step (ms)"
    assert title_of("train_loss") == "Training loss of the last epoch"


def test_the_fastest_is_bold_and_those_that_are_level_are_marked() -> None:
    clear = summed(*of_three("jax", 2.0), *of_three("torch", 4.0), rounds=3)
    (row,), (place,) = clear.rows, clear.rankings
    first, second = timed(row, JAX, place), timed(row, TORCH, place)
    assert (first.text, first.strong, first.level) == ("2.10 ms", True, False)
    assert second.text.startswith("4.10 ms, 1.95×") and not second.strong
    close = summed(*of_three("jax", 2.0), *of_three("torch", 2.001), rounds=3)
    (row,), (place,) = close.rows, close.rankings
    assert [timed(row, column, place).shown[:9] for column in (JAX, TORCH)] == ["≈ 2.10 ms", "≈ 2.10 ms"]


def test_failures_and_marks_stand_in_a_cell_of_steps() -> None:
    idle = made.measurement()
    unmoved = dataclasses.replace(made.taught(idle), batch_loss_before=2.3, batch_loss_after=2.3)
    still = dataclasses.replace(idle, learning=unmoved)
    trials = [
        made.trial(backend="jax", found=still, noise=(made.DISTURBED,)),
        made.trial(backend="torch", failure=made.FAILURE),
    ]
    (row,) = summed(*trials).rows
    assert timed(row, JAX, ALONE).shown == "2.10 ms ⚠"
    assert (timed(row, TORCH, ALONE).text, timed(row, TORCH, ALONE).failed) == ("crash", True)
    assert timed(row, Column("tensorflow", "cpu"), ALONE) == EMPTY


def test_a_value_has_its_interval_and_a_failed_cell_none() -> None:
    (row,) = summed(*of_three("jax", 2.0), made.trial(backend="torch", failure=made.FAILURE), rounds=3).rows
    assert value(row, JAX, "steady_step_ms", "ms").text == "2.00 ms ±0.2 %"
    assert value(row, TORCH, "steady_step_ms") == EMPTY
    assert value(row, JAX, "total_s") == EMPTY


def test_a_table_has_a_line_for_each_figure_that_some_cell_has() -> None:
    summary = summed(made.trial(backend="jax"), made.trial(backend="torch", failure=made.FAILURE))
    page = drawn(metric_section(summary, "Steps", ["steady_step_ms", "total_s"], ["A note."]))
    assert table.rows(table.section(page, "Steps")) == [
        ["scenario", "figure", "jax cpu", "torch cpu"],
        ["dense", "Step inside an epoch (ms)", "2.00", NOTHING],
    ]
    assert page.endswith("A note.")


def test_a_table_of_nothing_is_left_out() -> None:
    summary = summed(made.trial())
    assert drawn(metric_section(summary, "Epochs", ["total_s"], [])) == ""
    assert drawn(metric_section(summary, "Epochs", ["steady_step_ms"], [], needed="total_s")) == ""
    assert drawn(metric_section(summary, "Epochs", ["steady_step_ms"], [], needed="epoch_s")) != ""


def test_sizes_are_rows_of_their_own() -> None:
    trials = [made.trial(options=Options(batch=batch)) for batch in (1, 8)]
    page = drawn(metric_section(summed(*trials), "Steps", ["steady_step_ms"], []))
    assert [line[0] for line in table.rows(page)[1:]] == ["dense batch=1", "dense batch=8"]
