import xml.etree.ElementTree as ET

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.report import plot
from kerasbench.report.charts import looks
from kerasbench.results.record import Record
from tests import made

matplotlib = pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"
GPU = Device("cuda", 0, "NVIDIA H200")


def run(names: tuple[str, ...] = ("dense",), backends: tuple[str, ...] = ("jax", "torch"), rounds: int = 3) -> Record:
    trials = [
        made.trial(index, name, backend, found=made.measurement(step_ms=1.0 + index / 10))
        for index in range(1, rounds + 1)
        for name in names
        for backend in backends
    ]
    return made.record(*trials, rounds=rounds)


def both_devices() -> Findings:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step_ms * (1 + index / 100)), device=device)
        for index in (1, 2, 3)
        for backend, device, step_ms in (("torch", made.CPU, 4.0), ("torch", GPU, 2.0), ("jax", made.CPU, 1.0))
    ]
    return findings(made.record(*trials, rounds=3))


def parsed(svg: bytes | None) -> ET.Element:
    assert svg is not None, "there is no such plot"
    return ET.fromstring(svg)


def texts(svg: bytes | None) -> list[str]:
    return ["".join(found.itertext()).strip() for found in parsed(svg).iter(f"{SVG}text")]


def groups(svg: bytes | None, begin: str) -> list[ET.Element]:
    return [found for found in parsed(svg).iter(f"{SVG}g") if found.get("id", "").startswith(begin)]


def markers(svg: bytes | None) -> list[int]:
    """Return how many markers each column has."""
    return [len(list(group.iter(f"{SVG}use"))) for group in groups(svg, "points-")]


@pytest.mark.parametrize("draw", [plot.step_times, plot.speed_ups, plot.phases])
def test_each_plot_is_an_image_in_both_forms(draw: object) -> None:
    assert callable(draw)
    assert ET.fromstring(draw(both_devices(), "svg")).tag == f"{SVG}svg"
    assert draw(both_devices(), "png").startswith(b"\x89PNG\r\n\x1a\n")


def test_each_measured_cell_has_a_marker_and_a_failed_row_stays() -> None:
    record = run(("dense", "conv"))
    record.trials.append(made.trial(1, "lost", "jax", failure=made.FAILURE))
    record.trials.append(made.trial(2, "conv", "torch", failure=made.FAILURE))
    record.scenarios.append(made.record(made.trial(name="lost")).scenarios[0])
    image = plot.step_times(findings(record))
    assert markers(image) == [2, 1]
    assert {"dense", "conv", "lost", "jax cpu", "torch cpu", "training step, ms"} <= set(texts(image))


@pytest.mark.parametrize(("rounds", "count"), [(1, 0), (3, 2)])
def test_an_interval_is_drawn_where_there_is_one(rounds: int, count: int) -> None:
    image = plot.step_times(findings(run(rounds=rounds)))
    assert len(groups(image, "interval-")) == count
    assert markers(image) == [1, 1]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (12, 3), (2, 12)])
def test_every_row_and_column_is_named(rows: int, columns: int) -> None:
    names = tuple(f"scenario{number}" for number in range(rows))
    backends = tuple(f"backend{number:02}" for number in range(columns))
    image = plot.step_times(findings(run(names, backends, rounds=1)))
    assert markers(image) == [rows] * columns
    assert {*names, *(f"{backend} cpu" for backend in backends)} <= set(texts(image))


def test_speed_ups_have_a_marker_where_both_devices_were_measured() -> None:
    image = plot.speed_ups(both_devices())
    assert image is not None
    assert markers(image) == [1]
    assert {"dense", "torch cpu / torch gpu"} <= set(texts(image))
    assert plot.speed_ups(findings(run())) is None


def test_phases_have_a_bar_for_each_column_and_a_name_for_each_phase() -> None:
    found = texts(plot.phases(both_devices()))
    assert {"jax cpu", "torch cpu", "torch gpu", "spawn", "import", "mean time of a trial, s"} <= set(found)


def test_a_run_without_anything_has_figures_too() -> None:
    nothing = findings(made.record(rounds=0))
    assert "nothing was measured" in texts(plot.step_times(nothing))
    assert markers(plot.step_times(nothing)) == []
    assert ET.fromstring(plot.phases(nothing)).tag == f"{SVG}svg"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("$x^2$", "$x^2$"),
        ("$\\frac{1$ \\$", "$\\frac{1$ \\$"),
        ("<script>&\"'", "<script>&\"'"),
        ("\x1b[31m\x00b\ufffe", "[31m b"),
        ("_hidden", "_hidden"),
        ("密度", "密度"),
        ("long" * 20, ("long" * 20)[: plot.LABEL_LENGTH - 1] + "…"),
    ],
)
def test_names_are_text_and_nothing_else(name: str, shown: str) -> None:
    image = plot.step_times(findings(run((name,), (name,))))
    column = shown if shown.endswith("…") else f"{shown} cpu"
    assert {shown, column} <= set(texts(image))
    assert {element.tag.removeprefix(SVG) for element in parsed(image).iter()}.isdisjoint({"script", "image"})


def test_the_same_numbers_are_the_same_file() -> None:
    assert plot.step_times(both_devices()) == plot.step_times(both_devices())


def test_nothing_global_is_left_behind() -> None:
    before = dict(matplotlib.rcParams)
    plot.step_times(both_devices(), "png")
    assert dict(matplotlib.rcParams) == before


def test_no_two_columns_look_alike() -> None:
    backends = ("jax", "tensorflow", "torch", "one", "two")
    columns = [
        Column(backend, "cpu", Options(threads=turn)) for backend in backends for turn in range(len(plot.MARKERS))
    ]
    found = {(look.colour, plot.marker_of(look)) for look in looks(columns).values()}
    assert len(found) == len(columns)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.8, 8.1, [1, 2, 5]), (0.3, 30, [0.5, 1, 2, 5, 10, 20]), (0.2, 1_100, [1, 10, 100, 1_000])],
)
def test_ticks_are_round_and_few(low: float, high: float, ticks: list[float]) -> None:
    assert plot.ticks(low, high) == pytest.approx(ticks)


def test_ticks_of_any_range_can_be_read() -> None:
    assert 2 <= len(plot.ticks(1e-9, 1e12)) <= plot.MOST_TICKS


@pytest.mark.parametrize(("value", "text"), [(0.001, "0.001"), (0.5, "0.5"), (20.0, "20"), (1e6, "1,000,000")])
def test_numbers_on_an_axis_have_no_exponent(value: float, text: str) -> None:
    assert plot.number(value) == text
