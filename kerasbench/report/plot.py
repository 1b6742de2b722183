"""The figures of a run: steps, GPU against CPU, phases. matplotlib draws them, an optional dependency.

The figure of a sweep: the time of a step over size, both logarithmic, with intervals and crossovers.

Bars as matplotlib draws them, for a PNG and for Python.

A figure for Python: matplotlib's own, which a notebook shows, and which is saved with all its labels.

Imported where it is asked for: matplotlib is an optional dependency.
"""

import importlib.util
import io
import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import Crossing, SizeSeries
from kerasbench.protocol.columns import Column
from kerasbench.report.charts import COLOURS, Look, looks
from kerasbench.report.figures import about, names
from kerasbench.report.sections import Bar, Chart, Group
from kerasbench.text import blanked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


Form = Literal["svg", "png"]
Series = Mapping[int, Estimate]  # by the index of its row

MARKERS = "osD^vPX*<"  # columns of one colour differ in it
HATCHES = ("", "////", "....")
INK = {"svg": "#767676", "png": "#333333"}  # a grey that stands on white and on black; a PNG is always on white
DOTS_PER_INCH = 150
AXES_WIDTH_IN = 5.0
ROW_IN, MARKER_IN = 0.34, 0.15  # the least height of a row, and what each of its markers needs
MARKER_SPREAD = 0.7  # the share of a row's height over which its markers lie
LABEL_LENGTH = 48  # characters: a longer name would leave no room for what it names
LEAST_RATIO = 10.0  # of an axis' ends: a single value needs neighbours to be read off
MOST_TICKS = 8
GRID: dict[str, Any] = {"color": "#808080", "alpha": 0.3, "linewidth": 0.6}


def is_available() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def step_times(found: Findings, form: Form = "svg") -> bytes | None:
    """Draw what a training step costs: a line of the figure for each workload, a marker for each column measured.

    None where sizes alone were measured, which have a figure of their own.
    """
    if found.sized.rows and not found.plain.rows:
        return None
    return draw(lambda figure: fill_steps(figure, found), form)


def fill_steps(figure: "Figure", found: Findings) -> None:
    """Draw the markers of ``step_times``."""
    rows = found.plain.rows
    seen = looks(found.plain.columns)
    series = [(name(column), seen[column], _measured(rows, column)) for column in found.plain.columns]
    _dots(figure, [row.label for row in rows], series, "training step, ms")


def speed_ups(found: Findings, form: Form = "svg") -> bytes | None:
    """Draw the time of a step on the CPU over that on the GPU; None where no backend was measured on both."""
    series: dict[tuple[Column, Column], dict[int, Estimate]] = {}
    labels: dict[str, int] = {}
    for one in found.speed_ups:
        series.setdefault((one.cpu, one.gpu), {})[labels.setdefault(one.row.label, len(labels))] = one.ratio
    if not series:
        return None
    axis = "time of a step on the CPU / on the GPU (right of 1: the GPU is faster)"
    seen = looks(cpu for cpu, _ in series)
    named = [(f"{name(cpu)} / {name(gpu)}", seen[cpu], one) for (cpu, gpu), one in series.items()]
    return draw(lambda figure: _dots(figure, list(labels), named, axis, reference=1.0), form)


def phases(found: Findings, form: Form = "svg") -> bytes:
    """Draw where the time of a trial goes: a bar for each column, the mean of each phase one after the other."""
    summary = found.summary
    return draw(lambda figure: _bars(figure, summary.columns, summary.phases_s), form)


def _measured(rows: Sequence[Row], column: Column) -> dict[int, Estimate]:
    having = {index: row for index, row in enumerate(rows) if column in row.cases}
    estimates = {index: row.cases[column].estimate(row.headline) for index, row in having.items()}
    return {index: found for index, found in estimates.items() if found is not None}


def draw(fill: Callable[["Figure"], None], form: Form) -> bytes:
    """Return the image of a figure that ``fill`` has filled; its size is that of what was drawn."""
    from matplotlib.figure import Figure

    with appearance(form):
        figure = Figure()  # without pyplot: nothing to close, no window, no global state
        fill(figure)
        image = io.BytesIO()
        look: dict[str, Any] = (
            {"transparent": True, "metadata": {"Date": None}}  # the same numbers are the same file
            if form == "svg"
            else {"facecolor": "white", "dpi": DOTS_PER_INCH}
        )
        figure.savefig(image, format=form, bbox_inches="tight", pad_inches=0.1, **look)
    return image.getvalue()


@contextmanager
def appearance(form: Form) -> Iterator[None]:
    """Have matplotlib draw in our fonts and ink, and names as they are."""
    import matplotlib

    ink = INK[form]
    rules: dict[Any, Any] = {  # matplotlib 3.11 types its names, older ones do not
        "text.parse_math": False,  # "$" and "\" in a name are themselves
        "text.usetex": False,
        "font.family": "sans-serif",
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "kerasbench",
        "hatch.linewidth": 0.6,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink),
    }
    with matplotlib.rc_context(rules), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader of an SVG has more fonts
        yield


