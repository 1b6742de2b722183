import itertools
import xml.etree.ElementTree as ET

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.modes.sweep.tell import _chart
from kerasbench.protocol.columns import Options
from kerasbench.report import charts, svg
from kerasbench.report.sections import Bar, BarChart, BarGroup, Chart, Piece
from kerasbench.results.run import Run
from tests import made
from tests.records import CROSSING, of_backends, swept

SVG = "{http://www.w3.org/2000/svg}"


def file(chart: Chart | None) -> ET.Element:
    assert chart is not None
    return ET.fromstring(svg.file(chart))


def curves(run: Run) -> Chart | None:
    return _chart(Findings.of(run), "")


def shapes(drawn: ET.Element, tag: str, look: str) -> list[ET.Element]:
    return [shape for shape in drawn.iter(f"{SVG}{tag}") if look in shape.get("class", "").split()]


def test_each_workload_of_many_has_a_line_with_a_dot_for_each_configuration() -> None:
    drawn = file(charts.ratios(of_backends(workloads=12, jax=1.0, torch=4.0, tensorflow=2.0), ""))
    circles, squares, triangles = (shapes(drawn, tag, "dot") for tag in ("circle", "rect", "polygon"))
    assert len(circles) == len(squares) == len(triangles) == 12 + 1  # and one in the legend
    assert float(circles[1].get("cx", "")) < float(squares[1].get("x", ""))
    assert float(drawn.get("height", "")) < 500  # a screen of a phone


def test_a_crossover_of_one_round_has_no_span() -> None:
    drawn = file(curves(swept(1, **CROSSING)))
    assert (len(shapes(drawn, "line", "reference")), len(shapes(drawn, "rect", "span"))) == (1, 0)


def test_names_and_numbers_of_a_curve_do_not_overlap() -> None:
    trials = [
        made.trial(1, backend=backend, options=Options(batch=batch), found=made.measurement(batch))
        for backend in ("jax", "torch", "tensorflow")  # all end at the same time
        for batch in (1000, 1001, 1002, 4000)
    ]
    drawn = file(curves(made.record(*trials)))
    written = {text.text: float(text.get("y", "")) for text in drawn.iter(f"{SVG}text")}
    heights = sorted(written[name] for name in ("JAX", "PyTorch", "TensorFlow"))
    assert [below - above for above, below in itertools.pairwise(heights)] == pytest.approx([svg.ROW] * 2)
    assert {"1,000", "4,000"} <= set(written) and "1,001" not in written


def test_numbers_on_an_axis_have_no_exponent() -> None:
    assert [svg.number(value) for value in (0.001, 20.0, 1e6)] == ["0.001", "20", "1,000,000"]


def test_text_is_never_markup_and_is_cut_where_it_is_long() -> None:
    text = "\"><script>alert('1')</script>&\x00"
    bar = Bar(text, text, [Piece(text, 1.0, "#0072B2", text)], text, tip=text)
    chart = BarChart(text, text, [BarGroup(text, [bar, Bar("long " * 20, "")], 1.0)], [(text, "#0072B2")])
    for drawn in (file(chart), ET.fromstring(svg.figure(chart))):
        assert {tag.tag.removeprefix(SVG) for tag in drawn.iter()}.isdisjoint({"script"})
        backends = [tag.get("data-backend") for tag in drawn.iter() if tag.get("data-backend")]
        assert backends == ["\"><script>alert('1')</script>&"]
        assert "long long long long long long long…" not in "".join(drawn.itertext())
