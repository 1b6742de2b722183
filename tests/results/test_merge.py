"""Several runs as one: what is taken from which, and what is still said of where it came from."""

import dataclasses
from pathlib import Path

from kerasbench.analysis.cases import Row
from kerasbench.analysis.findings import findings
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.report import tables
from kerasbench.report.conditions import heading, measured, warnings
from kerasbench.results import record as results_asked
from kerasbench.results.folder import Outline, merge, merge_outlined, outline
from kerasbench.results.record import Counted, Record
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
    asked = results_asked.RunConfig(effort=effort, explain=explain)
    return dataclasses.replace(made.record(*trials, rounds=rounds), config=asked, started=f"2026-01-{day:02}")


SWEEP = results_asked.Effort(protocol=results_asked.SWEEP)


def rows(*records: Record) -> dict[str, Row]:
    return {row.label: row for row in summarize(merge(records)).rows}


def step_ms(row: Row) -> float:
    found = row.cases[Column("torch", "cpu")].estimate(row.headline)
    assert found is not None
    return round(found.value, 1)


def test_of_two_runs_the_newer_is_taken() -> None:
    assert step_ms(rows(run(1.0), run(2.0, day=2))["dense"]) == 2.0


def test_default_columns_go_before_newer_options() -> None:
    found = rows(run(1.0), run(2.0, options=Options(jit=False), day=2))
    assert list(found["dense"].cases) == [Column("jax", "cpu"), Column("torch", "cpu")]


def test_a_run_goes_before_a_newer_comparison_of_versions() -> None:
    versus = run(2.0, options=Options(environment="new"), day=2)
    versus.config = dataclasses.replace(versus.config, versus=["old", "new"])
    assert step_ms(rows(run(1.0), versus)["dense"]) == 1.0
    (alone,) = summarize(merge([versus])).rows
    assert alone.origin.versus == ("old", "new")


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


def test_what_was_counted_of_a_workload_is_kept_with_its_row() -> None:
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
    found = findings(merge([run(1.0), run(1.0, "conv", 1)]))
    summary = found.summary
    assert {row.label: place.first for row, place in zip(summary.rows, summary.rankings, strict=True)} == {
        "conv": None,
        "dense": Column("torch", "cpu"),
    }
    assert "Fewer than 3 rounds: no interval and no verdict: conv. Remedy" in drawn(warnings(found))
    alone = findings(merge([run(1.0, "conv", 1)]))
    assert alone.summary.rankings[0].first == Column("torch", "cpu")
    assert "nothing is proven" in drawn(tables.training(alone))


def test_a_round_that_was_left_open_stays_left_out() -> None:
    interrupted = dataclasses.replace(run(1.0, "conv", 2), rounds_completed=1)
    found = rows(run(1.0, rounds=5), interrupted)
    assert len(found["conv"].cases[Column("torch", "cpu")].trials) == 1


def test_the_heading_is_of_one_run_and_says_that_there_are_others() -> None:
    sweep = run(1.0, rounds=12, options=BATCH, effort=SWEEP, day=2)
    said = drawn(heading(findings(merge([run(1.0), sweep]))))
    assert "Started 2026-01-02, 12 complete rounds" in said
    assert "The rows come from 2 runs, of which this is one." in said
    assert "of which this is one" not in drawn(heading(findings(merge([run(1.0), run(1.0, day=2)]))))


def test_each_row_says_which_data_it_was_fed() -> None:
    real = run(1.0, "conv")
    real.config = dataclasses.replace(real.config, data="real")
    for record in (real, fed := run(1.0, day=2)):
        for index, scenario in enumerate(record.scenarios):
            (workload,) = scenario.description.workloads
            real_data = dataclasses.replace(workload, data="MNIST", has_real_data=True)
            description = dataclasses.replace(scenario.description, workloads=[real_data])
            record.scenarios[index] = dataclasses.replace(scenario, description=description)
    lines = drawn(measured(findings(merge([real, fed])))).splitlines()
    assert ["MNIST, synthetic" in line for line in lines if "MNIST" in line] == [False, True]


def sized(workload: str, day: int, batch: int = 32) -> Record:
    """Return a run of a model that describes the one size that it measured."""
    made_run = run(float(day), day=day)
    (scenario,) = made_run.scenarios
    described = dataclasses.replace(made.workload(workload), batch=batch)
    description = dataclasses.replace(scenario.description, workloads=[described])
    trials = [dataclasses.replace(trial, workload=workload) for trial in made_run.trials]
    return dataclasses.replace(
        made_run, trials=trials, scenarios=[dataclasses.replace(scenario, description=description)]
    )


def test_each_size_of_a_model_has_its_row_whichever_run_measured_it() -> None:
    found = rows(sized("batch-8", 1, 8), sized("batch-64", 2, 64), sized("default", 3))
    assert {row.workload.name: step_ms(row) for row in found.values()} == {
        "batch-8": 1.0,
        "batch-64": 2.0,
        "default": 3.0,
    }


def test_a_row_is_described_by_the_run_that_it_is_taken_of() -> None:
    better = sized("default", 2)  # it lists the other workload too, which it did not measure
    listed = dataclasses.replace(
        better.scenarios[0].description, workloads=[made.workload("tiny"), made.workload("default")]
    )
    better.scenarios[0] = dataclasses.replace(better.scenarios[0], description=listed)
    found = summarize(merge([sized("tiny", 1, 8), better])).rows
    assert [(row.workload.name, row.workload.batch) for row in found] == [("tiny", 8), ("default", 32)]
