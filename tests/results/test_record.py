import dataclasses

import pytest

from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import CaseKey, Column, Device, Options, Size
from kerasbench.results.record import INTERRUPTED, UNWRITTEN, Group, ScenarioRecord
from tests import made


def test_a_case_s_column_leaves_out_the_size_which_makes_a_row_of_its_own() -> None:
    trial = made.trial(options=Options(jit=False, batch=64), device=Device("cuda", 1))
    assert trial.case == CaseKey("dense", "default", trial.column, Size(64))
    assert trial.column == Column("torch", "gpu:1", Options(jit=False))
    assert trial.group == Group("dense", "default", sized=True)
    assert made.trial().group == Group("dense", "default", sized=False)


@pytest.mark.parametrize(("severity", "disturbed"), [(Severity.INVALID, True), (Severity.WARN, False)])
def test_a_trial_is_disturbed_by_what_invalidates_it(severity: Severity, disturbed: bool) -> None:
    assert made.trial(noise=(Signal("others", severity, "40%"),)).disturbed is disturbed
    assert not made.trial().disturbed


def test_a_case_has_changed_where_its_file_has_and_a_twin_s_where_the_twin_has() -> None:
    scenario = ScenarioRecord("a", made.entry().description, {"torch": "b"})
    assert scenario.source("torch", native=False) == ("a", "")
    assert scenario.source("torch", native=True) == ("a", "b")
    assert scenario.source("jax", native=True) == ("a", "")


@pytest.mark.parametrize(
    ("reason", "unfinished"),
    [("", True), (INTERRUPTED, True), (UNWRITTEN, True), ("all 5 rounds are done", False)],
)
def test_a_run_that_did_not_decide_to_stop_is_unfinished(reason: str, unfinished: bool) -> None:
    assert dataclasses.replace(made.record(), stopped_because=reason).unfinished is unfinished
