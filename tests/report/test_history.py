"""Ratios over many runs: which are followed, how they are drawn, and the forms that other tools read."""

import csv
import dataclasses
import io
import json
from typing import Any

import pytest

from kerasbench.pages.series import history
from kerasbench.analysis.summary import summarize
from kerasbench.report import history as drawn
from kerasbench.report import markdown, pages, svg
from kerasbench.results.run import PUBLISHED, SoakConfig
from tests import made
from tests.records import ALIKE, DATED, NEW, SLOWER
from tests.records import of_versions as record
from tests.records import versions as trials


def test_a_ratio_within_runs_is_followed_over_dates_and_versions() -> None:
    (one,) = history(DATED)
    assert (one.row, one.column, one.over) == ("dense", "torch cpu", "jax cpu")
    assert [point.over.row.run[8:10] for point in one.points] == ["01", "02", "03"]
    # A slower machine is no change: both took twice as long on the second day.
    assert [point.ratio.value for point in one.points] == pytest.approx([3.0, 3.0, 4.4], abs=0.2)
    (panel,) = drawn.chart([one], drawn.KERAS).panels
    assert panel.names == ["3.9.0", "3.10.0", "3.15.0"]  # by version, not by letters
    assert [place for place, _ in panel.lines[0].points] == [1.0, 2.0, 3.0]
    (by_date,) = drawn.chart([one], drawn.DATE).panels
    assert [place for place, _ in by_date.lines[0].points] == [0.0, 1.0, 2.0] and not by_date.names
    assert by_date.axis == "days since 2026-01-01"
    picture = svg.file(drawn.chart([one], drawn.KERAS))
    assert all(f">{name}</text>" in picture for name in panel.names)
    text = markdown.rendered(drawn.page([one]))
    assert "| 2026-01-03T03:00:00Z | 3.15.0  | 2.1       | 000000000 |" in text


def test_every_line_looks_otherwise() -> None:
    (one,) = history(DATED)
    own = [dataclasses.replace(one, backend=name) for name in ("torch", "torch", "jax", *"abcd")]
    (panel,) = drawn.chart(own).panels
    assert len({line.look for line in panel.lines}) == len(own)


def test_comparisons_of_versions_are_followed_by_head_and_each_machine_by_itself() -> None:
    first = record(*trials(ALIKE))
    second = dataclasses.replace(record(*trials(SLOWER)), started="2026-01-03T03:04:05Z")
    (one,) = history([second, first])
    assert (one.column, one.over) == ("torch cpu", f"@{next(iter(ALIKE)).environment}")
    assert [point.ratio.value for point in one.points] == pytest.approx([1.0, 1.1], abs=0.01)
    assert NEW.environment not in one.column

    other = made.changed(DATED[0], machine={"chip": "Chip 10"})
    assert history([DATED[0], other]) == []  # one point each
    later = dataclasses.replace(other, started="2026-01-04T03:00:00Z")
    assert {each.machine.split(",")[0] for each in history([*DATED, other, later])} == {"Chip 9", "Chip 10"}
    assert history([other, dataclasses.replace(other)]) == []  # a copy is the same point


def test_its_csv_has_a_line_for_each_run_and_a_column_for_each_ratio() -> None:
    lines = list(csv.DictReader(io.StringIO(drawn.as_csv(history(DATED)))))
    assert list(lines[0]) == ["time", "commit", "keras", "torch", "dense torch cpu relative to jax cpu"]
    assert [line["keras"] for line in lines] == ["3.9.0", "3.10.0", "3.15.0"]
    assert float(lines[2]["dense torch cpu relative to jax cpu"]) == pytest.approx(4.4, abs=0.2)
    assert lines[0]["commit"] == f"{1:040x}" and lines[0]["time"] == "2026-01-01T03:00:00Z"


def test_runs_of_two_machines_that_begin_in_the_same_second_have_a_line_each() -> None:
    one, other = (dataclasses.replace(made.MACHINE, identifier=name) for name in ("a", "b"))
    both = [dataclasses.replace(each, machine=machine) for machine in (one, other) for each in DATED]
    lines = list(csv.DictReader(io.StringIO(drawn.as_csv(history(both)))))
    assert len(lines) == 2 * len(DATED)


@pytest.mark.parametrize("differs", [{"effort": PUBLISHED}, {"soak": SoakConfig()}])
def test_columns_that_took_no_turns_are_in_no_series(differs: dict[str, Any]) -> None:
    other = dataclasses.replace(DATED[0], config=dataclasses.replace(DATED[0].config, **differs))
    (series,) = history([other, *DATED[1:]])
    assert len(series.points) == len(DATED) - 1


def test_bencher_s_format_has_values_with_bounds_and_ratios_of_their_own() -> None:
    found = json.loads(pages.as_bmf(summarize(DATED[0])))
    assert found.keys() == {"dense jax cpu", "dense torch cpu"}
    step = found["dense torch cpu"]["train_step_ms"]
    assert step["lower_value"] < step["value"] < step["upper_value"]
    ratio = found["dense torch cpu"]["train_step_ms_ratio"]
    assert ratio["value"] == pytest.approx(step["value"] / found["dense jax cpu"]["train_step_ms"]["value"], rel=1e-3)
    assert found["dense jax cpu"]["train_step_ms_ratio"] == {"value": 1.0}
    assert all(value is not None for case in found.values() for measure in case.values() for value in measure.values())


def test_the_tidy_csv_has_versions_and_commit() -> None:
    lines = list(csv.DictReader(io.StringIO(pages.as_csv([summarize(one) for one in DATED]))))
    assert {(line["keras"], line["backend_version"], line["commit"][-1]) for line in lines} == {
        ("3.15.0", "2.1", "3"), ("3.9.0", "2.1", "1"), ("3.10.0", "2.1", "2")
    }  # fmt: skip
