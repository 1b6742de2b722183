import xml.etree.ElementTree as ET

import pytest

from kerasbench.report import charts, svg
from kerasbench.report.sections import Bar, Chart, Group, Piece
from tests.report.test_bars import found
from tests.report.test_explanation import BREAKDOWN


def figure(chart: Chart | None) -> ET.Element:
    assert chart is not None
    return ET.fromstring(svg.drawn(chart))


def test_each_bar_has_its_name_its_number_and_a_width() -> None:
    drawn = figure(charts.ratios(found(jax=1.0, torch=4.0)))
    rows = drawn.findall(".//li[@data-backend]")
    assert [row.get("data-backend") for row in rows] == ["jax", "torch"] * 2
    assert "".join(rows[0].itertext()) == "JAX fastest, 1.02 ms"
    jax, torch = (float(row.get("width", "").rstrip("%")) for row in drawn.findall(".//li/svg/rect")[:2])
    assert 3.9 < torch / jax < 4.0


@pytest.mark.parametrize(("rounds", "lines"), [(1, 0), (3, 2)])
def test_an_interval_is_drawn_where_there_is_one(rounds: int, lines: int) -> None:
    found_lines = figure(charts.ratios(found(rounds, jax=1.0, torch=4.0))).findall(".//line[@class='interval']")
    assert len(found_lines) == 3 * lines  # the line and its two ends


def test_parts_stand_one_after_the_other_below_a_legend() -> None:
    drawn = figure(charts.epoch_chart([BREAKDOWN]))
    pieces = drawn.findall(".//li[@data-backend]/svg/rect")
    assert [piece.get("x") for piece in pieces] == ["0.00%", "50.00%", "60.00%", "75.00%"]
    assert [text.text for text in drawn.findall(".//svg/text")] == ["50 %", "15 %", "25 %"]
    assert len(drawn.findall(".//ul[@class='legend']/li")) == len(charts.PIECE_COLOURS)


def test_text_is_never_markup() -> None:
    text = "\"><script>alert('1')</script>&\x00"
    bar = Bar(text, text, [Piece(text, 1.0, "#0072B2", text)], text)
    drawn = figure(Chart(text, [Group(text, [bar], 1.0)], [(text, "#0072B2")]))
    assert {one.tag for one in drawn.iter()}.isdisjoint({"script"})
    (row,) = drawn.findall(".//li[@data-backend]")
    assert row.get("data-backend") == "\"><script>alert('1')</script>&"
