import csv
import dataclasses
import io

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column
from kerasbench.report.pages import as_csv
from kerasbench.results.run import Run
from tests import made


def rows(*runs: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv([summarize(run) for run in runs]))))


def test_runs_and_machines_of_one_chip_are_told_apart() -> None:
    runs = [
        made.changed(made.record(trial), machine={"identifier": identifier})
        for identifier in ("aaa", "bbb", "node-7", "")
        for trial in (made.trial(), made.trial(failure=made.FAILURE))
    ]
    runs[0] = dataclasses.replace(runs[0], started="2026-01-03T00:00:00Z")
    lines = rows(*runs)
    assert list(dict.fromkeys(line["host"] for line in lines)) == ["aaa", "bbb", "node-7", ""]
    assert {line["machine"] for line in lines} == {"Chip 9"}
    assert {line["started"] for line in lines} == {run.started for run in runs}


def test_the_ratio_of_columns_that_did_not_fit_into_memory_together_is_that_of_the_page() -> None:
    steps = {1: {"jax": 2.0, "torch": 1.0}, 2: {"jax": 6.0, "tensorflow": 9.0}}  # the machine slows down in between
    trials = [
        made.in_block(
            2 * index + block, made.sliced([ms * (1 + index / 100)] * 6), round_index=1 + index, backend=backend
        )
        for index in range(3)
        for block, columns in steps.items()
        for backend, ms in columns.items()
    ]
    run = made.record(*trials, rounds=3)
    (ranking,) = summarize(run).rankings
    contrast = made.known(ranking.over_fastest(Column("tensorflow", "cpu")))
    lines = {(line["backend"], line["metric"]): line for line in rows(run)}
    assert float(lines["tensorflow", "train_step_ms"]["ratio"]) == pytest.approx(contrast.ratio.value)
    assert float(lines["tensorflow", "steady_step_ms"]["ratio"]) > 2.9