def _dots(
    figure: "Figure",
    labels: Sequence[str],
    series: Sequence[tuple[str, Look, Series]],
    axis: str,
    reference: float | None = None,
) -> None:
    """Draw a marker with its interval for each estimate, on a logarithmic axis, rows downwards."""
    axes = row_axes(figure, labels, max(ROW_IN, MARKER_IN * (len(series) + 1)))
    axes.set_xscale("log")
    axes.set_xlabel(axis)
    low, high = ends([one for _, _, found in series for one in found.values()], reference)
    axes.set_xlim(low, high)
    mark(axes, axes.xaxis, low, high)
    axes.grid(axis="x", **GRID)
    if reference is not None:
        axes.axvline(reference, linestyle="--", linewidth=1, color="#808080")
    offsets = [MARKER_SPREAD * ((position + 0.5) / len(series) - 0.5) for position in range(len(series))]
    handles = []
    for position, (_, look, found) in enumerate(series):
        placed = {index: (index + offsets[position], one) for index, one in found.items()}
        handles.append(draw_series(axes, placed, (position, look), upright=False))
    legend(axes, handles, [name for name, _, _ in series])
    if not any(found for _, _, found in series):
        axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center", va="center")


def draw_series(
    axes: "Axes", found: Mapping[int, tuple[float, Estimate]], which: tuple[int, Look], *, upright: bool
) -> "Line2D":
    """Draw one column's estimates, each at its place: over it and joined where ``upright``, else to its right.

    In an SVG ``series-N`` or ``points-N``, and before them the intervals, ``interval-N``.
    """
    position, known = which
    colour, marker = known.colour, marker_of(known)
    for index, (place, one) in found.items():
        if one.low is not None and one.high is not None:
            at, ends = (place, place), (one.low, one.high)
            x, y = (at, ends) if upright else (ends, at)
            axes.plot(x, y, color=colour, linewidth=1.5, gid=f"interval-{position}-{index}")
    places, values = [place for place, _ in found.values()], [one.value for _, one in found.values()]
    if upright:
        look: dict[str, Any] = {"markersize": 4, "linewidth": 1, "gid": f"series-{position}"}
        (line,) = axes.plot(places, values, marker=marker, color=colour, zorder=3, **look)
    else:
        look = {"markersize": 6, "linestyle": "None", "gid": f"points-{position}"}
        (line,) = axes.plot(values, places, marker=marker, color=colour, zorder=3, **look)
    return line


def marker_of(look: Look) -> str:
    """Return the marker of a column: another for each colour, and for each column of one colour."""
    return MARKERS[(look.hue + look.turn) % len(MARKERS)]


def _bars(figure: "Figure", columns: Sequence[Column], phases_s: Mapping[str, Mapping[Column, float]]) -> None:
    """Draw a bar for each column, a piece for each phase."""
    axes = row_axes(figure, [name(column) for column in columns], ROW_IN * 1.3)
    axes.set_xlabel("mean time of a trial, s")
    ends = dict.fromkeys(columns, 0.0)
    for position, by_column in enumerate(phases_s.values()):
        axes.barh(
            [columns.index(column) for column in by_column],
            list(by_column.values()),
            left=[ends[column] for column in by_column],
            height=0.6,
            color=COLOURS[position % len(COLOURS)],
            hatch=HATCHES[position // len(COLOURS) % len(HATCHES)],
            edgecolor="white",
            linewidth=0.3,
        )
        for column, duration_s in by_column.items():
            ends[column] += duration_s
    legend(axes, [bars[0] for bars in axes.containers], list(phases_s))


def row_axes(figure: "Figure", labels: Sequence[str], row_in: float) -> "Axes":
    """Return axes with a line for each label, the first one above, every second one shaded."""
    figure.set_size_inches(AXES_WIDTH_IN, row_in * max(1, len(labels)))
    axes = figure.add_axes((0, 0, 1, 1))  # what stands outside, labels and legend, makes the image larger
    axes.set_facecolor("none")
    axes.set_ylim(max(1, len(labels)) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), [clean(label) for label in labels])
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for index in range(0, len(labels), 2):
        axes.axhspan(index - 0.5, index + 0.5, color="#808080", alpha=0.1, linewidth=0)
    return axes


