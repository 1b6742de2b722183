"""The tables of the training step: who is fastest, and how sure that is."""

import dataclasses

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.report.page import document
from kerasbench.report.training import table_so_far
from kerasbench.results.asked import Asked
from kerasbench.results.record import Record, TrialRecord
from tests import made
from tests.report import table


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
        made.record(*CLEAR), asked=Asked(data="real" if data == "real" else "synthetic")
    )
    (row,) = table.rows(table.section(document(findings(record)), "Training step"))[1:]
    assert row[:4] == ["dense", shown, "32", "100"]


def test_what_is_shown_while_a_run_goes_on_is_the_headline_without_title_and_notes() -> None:
    found = found_in(*CLEAR, *trials("torch", 2.0, 2.0, 2.0))
    text = table_so_far(found.summary)
    assert text.startswith("| scenario ")
    assert all(line.startswith("|") for line in text.splitlines())
    assert text in document(found)
