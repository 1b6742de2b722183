"""Ratios over time, as a page, a chart and a table that other tools read; and how a search for a version ended."""

from collections.abc import Sequence
from datetime import datetime

from packaging.version import InvalidVersion, Version

from kerasbench.analysis.bisect import Bisection, Probe, SearchOutcome
from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.history import Series
from kerasbench.report.charts import looks_of
from kerasbench.report.pages import csv_of
from kerasbench.report.sections import EMPTY, Cell, Line, LineChart, Page, Panel, Section, Table, Words, texts
from kerasbench.report.words import could_have_seen, times
from kerasbench.text import count

DATE, KERAS, BACKEND, COMMIT = "date", "keras", "backend", "commit"
SAID = {Verdict.SLOWER: "slower", Verdict.FASTER: "faster", Verdict.SAME: "tie", Verdict.INCONCLUSIVE: "undecided"}
SHORT_COMMIT = 9  # characters
DAY_S = 86_400
CAPTION = "Time of the first configuration relative to the second, in one run each. Vertical lines: 95 % intervals."


def page(history: Sequence[Series]) -> Page:
    rows = [
        [
            *texts(series.label, _title(series), point.over.row.run),
            *texts(*(_of(point, what) for what in (KERAS, BACKEND, COMMIT))),
            Cell(times(point.ratio), point.ratio.value),
        ]
        for series in history
        for point in series.points
    ]
    columns = ["workload", "configuration", "run", "keras", "backend", "commit", "takes"]
    notes: list[Words] = [
        "Both times of a ratio are of one run, whose configurations took turns. Between two runs nothing is decided: "
        "measure two versions side by side with versus or bisect.",
    ]
    return Page("Ratios over time", [Section("", table=Table(columns, rows), notes=notes)])


def chart(history: Sequence[Series], over: str = DATE) -> LineChart:
    panels = []
    for label in dict.fromkeys(series.label for series in history):
        of_row = [series for series in history if series.label == label]
        points = sorted((point for series in of_row for point in series.points), key=lambda point: point.over.row.run)
        first = datetime.fromisoformat(points[0].over.row.run)
        names = [] if over == DATE else _ordered([_of(point, over) for point in points])
        axis = COMMIT if over == COMMIT else f"version of {over}"
        lines = []
        for series, look in zip(of_row, looks_of([series.backend for series in of_row]), strict=True):
            drawn = []
            for point in series.points:
                days = (datetime.fromisoformat(point.over.row.run) - first).total_seconds() / DAY_S
                drawn.append((days if over == DATE else 1.0 + names.index(_of(point, over)), point.ratio))
            lines.append(Line(_title(series), look, sorted(drawn, key=lambda place: place[0]), series.backend))
        axis = f"days since {points[0].over.row.run[:10]}" if over == DATE else axis
        panels.append(Panel(label, axis, lines, unit="×", linear=True, names=names))
    return LineChart("Ratios over time", CAPTION, panels)


def _title(series: Series) -> str:
    return f"{series.column} relative to {series.over}"


def _of(point: Contrast, what: str) -> str:
    if what == COMMIT:
        return point.over.row.origin.commit[:SHORT_COMMIT]
    return _versions(point).get(point.over.column.backend if what == BACKEND else what, "")


def _versions(point: Contrast) -> dict[str, str]:
    return point.over.case.trials[0][1].resolved.versions


def _ordered(versions: Sequence[str]) -> list[str]:
    """Return versions from the oldest; commits, which have no order of their own, by the run that is first."""
    names = dict.fromkeys(versions)
    try:
        return sorted(names, key=Version)
    except InvalidVersion:
        return list(names)


