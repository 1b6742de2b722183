import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Options
from kerasbench.report import plot
from kerasbench.report.pages import draw
from kerasbench.results.store import Store
from tests import made
from tests.report.test_plot import SVG, groups, texts
from tests.report.test_sweep import CROSSING, swept

pytest.importorskip("matplotlib")


def test_a_sweep_is_an_image_in_both_forms() -> None:
    found = findings(swept(**CROSSING))
    assert ET.fromstring(plot.step_over_size(found) or b"").tag == f"{SVG}svg"
    assert (plot.step_over_size(found, "png") or b"").startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(("rounds", "intervals"), [(1, 0), (3, 8)])
def test_each_series_has_a_line_its_intervals_and_its_name(rounds: int, intervals: int) -> None:
    image = plot.step_over_size(findings(swept(rounds, **CROSSING))) or b""
    assert len(groups(image, "series-")) == 2
    assert len(groups(image, "interval-")) == intervals
    assert len(groups(image, "crossing")) == 1
    assert {"JAX", "torch", "1", "8", "64", "512", "step inside an epoch, ms"} <= set(texts(image))


def test_each_axis_that_was_varied_has_a_panel() -> None:
    trials = [
        made.trial(1, options=Options(batch=batch, width=width), found=made.measurement(batch * width))
        for batch in (1, 2)
        for width in (1.0, 2.0)
    ]
    image = plot.step_over_size(findings(made.record(*trials))) or b""
    labels = {text.split(",")[0] for text in texts(image) if "logarithmic" in text}
    assert labels == {
        "batch of dense width=1", "width of dense batch=1", "batch of dense width=2", "width of dense batch=2",
    }  # fmt: skip


def test_nothing_swept_has_no_figure_and_a_sweep_alone_no_other() -> None:
    assert plot.step_over_size(findings(made.record(made.trial()))) is None
    assert plot.step_times(findings(swept(**CROSSING))) is None


def test_a_series_of_which_all_failed_is_left_out() -> None:
    trials = [made.trial(1, failure=made.FAILURE, options=Options(batch=batch)) for batch in (1, 2)]
    assert plot.step_over_size(findings(made.record(*trials))) is None


def test_report_draws_it_beside_the_others(tmp_path: Path) -> None:
    Store.create(tmp_path, "2026-01-02T03:04:05Z").finish(swept(**CROSSING))
    names = [file.name.removeprefix("chip-9-")[7:] for file in draw([tmp_path], tmp_path / "plots")]
    assert names == ["sweep.png", "phases.png"]


@pytest.mark.parametrize(
    ("ends", "apart"), [([1.0], True), ([1.0, 9.0], True), ([5.0, 5.2], False), ([9, 1, 9.1], False)]
)
def test_lines_that_end_near_each_other_are_named_in_a_legend(ends: list[float], apart: bool) -> None:
    assert plot._are_apart(ends, (0.1, 100.0)) is apart


def test_a_crossover_is_told_with_its_interval() -> None:
    (told,) = (
        text
        for text in texts(plot.step_over_size(findings(swept(**CROSSING))))
        if text.startswith("batch ") and "–" in text
    )
    assert "(" in told
