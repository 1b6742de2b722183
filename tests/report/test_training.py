"""The tables of the training step: who is fastest, and how sure that is."""

import dataclasses

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.protocol.columns import Options
from kerasbench.report.page import document, screen
from kerasbench.results.record import Record, RunConfig, TrialRecord
from tests import made
from tests.report import table
from tests.report.table import brief

CONTROL = "A/A control: what this machine cannot distinguish"


def trials(backend: str, *steps_ms: float, name: str = "dense") -> list[TrialRecord]:
    return [
        made.trial(index, name, backend, found=made.measurement(step, overhead_ms=0))
        for index, step in enumerate(steps_ms, start=1)
    ]


def found_in(*given: TrialRecord) -> Findings:
    return findings(made.record(*given, rounds=max(one.round for one in given)))


def verdicts(found: Findings) -> list[list[str]]:
    return table.rows(table.section(document(found), "Verdicts"))[1:]


CLEAR = trials("jax", 1.0, 1.001, 0.999)


@pytest.mark.parametrize(
    ("rival", "verdict"),
    [
        ((2.0, 2.001, 1.999), "faster"),
        ((1.002, 1.003, 1.001), "same"),
    ],
)
def test_the_fastest_is_judged_against_each_of_the_others(rival: tuple[float, ...], verdict: str) -> None:
    ((scenario, fastest, against, ratio, found, rounds),) = verdicts(found_in(*CLEAR, *trials("torch", *rival)))
    assert (scenario, fastest, against, found, rounds) == ("dense", "jax cpu", "torch cpu", verdict, "3")
    assert float(ratio.split()[0]) == pytest.approx(1 / rival[0], rel=0.01)


def test_what_is_not_decided_says_how_many_rounds_would_decide_it() -> None:
    (row,) = verdicts(found_in(*CLEAR, *trials("torch", 1.05, 1.12, 1.04)))
    assert row[4] == "inconclusive"
    assert int(row[5]) > 3
    (row,) = verdicts(found_in(*CLEAR, *trials("torch", 1.02, 1.9, 0.8)))
    assert row[4:] == ["inconclusive", "over 30"]


def test_one_round_has_no_verdicts() -> None:
    assert "## Verdicts" not in document(found_in(*trials("jax", 1.0), *trials("torch", 2.0)))


@pytest.mark.parametrize(("data", "shown"), [("synthetic", "MNIST, synthetic"), ("real", "MNIST")])
def test_a_row_says_what_it_was_fed_and_how_long_its_epoch_is(data: str, shown: str) -> None:
    record: Record = dataclasses.replace(
        made.record(*CLEAR), config=RunConfig(data="real" if data == "real" else "synthetic")
    )
    (row,) = table.rows(table.section(document(findings(record)), "What was measured"))[1:]
    assert row == ["dense", shown, "32", "100"]


def test_three_columns_fit_into_a_terminal() -> None:
    name = "mnist_linear_arrays"  # as long as the longest of the built-in ones
    columns = {"jax": 1.0, "tensorflow": 12.0, "torch": 1_234.0}
    given = [one for backend, ms in columns.items() for one in trials(backend, ms, 1.2 * ms, 0.8 * ms, name=name)]
    shown = table.on_terminal(screen(found_in(*given)))
    assert max(map(len, shown.splitlines())) <= 100
    below = shown.partition("Training step")[2]
    (line,) = (line for line in below.splitlines() if line.startswith(name))  # it is in one line
    assert line.split()[1:3] == ["0.986", "ms"]


def in_turn(backend: str, factor: float, blocks: int = 1, control: bool = False) -> list[TrialRecord]:
    """Trials that took turns, in slices that scatter by a percent."""
    slices = [factor * (1 + 0.01 * (cycle % 3)) for cycle in range(12)]
    options = Options(control=control)
    return [
        made.in_block(block, made.sliced(slices), backend=backend, options=options) for block in range(1, blocks + 1)
    ]


def test_columns_that_took_turns_are_compared_block_by_block() -> None:
    text = document(found_in(*in_turn("jax", 1.0, 3), *in_turn("torch", 2.0, 3)))
    assert "compared block by block" in text
    assert "paired by rounds" not in text
    assert "from the slices" not in text
    assert "paired by rounds" in document(found_in(*CLEAR, *trials("torch", 2.0, 2.0, 2.0)))


def test_one_block_has_a_verdict_from_its_slices_and_says_so() -> None:
    text = document(found_in(*in_turn("jax", 1.0), *in_turn("torch", 2.0)))
    (row,) = table.rows(table.section(text, "Training step"))[1:]
    assert row[1:] == ["**1.11 ms**", "2.12 ms, 1.91× ±12 %"]
    assert "Interval from the slices of fewer than 3 rounds, widened: dense." in text
    assert "no interval" not in text


def test_a_control_is_a_line_of_its_own_and_no_column() -> None:
    found = found_in(*in_turn("jax", 1.0), *in_turn("torch", 2.0), *in_turn("jax", 1.0, control=True))
    for text in (document(found), brief(found)):
        assert "- dense: jax cpu against itself: 1.00 ±" in table.section(
            text, "A/A control: what this machine cannot distinguish"
        )
        assert table.rows(table.section(text, "Training step"))[0][-2:] == ["jax cpu", "torch cpu"]
    assert "has no verdicts" not in text.replace("the row has no verdicts", "")


def test_a_control_that_is_off_takes_the_row_s_verdicts_away() -> None:
    found = found_in(*in_turn("jax", 1.0, 3), *in_turn("torch", 2.0, 3), *in_turn("jax", 1.5, 3, control=True))
    text = document(found)
    assert [row[4] for row in verdicts(found)] == ["inconclusive"]
    assert "so the row has no verdicts." in table.section(text, CONTROL)
    assert "No verdict: a column measured twice differs from itself: dense." in text
    assert "**" not in table.section(text, "Training step")


def test_columns_that_did_not_fit_into_memory_together_are_named() -> None:
    apart = [
        dataclasses.replace(one, round=1, block=block)
        for block, backends in ((1, ("jax", "tensorflow")), (2, ("jax", "torch")))
        for backend in backends
        for one in in_turn(backend, 1.0)
    ]
    text = document(found_in(*apart))
    assert "for lack of memory: dense jax cpu, tensorflow cpu; dense jax cpu, torch cpu." in text
    assert "for lack of memory" not in document(found_in(*in_turn("jax", 1.0, 3), *in_turn("torch", 1.0, 3)))


def test_a_run_without_a_trial_says_so_in_place_of_a_table() -> None:
    text = document(findings(made.record(rounds=0)))
    assert "## Training step\n\n- Nothing was measured.\n" in text
    assert "| scenario |" not in text
