import io

import pytest

from kerasbench.analysis.findings import findings
from tests import made
from tests.report.test_bars import found
from tests.report.test_explanation import BREAKDOWN

pytest.importorskip("matplotlib")

from kerasbench.report import picture


def test_a_figure_shows_in_a_notebook_and_is_saved_with_its_labels() -> None:
    figure = picture.figure_of(found(jax=1.0, torch=4.0))
    assert figure is not None
    assert figure._repr_png_().startswith(b"\x89PNG")
    image = io.BytesIO()
    figure.savefig(image, format="svg")
    assert b"<!-- dense -->" in image.getvalue() or b">dense<" in image.getvalue()


def test_ratios_are_drawn_where_there_are_any_and_times_where_there_is_one_column() -> None:
    for several, axis in (
        (found(jax=1.0, torch=4.0), "in times of the fastest"),
        (found(jax=1.0), "training step, ms"),
    ):
        figure = picture.figure_of(several)
        assert figure is not None
        assert axis in figure.axes[0].get_xlabel()


def test_of_nothing_there_is_no_figure() -> None:
    assert picture.figure_of(findings(made.record(made.trial(failure=made.FAILURE)))) is None


def test_of_an_explanation_the_parts_of_an_epoch_are_drawn() -> None:
    figure = picture.figure_of_parts([BREAKDOWN])
    assert figure is not None
    assert "epoch" in figure.axes[0].get_xlabel()
    assert picture.figure_of_parts([]) is None