def legend(axes: "Axes", handles: Sequence[Any], names: Sequence[str]) -> None:
    """Put the legend above the axes, where it hides nothing."""
    if not names:
        return
    # matplotlib leaves out a name that begins with an underscore.
    cleaned = [f" {name}" if name.startswith("_") else name for name in map(clean, names)]
    columns = max(1, min(4, 60 // (max(map(len, cleaned)) + 6)))
    axes.legend(
        handles, cleaned, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, borderaxespad=0.2
    )


def ends(found: Sequence[Estimate], reference: float | None) -> tuple[float, float]:
    """Return where a logarithmic axis begins and ends, with room around what stands on it."""
    edges = [edge for one in found for edge in (one.value, one.low, one.high) if edge is not None]
    edges += [] if reference is None else [reference]
    low, high = (min(edges), max(edges)) if edges else (1.0, 1.0)
    margin = max(1.25, math.sqrt(LEAST_RATIO * low / high))
    return low / margin, high * margin


def mark(axes: "Axes", axis: "Axis", low: float, high: float) -> None:
    """Put numbers where a logarithmic axis can be read off."""
    marks = ticks(low, high)
    axis.set_ticks(marks, [number(mark) for mark in marks])
    axes.minorticks_off()


def ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 … between the ends, or so many powers of ten alone as can be read."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [tick for power in powers for digit in (1, 2, 5) if low <= (tick := digit * 10.0**power) <= high]
    if len(fine) <= MOST_TICKS:
        return fine
    coarse = [tick for power in powers if low <= (tick := 10.0**power) <= high]
    return coarse[:: math.ceil(len(coarse) / MOST_TICKS)]


def number(value: float) -> str:
    """Return 0.01, 5, 1,000: never an exponent, which would be set as a formula."""
    return f"{value:,.12f}".rstrip("0").rstrip(".")


def name(column: Column) -> str:
    return column.label


def clean(text: str) -> str:
    """Return one line without control characters, which no XML may hold, cut to what there is room for."""
    line = " ".join(blanked(text).split())
    return line if len(line) <= LABEL_LENGTH else line[: LABEL_LENGTH - 1] + "…"


PANEL_IN, GAP_IN = 3.4, 1.4  # the height of one workload's panel, and what its title, legend and labels need
MOST_SIZES = 24  # more numbers would not fit along the axis
NAME_HEIGHT = 0.06  # of a panel: names at the ends of lines that are nearer would overlap
SHORT = 3  # characters: longer numbers are turned, or they would overlap


def step_over_size(found: Findings, form: Form = "svg") -> bytes | None:
    """Draw a panel for each workload and axis that was swept, a line for each column; None where nothing was."""
    return draw(lambda figure: fill_curve(figure, found), form) if panels(found) else None


def panels(found: Findings) -> list[SizeSeries]:
    """Return the sweeps that have a panel: those of which a step was measured."""
    return [one for one in found.sweeps if any(one.steps_ms(column) for column in one.columns)]


def fill_curve(figure: "Figure", found: Findings) -> None:
    """Draw the panels, one below the other."""
    drawn = panels(found)
    height_in = len(drawn) * (PANEL_IN + GAP_IN)
    figure.set_size_inches(AXES_WIDTH_IN, height_in)
    for position, one in enumerate(drawn):
        bottom_in = height_in - (position + 1) * (PANEL_IN + GAP_IN)
        axes = figure.add_axes((0, bottom_in / height_in, 1, PANEL_IN / height_in))
        _panel(axes, one)


def _panel(axes: "Axes", found: SizeSeries) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    series = [(column, found.steps_ms(column)) for column in found.columns]
    series = [(column, steps) for column, steps in series if steps]
    named, seen = names(column for column, _ in series), looks(column for column, _ in series)
    _mark_axes(axes, list(found.rows), [step for _, steps in series for _, step in steps])
    handles = [
        draw_series(axes, dict(enumerate(steps)), (position, seen[column]), upright=True)
        for position, (column, steps) in enumerate(series)
    ]
    if _are_apart([steps[-1][1].value for _, steps in series], axes.get_ylim()):
        for column, steps in series:
            _name(axes, named[column], seen[column].colour, steps[-1])
    else:
        legend(axes, handles, [named[column] for column, _ in series])
    for crossing in (crossing for duel in found.duels for crossing in duel.crossings):
        _crossover(axes, found, crossing)
    axes.set_xlabel(f"{found.axis} of {clean(found.label)}, both axes logarithmic")
    axes.set_ylabel("step inside an epoch, ms")


def _are_apart(values: Sequence[float], bounds: tuple[float, float]) -> bool:
    """Tell whether a name at each of the ends would be clear of the others."""
    least = (bounds[1] / bounds[0]) ** NAME_HEIGHT
    ordered = sorted(values)
    return all(upper / lower >= least for lower, upper in pairwise(ordered))


def _name(axes: "Axes", name: str, colour: str, end: tuple[float, Estimate]) -> None:
    """Write a column's name at the end of its line."""
    look: dict[str, Any] = {"xytext": (7, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
    axes.annotate(clean(name), (end[0], end[1].value), color=colour, **look)


def _crossover(axes: "Axes", found: SizeSeries, one: Crossing) -> None:
    """Mark where one column overtakes another: a dashed line with its place above, its interval shaded."""
    axes.axvline(one.at, linestyle="--", linewidth=1, color="#808080", gid="crossing")
    at = about(found.axis, one.at)
    if one.interval is not None:
        at += f" ({about(found.axis, one.interval[0])}–{about(found.axis, one.interval[1])})"
        axes.axvspan(*one.interval, color="#808080", alpha=0.15, linewidth=0)
    place = axes.get_xaxis_transform()
    look: dict[str, Any] = {"xytext": (4, -4), "textcoords": "offset points", "va": "top", "fontsize": 8}
    axes.annotate(f"crossover at about\n{found.axis} {at}", (one.at, 1), xycoords=place, **look)


def _mark_axes(axes: "Axes", sizes: Sequence[float], steps: Sequence[Estimate]) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    shown = [number(size) for size in _apart(sizes)]
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    axes.set_xticks(_apart(sizes), shown, rotation=45 if max(map(len, shown)) > SHORT else 0)
    low, high = ends(steps, None)
    axes.set_ylim(low, high)
    mark(axes, axes.yaxis, low, high)
    axes.grid(**GRID)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Return the sizes whose numbers can stand beside each other."""
    least = (sizes[-1] / sizes[0]) ** (1 / MOST_SIZES)
    found = [sizes[0]]
    for size in sizes[1:]:
        if size >= found[-1] * least:
            found.append(size)
    return found


BAR_IN = 0.2  # the height of a bar with the room around it
WRAPPED = 95  # characters of the caption in a line
NAME_AT, TEXT_AT = -0.01, 4  # where names end, in widths of the axes; how far from its bar a number begins, in points


def image(chart: Chart | None, form: Form = "png") -> bytes | None:
    """Draw a chart; None of none."""
    return None if chart is None else draw(lambda figure: fill_chart(figure, chart), form)


def fill_chart(figure: "Figure", chart: Chart) -> None:
    """Draw a group of bars for each row, the first row above."""
    most = max(len(group.bars) for group in chart.groups)
    axes = row_axes(figure, [group.label for group in chart.groups], BAR_IN * (most + 1))
    longest = max(len(clean(bar.name)) for group in chart.groups for bar in group.bars)
    axes.tick_params(axis="y", pad=longest * 5.0 + 12)  # names of columns stand between the axes and the rows' names
    axes.set_xlim(0, 1)
    axes.set_xticks(
        [chart.share(tick, chart.groups[0]) for tick in chart.ticks], [f"{number(tick)}×" for tick in chart.ticks]
    )
    axes.set_xlabel(textwrap.fill(chart.told("Line"), WRAPPED), fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    if chart.reference is not None:
        axes.axvline(chart.share(chart.reference, chart.groups[0]), color="#808080", linewidth=0.8, linestyle=":")
    for index, group in enumerate(chart.groups):
        for position, bar in enumerate(group.bars):
            at = index + MARKER_SPREAD * ((position + 0.5) / len(group.bars) - 0.5)
            _bar(axes, chart, group, bar, at)
    if chart.legend:
        handles = [axes.barh([0], [0], color=colour).patches[0] for _, colour in chart.legend]
        legend(axes, handles, [name for name, _ in chart.legend])


def _bar(axes: "Axes", chart: Chart, group: Group, bar: Bar, at: float) -> None:
    """Draw one bar with its name, its interval, and the text at its end."""
    height = MARKER_SPREAD / len(group.bars) * 0.85
    axes.annotate(clean(bar.name), (NAME_AT, at), ha="right", va="center", fontsize=8, annotation_clip=False)
    before = 0.0
    for piece in bar.pieces:
        begin, end = chart.share(before, group), chart.share(before + piece.size, group)
        axes.barh([at], [end - begin], left=begin, height=height, color=piece.colour, alpha=bar.opacity)
        if piece.label:
            axes.text((begin + end) / 2, at, piece.label, ha="center", va="center", fontsize=7, color="#111111")
        before += piece.size
    tip = chart.share(bar.size, group)
    if bar.low is not None and bar.high is not None:
        low, tip = chart.share(bar.low, group), chart.share(bar.high, group)
        axes.plot((low, tip), (at, at), color="white", linewidth=3, solid_capstyle="butt")
        axes.plot((low, tip), (at, at), color="#333333", linewidth=1.2, marker="|", markersize=4, gid=f"interval-{at}")
    weight = "bold" if bar.strong else "normal"
    place: dict[str, Any] = {"xytext": (TEXT_AT, 0), "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(clean(bar.text), (tip, at), va="center", fontsize=8, weight=weight, **place)
