"""Several runs as one: what is taken from which, and what is still said of where it came from."""

import dataclasses
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.summary import summarize
from kerasbench.exchange.options import Options
from kerasbench.report import training
from kerasbench.report.heading import heading, measured
from kerasbench.report.warned import warnings
from kerasbench.results import asked as results_asked
from kerasbench.results.asked import Counted
from kerasbench.results.merge import ENOUGH_ROUNDS, Outline, merge, merge_outlined, outline
from kerasbench.results.record import Record
from tests import made
from tests.report.table import drawn

PLAIN, BATCH = Options(), Options(batch=128)


def run(
    step_ms: float,
    name: str = "dense",
    rounds: int = 3,
    options: Options = PLAIN,
    effort: results_asked.Effort = results_asked.DEFAULT,
    explain: bool = False,
    day: int = 1,
    backends: tuple[str, ...] = ("torch", "jax"),
) -> Record:
    trials = [
        made.trial(index, name, backend, found=made.measurement(step * (1 + index / 1000), 0), options=options)
        for index in range(1, rounds + 1)
        for backend, step in zip(backends, (step_ms, 2 * step_ms), strict=False)
    ]
    asked = results_asked.Asked(effort=effort, explain=explain)
    return dataclasses.replace(made.record(*trials, rounds=rounds), asked=asked, started=f"2026-01-{day:02}")


SWEEP = results_asked.Effort(protocol=results_asked.SWEEP)


def rows(*records: Record) -> dict[str, Row]:
    return {row.label: row for row in summarize(merge(records)).rows}


def step_ms(row: Row) -> float:
    found = row.cells["torch", "cpu", ""].estimate(row.headline)
    assert found is not None
    return round(found.value, 1)


def test_of_two_runs_the_newer_is_taken() -> None:
    assert step_ms(rows(run(1.0), run(2.0, day=2))["dense"]) == 2.0


def test_a_run_with_intervals_goes_before_a_newer_one_without() -> None:
    assert step_ms(rows(run(1.0), run(2.0, rounds=1, day=2))["dense"]) == 1.0


def shown(*records: Record) -> tuple[list[str], list[str]]:
    """Return the backends of the one row, and the notes on runs that it does not show."""
    summary = summarize(merge(records))
    (row,) = summary.rows
    lines = found.lines if (found := warnings(summary)) else []
    return [column[0] for column in row.cells], [line for line in lines if "is on its own page" in line]


def test_a_newer_run_of_one_backend_does_not_make_the_others_vanish_and_is_named() -> None:
    backends, (note,) = shown(run(1.0), run(2.0, backends=("torch",), day=2))
    assert backends == ["jax", "torch"]
    assert "dense torch cpu (the newer run of 2026-01-02)" in note
    assert "jax" not in note


def test_few_rounds_of_all_stay_where_a_newer_run_of_one_backend_has_enough() -> None:
    assert shown(run(1.0, rounds=1), run(2.0, backends=("torch",), day=2))[0] == ["jax", "torch"]


def test_a_newer_run_of_the_same_backends_or_more_takes_the_place() -> None:
    assert shown(run(1.0, backends=("torch",)), run(2.0, day=2)) == (["jax", "torch"], [])
    backends, (note,) = shown(run(1.0, options=Options(jit=True)), run(2.0, day=2))
    assert (backends, "the older run" in note) == (["jax", "torch"], True)  # its other options make no page stand still
    assert "dense jax cpu jit=on, torch cpu jit=on (" in note


def with_jax(record: Record, round_index: int) -> Record:
    """Return a run in which jax failed, in round 0 where it could not be tried at all."""
    failed = made.trial(round_index, backend="jax", failure=made.FAILURE)
    others = [one for one in record.trials if one.backend != "jax"]
    return dataclasses.replace(record, trials=[*others, failed])


@pytest.mark.parametrize("round_index", [0, 1])
def test_what_a_newer_run_failed_at_is_shown_as_failed(round_index: int) -> None:
    failing = with_jax(run(2.0, day=2), round_index)
    assert shown(run(1.0), failing) == (["jax", "torch"], [])
    assert step_ms(rows(run(1.0), failing)["dense"]) == 2.0


