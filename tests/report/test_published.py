import dataclasses

import pytest

from kerasbench.analysis.findings import Figure, Side, findings
from kerasbench.report import tables
from kerasbench.report.sections import NOTHING
from kerasbench.report.tables import beside_published
from tests import made
from tests.report import table
from tests.report.table import drawn

TITLE = "Beside the published figures"
FIGURE = Figure(
    "dense", "default", "MacBook | M1", "TensorFlow 2.9", "somewhere", Side(step_ms=(3, 3)), Side(epoch_s=(0.5, 0.7))
)


def page(monkeypatch: pytest.MonkeyPatch, *figures: Figure, name: str = "dense") -> str:
    known: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        known.setdefault((figure.scenario, figure.workload), []).append(figure)
    monkeypatch.setattr(tables, "figures", lambda: known)
    trials = [made.trial(name=name, backend="torch"), made.trial(name=name, backend="jax", failure=made.FAILURE)]
    return drawn(beside_published(findings(made.record(*trials))))


def test_both_devices_their_ratio_and_what_is_measured_stand_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(monkeypatch, FIGURE)
    lines = [line.replace("\\|", "/") for line in text.splitlines()]
    header, line = table.rows("\n".join(lines))
    assert header == [
        "scenario",
        "published CPU",
        "published GPU",
        "GPU / CPU",
        "their machine",
        "jax cpu",
        "torch cpu",
    ]
    # 100 steps in half a second to 0.7 s; against 3 ms that is the double.
    assert line == ["dense", "3.00", "5.00–7.00", "2.00", "MacBook / M1; TensorFlow 2.9", NOTHING, "2.10"]


def test_a_device_of_which_nothing_was_published_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = dataclasses.replace(FIGURE, gpu=None, hardware="a PC")
    assert table.rows(page(monkeypatch, alone))[1][1:4] == ["3.00", NOTHING, NOTHING]
    empty = dataclasses.replace(alone, gpu=Side(accuracy=0.9))
    assert table.rows(page(monkeypatch, empty))[1][1:4] == ["3.00", NOTHING, NOTHING]


def test_a_figure_that_must_not_be_believed_is_marked_and_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    flagged = dataclasses.replace(FIGURE, hardware="a PC", cpu=Side(step_ms=(3, 3), flag="never learned"))
    text = page(monkeypatch, flagged)
    assert table.rows(text)[1][1:3] == ["3.00 ⚠", "5.00–7.00"]
    assert text.count("\n- dense: the CPU run never learned.\n") == 1


def test_what_else_was_published_is_one_remark_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = dataclasses.replace(
        FIGURE, cpu=Side(step_ms=(3, 3), accuracy=0.0), gpu=Side(step_ms=(6, 6), accuracy=0.9), note="*two* runs"
    )
    assert page(monkeypatch, noted).count("- dense: accuracy 0 / 0.9; \\*two\\* runs.") == 1


def test_a_published_zero_is_a_figure() -> None:
    assert Figure("a", "b", "", "", "", Side(accuracy=0.0), None).remarks == ["accuracy 0 / –"]


def test_a_row_of_which_nothing_was_published_is_in_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page(monkeypatch, FIGURE, name="mine") == ""
    assert page(monkeypatch) == ""


@pytest.mark.parametrize(("suite", "shown"), [("published", True), (None, True), ("", False)])
def test_nothing_was_published_of_one_s_own_scenario_of_the_same_name(
    monkeypatch: pytest.MonkeyPatch, suite: str | None, shown: bool
) -> None:
    monkeypatch.setattr(tables, "figures", lambda: {("dense", "default"): [FIGURE]})
    record = made.record(made.trial())
    record.scenarios = [dataclasses.replace(one, suite=suite) for one in record.scenarios]
    assert (beside_published(findings(record)) is not None) is shown


def test_each_machine_has_a_line_with_its_batch_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(FIGURE, hardware="A100", software="Keras 3", batch=128, precision="float16")
    lines = table.rows(page(monkeypatch, dataclasses.replace(FIGURE, hardware="a PC"), other))[1:]
    assert [line[4] for line in lines] == ["a PC; TensorFlow 2.9", "A100; Keras 3; batch 128; float16"]
