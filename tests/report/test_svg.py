import itertools
import xml.etree.ElementTree as ET

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.modes.sweep.tell import _chart
from kerasbench.protocol.columns import Options
from kerasbench.report import svg
from kerasbench.report.sections import Bar, BarChart, Chart, Piece, SeriesStyle
from kerasbench.results.run import Run
from tests import made
from tests.records import CROSSING, swept

SVG = "{http://www.w3.org/2000/svg}"


def file(chart: Chart | None) -> ET.Element:
    assert chart is not None
    return ET.fromstring(svg.file(chart))


def curves(run: Run) -> Chart | None:
    return _chart(summarize(run), "")


def test_a_crossover_of_one_round_has_no_span() -> None:
    looks = [shape.get("class") for shape in file(curves(swept(1, **CROSSING))).iter()]
    assert (looks.count("reference"), looks.count("span")) == (1, 0)


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
    bar = Bar(text, text, [Piece(1.0, SeriesStyle("#0072B2"), text)], text, tip=text)
    chart = BarChart(text, text, [(text, [bar, Bar("long " * 20, "")])], [(text, "#0072B2")])
    for drawn in (file(chart), ET.fromstring(svg.figure(chart))):
        assert {tag.tag.removeprefix(SVG) for tag in drawn.iter()}.isdisjoint({"script"})
        backends = [tag.get("data-backend") for tag in drawn.iter() if tag.get("data-backend")]
        assert backends == ["\"><script>alert('1')</script>&"]
        assert "long long long long long long long…" not in "".join(drawn.itertext())