@pytest.mark.parametrize(("round_index", "taken_ms"), [(0, 3.0), (1, 2.0)])
def test_what_could_not_be_tried_holds_no_place_and_what_failed_does(round_index: int, taken_ms: float) -> None:
    torch_alone = run(3.0, backends=("torch",), day=3)
    failing = with_jax(run(2.0, day=2), round_index)
    assert step_ms(rows(failing, torch_alone)["dense"]) == taken_ms


TRIED = (("torch",), ("jax",), ("torch", "jax"), ("tensorflow", "jax"))


@pytest.mark.parametrize("tried", list(permutations(TRIED)))
def test_no_backend_vanishes_from_a_page_by_a_later_run(tried: tuple[tuple[str, ...], ...]) -> None:
    runs = [run(1.0, backends=backends, day=day) for day, backends in enumerate(tried, start=1)]
    in_time = [shown(*runs[:count])[0] for count in range(1, len(runs) + 1)]
    assert all(set(before) <= set(after) for before, after in pairwise(in_time))
    assert shown(*reversed(runs))[0] == in_time[-1]


def test_a_run_goes_before_a_newer_explanation() -> None:
    assert step_ms(rows(run(1.0), run(2.0, explain=True, day=2))["dense"]) == 1.0


def test_what_has_been_published_in_full_is_taken_where_nothing_else_is() -> None:
    published = run(5.0, "conv", 1, effort=results_asked.PUBLISHED, day=3)
    found = rows(run(1.0), published)
    assert set(found) == {"dense", "conv"}
    assert found["conv"].origin.protocol == "published"


def test_a_sweep_does_not_take_the_place_of_what_was_measured_at_the_published_size() -> None:
    found = rows(run(1.0), run(9.0, options=BATCH, effort=SWEEP, day=2))
    assert {label: step_ms(row) for label, row in found.items()} == {"dense": 1.0, "dense batch=128": 9.0}


def test_an_explanation_s_larger_batch_does_not_take_the_place_of_a_sweep() -> None:
    swept, explained = run(9.0, options=BATCH, effort=SWEEP), run(7.0, options=BATCH, explain=True, day=2)
    assert step_ms(rows(swept, explained)["dense batch=128"]) == 9.0
    assert step_ms(rows(explained)["dense batch=128"]) == 7.0


def test_what_was_counted_of_a_regime_is_kept_with_its_row() -> None:
    counted = [Counted("dense", "default", 1e6), Counted("conv", "default", 2e6)]
    explained = dataclasses.replace(run(7.0, explain=True), flops=counted)
    assert merge([run(1.0, "conv", day=2), explained]).flops == counted[:1]


def test_only_runs_that_something_is_taken_from_are_read() -> None:
    swept = run(9.0, options=BATCH, effort=SWEEP)
    records = {Path("old"): run(1.0), Path("new"): run(2.0, day=2), Path("swept"): swept}
    outlines = [outline(record, file) for file, record in records.items()]
    read: list[Path] = []

    def load(one: Outline) -> Record:
        read.append(one.file)
        return records[one.file]

    merge_outlined(outlines, load)
    assert read == [Path("new"), Path("swept")]
    assert merge([made.record()]).trials == []


def test_what_has_too_few_rounds_is_not_called_faster_because_others_have_enough() -> None:
    summary = summarize(merge([run(1.0), run(1.0, "conv", 1)]))
    assert {row.label: place.first for row, place in zip(summary.rows, summary.standings, strict=True)} == {
        "conv": None,
        "dense": ("torch", "cpu", ""),
    }
    assert "Fewer than 3 rounds: no interval and no verdict: conv. Remedy" in drawn(warnings(summary))
    alone = summarize(merge([run(1.0, "conv", 1)]))
    assert alone.standings[0].first == ("torch", "cpu", "")
    assert "nothing is proven" in drawn(training.training(alone))


def test_a_round_that_was_left_open_stays_left_out() -> None:
    interrupted = dataclasses.replace(run(1.0, "conv", 2), rounds_completed=1)
    found = rows(run(1.0, rounds=5), interrupted)
    assert len(found["conv"].cells["torch", "cpu", ""].trials) == 1


