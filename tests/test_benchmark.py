"""A whole run is tried with real children; here is what it does when a sweep wants further sizes."""

import dataclasses

from kerasbench import benchmark
from kerasbench.errors import ResultsError
from kerasbench.plan import Plan
from kerasbench.results import Record
from tests import made
from tests.test_refine import crossing, swept_plan


def never(planned: Plan, earlier: Record | None) -> Record:
    raise AssertionError("nothing was asked for")


def test_a_run_that_wants_no_further_sizes_stays_as_it_is() -> None:
    record = crossing(planted=1e9)
    assert benchmark._refined(swept_plan(), record, 0.0, never) is record
    assert benchmark._refined(made.plan(made.cell()), record, 0.0, never) is record


def test_further_sizes_begin_with_what_was_measured_and_end_in_one_record() -> None:
    def execute(planned: Plan, earlier: Record | None) -> Record:
        assert earlier is not None
        added = [made.trial(1, options=cell.options) for cell in planned.cells[12:]]
        return dataclasses.replace(earlier, trials=[*earlier.trials, *added])

    first = crossing()
    record = benchmark._refined(swept_plan(), first, 0.0, execute)
    assert record.started == first.started
    assert {trial.options.batch for trial in record.trials} == {1, 8, 16, 32, 64, 512}


def test_a_disk_that_takes_no_further_sizes_leaves_what_was_measured() -> None:
    def execute(planned: Plan, earlier: Record | None) -> Record:
        raise ResultsError("full")

    first = crossing()
    assert benchmark._refined(swept_plan(), first, 0.0, execute) is first
