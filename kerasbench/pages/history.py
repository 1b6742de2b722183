"""Ratios over time, as a page, a chart and a table that other tools read."""

from collections.abc import Sequence
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.names import name_of
from kerasbench.pages.files import csv_of
from kerasbench.pages.series import Series, versions_at
from kerasbench.protocol.columns import AT
from kerasbench.report.charts import looks_of
from kerasbench.report.kinds import grouped
from kerasbench.report.sections import Cell, Line, LineChart, Page, Panel, Section, Table, Words, texts
from kerasbench.report.words import times
from kerasbench.text import seconds

DATE, KERAS, BACKEND, COMMIT = "date", "keras", "backend", "commit"
SHORT_COMMIT = 9  # characters
DAY_S = 86_400
CAPTION = (
    "Time of the first configuration relative to the second, a point for each run. Vertical lines: 95 % intervals."
)


LEFT_OUT = (
    "Undecided: other programs used the CPU, or the same configuration measured twice differed from itself. The chart "
    "and the CSV leave these out."
)


def believed(point: Contrast) -> bool:
    return not point.ratio.disturbed and not point.withheld


def page(history: Sequence[Series]) -> Page:
    rows = []
    for series in history:
        for point in series.points:
            what = (_of(point, what) for what in (KERAS, BACKEND, COMMIT))
            words = texts(series.label, _title(series), point.over.row.run, *what)
            doubt = "" if believed(point) else ", undecided"
            rows.append([*words, Cell(f"{times(point.ratio)}{doubt}", point.ratio.value)])
    columns = ["workload", "configuration", "run", "keras", "backend", "commit", "takes"]
    notes: list[Words] = [
        "Both times of a ratio are of one run, whose configurations took turns. What differs between two runs is "
        "undecided: measure two versions side by side with versus or bisect.",
    ]
    if not all(believed(point) for series in history for point in series.points):
        notes.append(LEFT_OUT)
    return Page("Ratios over time", [Section("", table=Table(columns, rows), notes=notes)])


def chart(history: Sequence[Series], over: str = DATE) -> LineChart:
    panels = []
    drawn_series = [replace(series, points=list(filter(believed, series.points))) for series in history]
    for label, of_row in grouped((series.label, series) for series in drawn_series if series.points).items():
        points = sorted((point for series in of_row for point in series.points), key=lambda point: point.over.row.run)
        first = points[0].over.row.run
        names = [] if over == DATE else _ordered([_of(point, over) for point in points])
        axis = {DATE: f"days since {first[:10]}", COMMIT: COMMIT}.get(over, f"version of {over}")
        lines = []
        for series, look in zip(of_row, looks_of([series.backend for series in of_row]), strict=True):
            drawn = []
            for point in series.points:
                days = (seconds(point.over.row.run) - seconds(first)) / DAY_S
                drawn.append((days if over == DATE else 1.0 + names.index(_of(point, over)), point.ratio))
            lines.append(Line(_title(series), look, sorted(drawn, key=lambda place: place[0]), series.backend))
        panels.append(Panel(label, axis, lines, unit="×", linear=True, names=names))
    return LineChart("Ratios over time", CAPTION, panels)


def _title(series: Series) -> str:
    over, under = series.points[0].over.column, series.points[0].under.column
    if series.over.startswith(AT):  # of two versions what they have in common
        return f"{name_of(over.paired)} relative to {series.over}"
    return f"{name_of(over)} relative to {name_of(under)}"


def _of(point: Contrast, what: str) -> str:
    if what == COMMIT:
        return point.over.row.origin.commit[:SHORT_COMMIT]
    return versions_at(point).get(point.over.column.backend if what == BACKEND else what, "")


def _ordered(versions: Sequence[str]) -> list[str]:
    """Return versions from the oldest; commits, which have no order of their own, by the run that is first."""
    names = dict.fromkeys(versions)
    try:
        return sorted(names, key=Version)
    except InvalidVersion:
        return list(names)


def as_csv(history: Sequence[Series]) -> str:
    """Return a line for each run: tools that look for change points, such as Apache Otava, read this form."""
    titles = [f"{series.label} {series.column} relative to {series.over}" for series in history]
    backends = sorted({series.backend for series in history})
    runs: dict[tuple[str, str], dict[str, str | float]] = {}  # two machines may begin in the same second
    for title, series in zip(titles, history, strict=True):
        for point in series.points:
            started, versions = point.over.row.run, versions_at(point)
            line = runs.setdefault((started, series.machine), {"time": started, "commit": point.over.row.origin.commit})
            line |= {name: versions[name] for name in (KERAS, series.backend) if name in versions}
            if believed(point):
                line[title] = point.ratio.value
    names = ["time", "commit", KERAS, *backends, *titles]
    return csv_of([names, *([runs[run].get(name) for name in names] for run in sorted(runs))])
