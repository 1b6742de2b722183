"""Figures of matplotlib, for Python alone."""

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.report import charts
from kerasbench.report.sections import Bar, BarChart, BarGroup, Piece
from tests.report.test_charts import parts, ratios, run
from tests.report.test_sweep import CROSSING, swept

pytest.importorskip("matplotlib")

import matplotlib

from kerasbench.report import plot


def texts(figure: plot.NotebookFigure) -> list[str]:
    return [one.get_text() for one in figure.findobj(matplotlib.text.Text)]


def test_bars_have_names_numbers_and_intervals() -> None:
    figure = plot.figure(ratios(run(jax=1.0, torch=4.0)))
    assert {"JAX", "torch", "dense", "conv", "fastest, 1.02 ms", "1×", "4×"} <= set(texts(figure))
    assert [len(axes.patches) for axes in figure.axes] == [2, 2]
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]  # the reference, and the interval of torch


def test_parts_have_a_legend_and_their_shares() -> None:
    assert {*charts.PIECE_COLOURS, "50 %", "2.00 s", "torch", "dense"} <= set(texts(plot.figure(parts())))


def test_a_sweep_is_lines_with_intervals_and_crossovers() -> None:
    chart = charts.curves(findings(swept(**CROSSING)))
    assert chart is not None
    (axes,) = plot.figure(chart).axes
    labels = [label for line in axes.lines if not (label := str(line.get_label())).startswith("_")]
    assert labels[:2] == ["JAX", "torch"] and labels[2].startswith("crossover at about batch ")
    assert len(axes.lines) == 2 + 8 + 1
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "log", "batch")


def test_a_notebook_shows_a_figure_and_nothing_global_is_left_behind() -> None:
    before = dict(matplotlib.rcParams)
    assert plot.figure(parts())._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


def test_names_are_text_and_no_formulas() -> None:
    name = "$\\frac{1$ \x1b[31m"
    figure = plot.figure(BarChart("", [BarGroup(name, [Bar(name, name, [Piece(name, 1.0, "#0072B2")])], 1.0)]))
    assert figure._repr_png_()
    assert "$\\frac{1$ [31m" in texts(figure)
