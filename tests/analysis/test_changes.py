import dataclasses

import pytest

from kerasbench.analysis.changes import cell_label, compare
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.verdicts import Verdict
from kerasbench.exchange.options import Options
from kerasbench.report import comparison
from kerasbench.results.asked import PUBLISHED, Asked
from kerasbench.results.record import Record
from tests import made
from tests.report.table import drawn

TORCH = ("dense", "default", "torch", "cpu", "")


def run(*steps_ms: float, backend: str = "torch", started: str = "2026-01-01", name: str = "dense") -> Record:
    trials = [
        made.trial(index, name, backend, found=made.measurement(step, overhead_ms=0))
        for index, step in enumerate(steps_ms, start=1)
    ]
    return dataclasses.replace(made.record(*trials, rounds=len(steps_ms)), started=started)


OLD = run(2.0, 2.02, 1.98)


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (run(2.5, 2.52, 2.48), Verdict.SLOWER),
        (run(1.5, 1.52, 1.48), Verdict.FASTER),
        (run(2.0, 2.01, 1.99), Verdict.SAME),
        (run(2.0, 3.0, 4.0), Verdict.INCONCLUSIVE),
        (run(4.0, 4.0), Verdict.INCONCLUSIVE),  # two trials have no interval
    ],
)
def test_a_cell_is_judged_by_welch(new: Record, verdict: Verdict) -> None:
    (change,) = compare([OLD], [new]).changes
    assert (change.cell, change.verdict) == (TORCH, verdict)


def test_a_regression_is_a_slower_cell_or_one_that_fails_now() -> None:
    assert compare([OLD], [run(2.5, 2.52, 2.48)]).regressions == [TORCH]
    failed = made.record(made.trial(1, failure=made.FAILURE))
    found = compare([OLD], [failed])
    assert (found.regressions, found.vanished) == ([TORCH], [])
    assert compare([OLD], [run(1.5, 1.52, 1.48)]).regressions == []
    assert compare([failed], [failed]).regressions == []


def test_new_and_vanished_cells_are_named() -> None:
    found = compare([OLD], [run(1.0, backend="jax")])
    assert (found.changes, found.added, found.vanished) == ([], [("dense", "default", "jax", "cpu", "")], [TORCH])
    assert found.overall is None
    text = drawn(comparison.changes(found, "old", "new"))
    assert "New: dense jax cpu." in text
    assert "No longer measured: dense torch cpu." in text


def test_a_side_that_is_of_another_machine_in_part_has_no_verdicts() -> None:
    here, there = (dataclasses.replace(made.MACHINE, host=host) for host in ("a", "b"))
    mixed = [OLD, dataclasses.replace(OLD, machine=here)]
    new = run(2.5, 2.52, 2.48)
    assert compare(mixed, [dataclasses.replace(new, machine=here)]).changes[0].verdict is Verdict.SLOWER
    found = compare(mixed, [dataclasses.replace(new, machine=there)])
    assert (found.incomparable, found.changes[0].verdict) == ("Different machines", None)


def test_between_machines_there_are_ratios_and_no_verdicts() -> None:
    other = dataclasses.replace(run(1.0, 1.0, 1.01), machine=dataclasses.replace(made.MACHINE, chip="Chip 10"))
    found = compare([OLD], [other])
    assert found.incomparable == "Different machines"
    assert found.changes[0].verdict is None
    assert found.overall == pytest.approx(0.5, rel=0.01)
    assert found.regressions == []
    assert "Different machines: there descriptive only" in drawn(comparison.changes(found, "a", "b"))


def test_between_protocols_there_are_no_verdicts_either() -> None:
    asked = dataclasses.replace(OLD.asked, effort=PUBLISHED)
    found = compare([OLD], [dataclasses.replace(run(4.0, 4.0, 4.01), asked=asked)])
    assert found.changes[0].verdict is None
    assert "Different protocols" in drawn(comparison.changes(found, "a", "b"))


def test_a_changed_scenario_is_marked() -> None:
    changed = dataclasses.replace(OLD.scenarios[0], file_hash="another")
    found = compare([OLD], [dataclasses.replace(OLD, scenarios=[changed])])
    assert found.changes[0].source_changed
    assert "dense torch cpu ⚠" in drawn(comparison.changes(found, "a", "b"))


def test_of_several_runs_the_newest_that_has_a_regime_counts() -> None:
    older, newer = run(9.0, 9.0, 9.0, started="2026-01-01"), run(2.0, 2.0, 2.0, started="2026-01-02")
    found = compare([older, newer], [newer, older])
    assert found.changes[0].old.value == found.changes[0].new.value == pytest.approx(2.0)


def test_labels_hold_what_differs() -> None:
    assert cell_label(TORCH) == "dense torch cpu"
    assert cell_label(("mnist", "tiny", "jax", "gpu", "threads=1")) == "mnist/tiny jax gpu threads=1"


def test_machines_stand_side_by_side() -> None:
    other = dataclasses.replace(run(1.0, 1.0, 1.0), machine=dataclasses.replace(made.MACHINE, chip="Chip 10"))
    text = drawn(comparison.side_by_side([("m1", summarize(OLD)), ("box", summarize(other))]))
    header, _, row = text.splitlines()[2:5]
    assert [cell.strip() for cell in header.strip("|").split("|")] == [
        "scenario", "fastest measured", "m1: torch cpu", "box: torch cpu",
    ]  # fmt: skip
    assert "2.00 ms" in row and "1.00 ms" in row


def test_sizes_of_a_sweep_are_cells_of_their_own_and_compared_by_the_step_inside_an_epoch() -> None:
    def sweep(factor: float) -> Record:
        trials = [
            made.trial(index, found=made.measurement(step * factor + index / 1000), options=Options(batch=batch))
            for batch, step in ((1, 1.0), (8, 5.0))
            for index in (1, 2, 3)
        ]
        return made.record(*trials, rounds=3)

    found = compare([sweep(1.0)], [sweep(2.0)])
    assert [(change.cell[-1], change.verdict) for change in found.changes] == [
        ("batch=1", Verdict.SLOWER),
        ("batch=8", Verdict.SLOWER),
    ]
    assert [change.old.value for change in found.changes] == pytest.approx([1.0, 5.0], rel=0.01)


def test_cells_that_were_measured_by_another_protocol_have_no_verdict() -> None:
    published = dataclasses.replace(run(9.0, 9.1, 9.2), asked=Asked(effort=PUBLISHED))
    found = compare([OLD, run(1.0, 1.01, 1.02, name="conv")], [published, run(2.0, 2.01, 2.02, name="conv")])
    assert [(change.cell[0], change.verdict) for change in found.changes] == [("conv", Verdict.SLOWER), ("dense", None)]
    text = drawn(comparison.changes(found, "old", "new"))
    assert "Different protocols in 1 cell (the published epochs hold the compilation): there descriptive only" in text
    assert "Welch" in text


def test_a_control_is_no_cell_of_its_own() -> None:
    def twice(factor: float) -> Record:
        options = (Options(), Options(control=True))
        trials = [
            made.trial(index, options=one, found=made.measurement(factor * (2 + index / 100)))
            for index in (1, 2, 3)
            for one in options
        ]
        return made.record(*trials, rounds=3)

    (change,) = compare([twice(1.0)], [twice(1.5)]).changes
    assert (change.cell, change.verdict) == (TORCH, Verdict.SLOWER)
