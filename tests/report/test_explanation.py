import dataclasses

import pytest

from kerasbench.analysis.breakdown import Advice, Help, StepBreakdown
from kerasbench.analysis.rankings import BreakEven
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.report.explanation import section, sentences
from tests import made
from tests.report.table import drawn

ROW = summarize(made.record(made.trial())).rows[0]
MINE: Column = Column("torch", "cpu")


BREAKDOWN = StepBreakdown(
    row=ROW,
    column=MINE,
    steps=100,
    epoch_ms=made.amount(2_000.0, 100.0, 3),
    overhead_ms=made.amount(500.0),
    feeding_ms=made.amount(3.0),
    framework_ms=made.amount(2.0),
    computation_ms=made.amount(10.0, 1.0, 3),
    later=made.estimate(1.0, 1.0, 3),
    rate=None,
    peak=None,
    compile_ms=None,
    warming_ms=made.amount(120.0),
    repaid=[],
    advice=[],
)


def said(**different: object) -> list[str]:
    return list(sentences(dataclasses.replace(BREAKDOWN, **different)))  # type: ignore[arg-type]


def about(word: str, **different: object) -> str:
    (found,) = (one for one in said(**different) if word in one)
    return found


def test_every_part_has_its_time_and_its_share_of_the_epoch() -> None:
    found = said()
    assert found[0].startswith("An epoch of 100 full steps takes 2.00 s (1.90 to 2.10 s); 500 ms of it (25 %) is what")
    assert found[1].startswith("Feeding: 3.00 ms a step, 15 % of the epoch")
    assert found[2].startswith("Python and framework: 2.00 ms a step, 10 % of the epoch")
    assert found[3].startswith("Computation: 10.0 ms a step (9.00 to 11.0 ms), 50 % of the epoch")
    assert found[-2].startswith("Until it was steady, the training took 120 ms longer")
    assert found[-1] == "Nothing that was measured is proven to make it faster."
    assert len(found) == 6


def test_where_a_column_differs_from_itself_there_is_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerasbench.report.explanation.believed", lambda row: False)
    assert said()[-1] == "No advice: a column measured twice differs from itself."


@pytest.mark.parametrize(
    ("times", "text"),
    [(1.06, "a step took 1.06 times as long (1.00 to 1.12) as before."), (0.9, "0.900 times as long (0.849 to 0.954)")],
)
def test_a_step_that_took_another_time_when_its_parts_were_measured_is_named(times: float, text: str) -> None:
    assert text in about("When the parts were measured", later=made.estimate(times, times * 1.06, 3))
    assert not any("When the parts" in one for one in said(later=made.estimate(1.04, 1.1, 3)))  # a twentieth is not


def test_a_rate_is_told_with_the_peak_that_it_is_a_share_of() -> None:
    assert "computes 32.0 GFLOP/s, 25 % of the 128 that" in about(
        "GFLOP", rate=made.amount(32e9), peak=made.amount(128e9)
    )
    assert not any("GFLOP" in one for one in said(rate=made.amount(32e9)))


def test_compiling_is_spoken_of_where_it_was_measured() -> None:
    assert "takes 1.20 s longer than the same call later" in about("compiling", compile_ms=made.amount(1_200.0))
    assert not any("compiling" in one for one in said())


def test_who_repays_what_is_told_from_this_case() -> None:
    other = Column("jax", "cpu")
    found = said(repaid=[BreakEven(MINE, other, 300.0, 77.5), BreakEven(other, MINE, 300.0, 77.5)])
    assert "Against jax cpu, it repays its longer first step (300 ms) after 78 steps." in found
    assert "Against it, jax cpu repays its longer first step (300 ms) after 78 steps." in found


HALF = made.estimate(0.5, 0.56, 3)


@pytest.mark.parametrize(
    ("what", "column", "text"),
    [
        (Help.BATCH, Column("torch", "cpu", Options(batch=128)), "A larger batch would help: batch=128 needs"),
        (Help.JIT, Column("torch", "cpu", Options(jit=True)), "jit=on would help: a step needs"),
        (Help.DEVICE, Column("torch", "gpu"), "Another device would help: on torch gpu a step needs"),
        (Help.PREPARED, MINE, "Prepared data would help: with prepared batches, a step needs"),
    ],
)
def test_each_kind_of_help_is_told_with_what_is_left(what: Help, column: Column, text: str) -> None:
    found = said(advice=[Advice(what, column, HALF)])
    assert found[-1].startswith(f"{text} 50 % of today's time (44.6 to 56.0 %)")
    assert not any("Nothing that was measured" in one for one in found)


def test_a_page_has_a_paragraph_for_each_cell() -> None:
    other = dataclasses.replace(BREAKDOWN, column=Column("jax", "gpu:1", Options(jit=True)))
    text = drawn(section([BREAKDOWN, other]))
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["## Where the time goes", "### dense, torch cpu", "### dense, jax gpu:1 jit=on"]
    assert sum(line.startswith("- ") for line in text.splitlines()) == 12
    assert drawn(section([])) == ""
