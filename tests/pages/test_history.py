import csv
import dataclasses
import io

import pytest

from kerasbench.modes import soak
from kerasbench.pages import history as drawn
from kerasbench.pages.series import history
from kerasbench.results.run import PUBLISHED, RunConfig
from tests import made
from tests.records import ALIKE, DATED, SLOWER, of_versions, versions


def test_a_ratio_within_runs_is_followed_over_dates_and_versions() -> None:
    (series,) = history(DATED)
    assert (series.row, series.column, series.over) == ("dense", "torch cpu", "jax cpu")
    # A slower machine is no change: both took twice as long on the second day.
    assert [point.ratio.value for point in series.points] == pytest.approx([3.0, 3.0, 4.4], abs=0.2)
    (panel,) = drawn.chart([series], drawn.KERAS).panels
    assert panel.names == ["3.9.0", "3.10.0", "3.15.0"]  # by version, not by letters
    assert [place for place, _ in panel.lines[0].points] == [1.0, 2.0, 3.0]
    (by_date,) = drawn.chart([series], drawn.DATE).panels
    assert [place for place, _ in by_date.lines[0].points] == [0.0, 1.0, 2.0] and not by_date.names


def test_every_line_looks_otherwise() -> None:
    (series,) = history(DATED)
    several = [dataclasses.replace(series, backend=name) for name in ("torch", "torch", "jax", *"abcd")]
    (panel,) = drawn.chart(several).panels
    assert len({line.look for line in panel.lines}) == len(several)


def test_comparisons_of_versions_are_followed_by_head_and_each_machine_by_itself() -> None:
    second = dataclasses.replace(of_versions(*versions(SLOWER)), started="2026-01-03T03:04:05Z")
    (series,) = history([second, of_versions(*versions(ALIKE))])
    assert (series.column, series.over) == ("torch cpu", "@old")
    assert [point.ratio.value for point in series.points] == pytest.approx([1.0, 1.1], abs=0.01)

    other = made.changed(DATED[0], machine={"chip": "Chip 10"})
    assert history([DATED[0], other]) == []  # one point each
    later = dataclasses.replace(other, started="2026-01-04T03:00:00Z")
    assert {line.machine.split(",")[0] for line in history([*DATED, other, later])} == {"Chip 9", "Chip 10"}
    assert history([other, dataclasses.replace(other)]) == []  # a copy is the same point


def test_runs_of_two_machines_that_begin_in_the_same_second_have_a_line_each() -> None:
    both = [made.changed(run, machine={"identifier": name}) for name in ("a", "b") for run in DATED]
    lines = list(csv.DictReader(io.StringIO(drawn.as_csv(history(both)))))
    assert len(lines) == 2 * len(DATED)


@pytest.mark.parametrize("config", [RunConfig(effort=PUBLISHED), soak.MODE.configured(RunConfig(), soak.SoakConfig())])
def test_columns_that_took_no_turns_are_in_no_series(config: RunConfig) -> None:
    other = dataclasses.replace(DATED[0], config=config)
    (series,) = history([other, *DATED[1:]])
    assert len(series.points) == len(DATED) - 1