def test_the_heading_is_of_one_run_and_says_that_there_are_others() -> None:
    sweep = run(1.0, rounds=12, options=BATCH, effort=SWEEP, day=2)
    said = drawn(heading(summarize(merge([run(1.0), sweep]))))
    assert "Begun 2026-01-01, 3 complete rounds" in said
    assert "The rows come from 2 runs, of which this is one." in said
    assert "of which this is one" not in drawn(heading(summarize(merge([run(1.0), run(1.0, day=2)]))))


def test_each_row_says_which_data_it_was_fed() -> None:
    real = run(1.0, "conv")
    real.asked = dataclasses.replace(real.asked, data="real")
    for record in (real, fed := run(1.0, day=2)):
        for index, scenario in enumerate(record.scenarios):
            (regime,) = scenario.description.regimes
            real_data = dataclasses.replace(regime, data="MNIST", has_real_data=True)
            description = dataclasses.replace(scenario.description, regimes=[real_data])
            record.scenarios[index] = dataclasses.replace(scenario, description=description)
    lines = drawn(measured(summarize(merge([real, fed])))).splitlines()
    assert ["MNIST, synthetic" in line for line in lines if "MNIST" in line] == [False, True]


def test_enough_rounds_are_those_of_an_interval() -> None:
    assert ENOUGH_ROUNDS == MIN_TRIALS_FOR_INTERVAL


def labelled(step_ms: float, *labels: str, day: int, versus: tuple[str, ...] = ()) -> Record:
    """Return a run of these labels of both backends."""
    runs = [run(step_ms, options=Options(environment=label), day=day) for label in labels]
    trials = [trial for one in runs for trial in one.trials]
    asked = dataclasses.replace(runs[0].asked, versus=list(versus))
    return dataclasses.replace(runs[0], trials=trials, asked=asked)


def columns(*records: Record) -> list[str]:
    (row,) = summarize(merge(records)).rows
    return [" ".join(filter(None, column)) for column in row.cells]


def test_a_newer_run_of_labels_alone_does_not_take_the_place_of_one_without() -> None:
    plain = ["jax cpu", "torch cpu"]
    assert columns(run(1.0), labelled(2.0, "old", "new", day=2)) == plain
    both = labelled(2.0, "", "new", day=2)
    assert columns(run(1.0), both) == ["jax cpu", "jax cpu @new", "torch cpu", "torch cpu @new"]
    assert columns(run(1.0), both, run(3.0, day=3)) == plain


def test_a_run_goes_before_a_newer_comparison_of_versions() -> None:
    assert columns(run(1.0), labelled(2.0, "", "new", day=2, versus=("", "new"))) == ["jax cpu", "torch cpu"]
    alone = summarize(merge([labelled(2.0, "old", "new", day=2, versus=("old", "new"))])).rows[0]
    assert alone.origin.versus == ("old", "new")


def sized(regime: str, day: int, batch: int = 32) -> Record:
    """Return a run of a model that describes the one size that it measured."""
    made_run = run(float(day), day=day)
    (scenario,) = made_run.scenarios
    described = dataclasses.replace(made.regime(regime), batch=batch)
    description = dataclasses.replace(scenario.description, regimes=[described])
    trials = [dataclasses.replace(trial, regime=regime) for trial in made_run.trials]
    return dataclasses.replace(
        made_run, trials=trials, scenarios=[dataclasses.replace(scenario, description=description)]
    )


def test_each_size_of_a_model_has_its_row_whichever_run_measured_it() -> None:
    found = rows(sized("batch-8", 1, 8), sized("batch-64", 2, 64), sized("default", 3))
    assert {row.regime.name: step_ms(row) for row in found.values()} == {
        "batch-8": 1.0,
        "batch-64": 2.0,
        "default": 3.0,
    }


def test_a_row_is_described_by_the_run_that_it_is_taken_of() -> None:
    better = sized("default", 2)  # it lists the other regime too, which it did not measure
    listed = dataclasses.replace(better.scenarios[0].description, regimes=[made.regime("tiny"), made.regime("default")])
    better.scenarios[0] = dataclasses.replace(better.scenarios[0], description=listed)
    found = summarize(merge([sized("tiny", 1, 8), better])).rows
    assert [(row.regime.name, row.regime.batch) for row in found] == [("tiny", 8), ("default", 32)]
