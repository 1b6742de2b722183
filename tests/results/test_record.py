"""What stands in a result file: what was asked for, what a trial is called."""

import dataclasses
import sys

import pytest

from kerasbench.protocol.columns import CaseKey, Column, Device, Options, Size
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results.run import DEFAULT, INTERRUPTED, QUICK, SWEEP, UNWRITTEN, Group, ScenarioFacts
from kerasbench.worker.clock import STEADY_WINDOW
from tests import made
from tests.repository import ROOT, printed


@pytest.mark.parametrize("plan", [DEFAULT.plan, QUICK.plan, SWEEP])
def test_the_longest_warm_up_holds_the_slices_by_which_it_is_judged(plan: TrialPlan) -> None:
    # K is a power of two, so a slice may last twice as long as it must; two more are the least that finds K.
    assert plan.warmup_max_ns >= (2 * STEADY_WINDOW + 2) * 2 * plan.slice_ns


def test_a_case_s_column_leaves_out_the_size_which_makes_a_row_of_its_own() -> None:
    trial = made.trial(options=Options(jit=False, batch=64), device=Device("cuda", 1))
    assert trial.case == CaseKey("dense", "default", trial.column, Size(64))
    assert trial.column == Column("torch", "gpu:1", Options(jit=False))
    assert trial.group == Group("dense", "default", sized=True)
    assert made.trial().group == Group("dense", "default", sized=False)


def test_a_case_has_changed_where_its_file_has_and_a_baseline_s_where_the_baseline_has() -> None:
    scenario = ScenarioFacts("a", made.entry().description, {"torch": "b"})
    bare = Options(native=True)
    assert scenario.source(Column("torch", "cpu")) == ("a", "")
    assert scenario.source(Column("torch", "cpu", bare)) == ("a", "b")
    assert scenario.source(Column("jax", "cpu", bare)) == ("a", "")


def test_a_run_that_did_not_decide_to_stop_is_unfinished() -> None:
    for reason in ("", INTERRUPTED, UNWRITTEN, "all 5 rounds are done"):
        assert dataclasses.replace(made.record(), stopped_because=reason).unfinished is ("done" not in reason)


@pytest.mark.parametrize("which", ["results", "json"])
def test_the_schemas_in_docs_are_those_of_the_types(which: str) -> None:
    words = ["docs/tools/schema.py", *([which] if which == "json" else [])]
    page = (ROOT / "docs" / f"{which}.schema.json").read_text("utf-8")
    assert page == printed(sys.executable, *words), f"python {' '.join(words)} > docs/{which}.schema.json"
