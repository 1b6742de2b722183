import pytest

from kerasbench.report import charts, plot
from tests.report.test_bars import found
from tests.report.test_explanation import BREAKDOWN
from tests.report.test_plot import groups, texts

pytest.importorskip("matplotlib")


def test_each_bar_has_its_name_and_its_number() -> None:
    image = plot.image(charts.ratios(found(jax=1.0, torch=4.0)), "svg")
    written = texts(image)
    assert {"JAX", "torch", "dense", "conv", "fastest, 1.02 ms", "1×", "4×"} <= set(written)
    assert sum(text.startswith("3.9× (") for text in written) == 2


@pytest.mark.parametrize(("rounds", "count"), [(1, 0), (3, 2)])
def test_an_interval_is_drawn_where_there_is_one(rounds: int, count: int) -> None:
    image = plot.image(charts.ratios(found(rounds, jax=1.0, torch=4.0)), "svg")
    assert len(groups(image, "interval")) == count


def test_parts_have_a_legend_and_their_shares() -> None:
    written = texts(plot.image(charts.epoch_chart([BREAKDOWN]), "svg"))
    assert {*charts.PIECE_COLOURS, "50 %", "2.00 s", "torch", "dense"} <= set(written)


def test_it_is_a_png_or_nothing() -> None:
    assert (plot.image(charts.ratios(found(jax=1.0, torch=4.0))) or b"").startswith(b"\x89PNG")
    assert plot.image(None) is None
