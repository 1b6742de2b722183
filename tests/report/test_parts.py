import dataclasses

import pytest

from kerasbench.protocol.columns import Column
from kerasbench.report import charts
from tests import made
from tests.report.test_explanation import BREAKDOWN


def test_each_cell_is_a_bar_made_of_its_parts() -> None:
    other = dataclasses.replace(BREAKDOWN, column=Column("jax", "cpu"), epoch_ms=made.amount(500.0))
    chart = charts.epoch_chart([BREAKDOWN, other])
    assert chart is not None
    (group,) = chart.groups
    assert [(bar.name, bar.text) for bar in group.bars] == [("torch", "2.00 s"), ("JAX", "500 ms")]
    sizes = {piece.name: piece.size for piece in group.bars[0].pieces}
    assert sizes == {"computation": 1000, "Python and framework": 200, "feeding": 300, "once an epoch": 500}
    assert group.end == pytest.approx(2000)


def test_a_piece_has_its_share_of_the_epoch_where_there_is_room() -> None:
    chart = charts.epoch_chart([BREAKDOWN])
    assert chart is not None
    assert [piece.label for piece in chart.groups[0].bars[0].pieces] == ["50 %", "", "15 %", "25 %"]


def test_a_part_that_was_not_seen_has_no_piece() -> None:
    chart = charts.epoch_chart(
        [dataclasses.replace(BREAKDOWN, feeding_ms=made.amount(-1.0), overhead_ms=made.amount(-50.0))]
    )
    assert chart is not None
    names = [piece.name for piece in chart.groups[0].bars[0].pieces]
    assert names == ["computation", "Python and framework"]


def test_of_nothing_there_is_no_chart() -> None:
    assert charts.epoch_chart([]) is None
