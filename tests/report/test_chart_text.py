import io

from rich.console import Console

from kerasbench.report import charts
from kerasbench.report.console import draw_chart
from kerasbench.report.sections import Chart
from tests.report.test_bars import found
from tests.report.test_explanation import BREAKDOWN


def shown(chart: Chart | None, colour: bool = False) -> str:
    assert chart is not None
    console = Console(
        file=io.StringIO(), width=100, force_terminal=colour, color_system="truecolor" if colour else None
    )
    drawn = draw_chart(chart)
    with console.capture() as text:
        console.print(drawn or "")
    return text.get()


def test_each_bar_is_as_long_as_its_ratio() -> None:
    lines = [line for line in shown(charts.ratios(found(jax=1.0, torch=4.0))).splitlines() if "█" in line]
    counts = [sum(line.count(one) for one in "█▓▏▎▍▌▋▊▉") for line in lines]
    assert len(counts) == 4
    assert 3 <= counts[1] / counts[0] <= 4.5
    assert "dense" in lines[0] and "JAX" in lines[0] and "fastest, 1.02 ms" in lines[0]
    assert "torch" in lines[1] and "3.9× (" in lines[1]


def test_an_interval_is_seen_and_explained() -> None:
    steps = shown(charts.ratios(found(jax=1.0, torch=1.3)))
    assert "▓░: the 95 % interval" in " ".join(steps.split())
    assert "95 %" not in shown(charts.ratios(found(1, jax=1.0, torch=1.3)))


def test_a_backend_has_its_colour() -> None:
    assert "\x1b[38;2;0;114;178m█" in shown(charts.ratios(found(jax=1.0, torch=4.0)), colour=True)


def test_parts_differ_without_colours_too() -> None:
    text = shown(charts.epoch_chart([BREAKDOWN]))
    bar = next(line for line in text.splitlines() if line.startswith("dense"))
    assert [bar.count(one) for one in "█▓▒░"] == [20, 4, 6, 10]
    assert "██ computation" in text and "2.00 s" in text


def test_more_bars_than_a_screen_takes_are_left_out() -> None:
    chart = charts.ratios(found(jax=1.0, torch=4.0))
    assert chart is not None
    many = Chart("", list(chart.groups) * 5)
    assert draw_chart(many) is None