def as_csv(history: Sequence[Series]) -> str:
    """Return a line for each run, with its time, commit and versions, and a column for each ratio.

    Tools that look for change points, such as Apache Otava, read this form.
    """
    titles = [f"{series.label} {_title(series)}" for series in history]
    backends = sorted({series.backend for series in history})
    runs: dict[tuple[str, str], dict[str, str | float]] = {}  # two machines may begin in the same second
    for title, series in zip(titles, history, strict=True):
        for point in series.points:
            started, versions = point.over.row.run, _versions(point)
            line = runs.setdefault((started, series.machine), {"time": started, "commit": point.over.row.origin.commit})
            line |= {name: versions[name] for name in (KERAS, series.backend) if name in versions}
            line[title] = point.ratio.value
    names = ["time", "commit", KERAS, *backends, *titles]
    return csv_of([names, *([runs[run].get(name) for name in names] for run in sorted(runs))])


def bisected(search: Bisection, versions: Sequence[str], case: str) -> Page:
    versions = brief(versions)
    rows = []
    for probe in sorted(search.probes, key=lambda probe: probe.index):
        cells = [Cell(versions[probe.index]), EMPTY, EMPTY, EMPTY]
        if probe.contrast is not None:
            contrast, again = probe.contrast, probe.contrast.again
            cells[1] = Cell(times(contrast.ratio), contrast.ratio.value)
            cells[2] = EMPTY if again is None else Cell(times(again), again.value)
            if contrast.verdict is not None and not probe.why:
                cells[3] = Cell(SAID[contrast.verdict], strong=contrast.is_decided)
        rows.append(cells)
    step = "prediction" if any(_predicts(probe) for probe in search.probes) else "training step"
    notes: list[Words] = [
        f"Each probe measured a version side by side with {versions[0]}: its time per {step}, relative to that "
        f"(95 % interval). {versions[0]} again should take 1×.",
    ]
    table = Table(["version", "takes", f"{versions[0]} again takes", "so it is"], rows)
    answer, *others = sentences(search, versions)
    title = f"{case}: {answer}" if case else answer
    return Page(title.rstrip("."), [Section("", table=table, notes=notes, lines=others)])


def brief(versions: Sequence[str]) -> list[str]:
    """Return the ends of paths, where these still tell versions apart."""
    ends = [version.rpartition("/")[2] or version for version in versions]
    return ends if len(set(ends)) == len(ends) else list(versions)


def _predicts(probe: Probe) -> bool:
    return probe.contrast is not None and probe.contrast.over.row.workload.predicts_only


def sentences(search: Bisection, versions: Sequence[str]) -> list[str]:
    """Return the answer, what it rests on, and how many probes it took."""
    probes = f"It took {count(len(search.probes), 'probe')} to search {count(len(versions) - 1, 'version')}."
    last, fast, slow = search.probes[-1], versions[search.fast], versions[search.slow]
    ratio = times(last.ratio) if last.ratio else "an unknown number of times"
    name = versions[last.index]
    of_last, seen = f"{name} takes {ratio} as long as {versions[0]}.", ""
    if last.contrast is None or last.contrast.verdict is Verdict.INCONCLUSIVE:
        seen = could_have_seen(last.ratio, last.effect) if not last.why else ""
    if search.outcome is SearchOutcome.FOUND:
        step = "prediction" if _predicts(last) else "step"
        change = f": a {step} takes {times(search.change)} as long as with {fast}" if search.change else ""
        return [f"{slow} is the first slow version{change}.", probes]
    if search.outcome is SearchOutcome.NONE:
        between = " The versions in between were not measured." if len(versions) > 2 else ""
        answer = f"{versions[-1]} is not clearly slower than {versions[0]}.{between}"
        return [f"{answer} {of_last} {seen}".strip(), probes]
    if len(search.probes) == 1:
        why = f"{name} cannot be compared: {last.why}." if last.why else of_last
        return [f"Not decided. {why} {seen}".strip(), probes]
    between = f"The change is after {fast} and not after {slow}."
    unclear = f"{name} cannot be placed: {last.why}." if last.why else of_last
    return [f"Not decided. {between} {unclear} More --rounds may decide.", probes]
