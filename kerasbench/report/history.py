"""Ratios over time, as a page, a chart and a table that other tools read; and how a search for a version ended."""

from collections.abc import Callable, Sequence
from datetime import datetime

from packaging.version import InvalidVersion, Version

from kerasbench.analysis.bisect import Bisection, Outcome, Probe
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.history import Point, Series
from kerasbench.report.charts import looks_of
from kerasbench.report.pages import csv_of
from kerasbench.report.sections import EMPTY, Cell, Line, LineChart, Page, Panel, Section, Table, Words, texts
from kerasbench.report.words import could_have_seen, times
from kerasbench.text import count

DATE, KERAS, BACKEND, COMMIT = "date", "keras", "backend", "commit"
SAID = {
    Verdict.SLOWER: "slower",
    Verdict.FASTER: "faster",
    Verdict.SAME: "tie",
    Verdict.INCONCLUSIVE: "undecided",
}
SHORT_COMMIT = 9  # characters
DAY_S = 86_400
CAPTION = "Time of the first configuration relative to the second, in one run each. Vertical lines: 95 % intervals."


def page(found: Sequence[Series]) -> Page:
    """Return every ratio by run."""
    rows = [
        [
            *texts(one.label, _title(one), point.started),
            *texts(*(_of(point, one, what) for what in (KERAS, BACKEND, COMMIT))),
            Cell(times(point.ratio), point.ratio.value),
        ]
        for one in found
        for point in one.points
    ]
    columns = ["workload", "configuration", "run", "keras", "backend", "commit", "takes"]
    notes: list[Words] = [
        "Both times of a ratio are of one run, whose configurations took turns. Between two runs nothing is decided: "
        "measure two versions side by side with versus or bisect.",
    ]
    return Page("Ratios over time", [Section("", table=Table(columns, rows), notes=notes)])


def chart(found: Sequence[Series], over: str = DATE) -> LineChart:
    """Return a panel for each row, with its series as lines."""
    panels = []
    for label in dict.fromkeys(one.label for one in found):
        own = [one for one in found if one.label == label]
        names = (
            [] if over == DATE else _ordered([(_of(point, one, over), point) for one in own for point in one.points])
        )
        start = min(point.started for one in own for point in one.points)
        place = _days(start) if over == DATE else _place(names, over)
        axis = f"days since {start[:10]}" if over == DATE else f"version of {over}" if over != COMMIT else COMMIT
        lines = []
        for one, look in zip(own, looks_of([one.backend for one in own]), strict=True):
            points = sorted(((place(point, one), point.ratio) for point in one.points), key=lambda each: each[0])
            lines.append(Line(_title(one), look, points, one.backend))
        panels.append(Panel(label, axis, lines, unit="×", linear=True, names=names))
    return LineChart("Ratios over time", CAPTION, panels)


def _title(one: Series) -> str:
    return f"{one.column} relative to {one.over}"


def _of(point: Point, one: Series, what: str) -> str:
    """Return a point's version or commit."""
    if what == COMMIT:
        return point.commit[:SHORT_COMMIT]
    return point.versions.get(one.backend if what == BACKEND else what, "")


def _ordered(found: Sequence[tuple[str, Point]]) -> list[str]:
    """Return versions from the oldest; commits, which have no order of their own, by the run that is first."""
    names = dict.fromkeys(name for name, _ in sorted(found, key=lambda each: each[1].started))
    try:
        return sorted(names, key=Version)
    except InvalidVersion:
        return list(names)


def _days(start: str) -> Callable[[Point, Series], float]:
    first = datetime.fromisoformat(start)
    return lambda point, _: (datetime.fromisoformat(point.started) - first).total_seconds() / DAY_S


def _place(names: Sequence[str], over: str) -> Callable[[Point, Series], float]:
    return lambda point, one: 1.0 + names.index(_of(point, one, over))


def as_csv(found: Sequence[Series]) -> str:
    """Return a line for each run, with its time, commit and versions, and a column for each ratio.

    Tools that look for change points, such as Apache Otava, read this form.
    """
    titles = [f"{one.label} {_title(one)}" for one in found]
    backends = sorted({one.backend for one in found})
    runs: dict[tuple[str, str], dict[str, str | float]] = {}  # two machines may begin in the same second
    for title, one in zip(titles, found, strict=True):
        for point in one.points:
            line = runs.setdefault((point.started, one.machine), {"time": point.started, "commit": point.commit})
            line |= {name: point.versions[name] for name in (KERAS, one.backend) if name in point.versions}
            line[title] = point.ratio.value
    names = ["time", "commit", KERAS, *backends, *titles]
    return csv_of([names, *([runs[run].get(name) for name in names] for run in sorted(runs))])


def bisected(found: Bisection, versions: Sequence[str], case: str) -> Page:
    """Return where a search ended, and each of its probes."""
    versions = brief(versions)
    rows = [
        [
            Cell(versions[one.index]),
            EMPTY if one.ratio is None else Cell(times(one.ratio), one.ratio.value),
            EMPTY if one.control is None else Cell(times(one.control), one.control.value),
            EMPTY if one.why else Cell(SAID[one.verdict], strong=one.verdict in (Verdict.SLOWER, Verdict.FASTER)),
        ]
        for one in sorted(found.probes, key=lambda one: one.index)
    ]
    step = "prediction" if any(one.predicts for one in found.probes) else "training step"
    notes: list[Words] = [
        f"Each probe measured a version side by side with {versions[0]}: its time per {step}, relative to that "
        f"(95 % interval). {versions[0]} again should take 1×.",
    ]
    table = Table(["version", "takes", f"{versions[0]} again takes", "so it is"], rows)
    answer, *others = sentences(found, versions)
    title = f"{case}: {answer}" if case else answer
    return Page(title.rstrip("."), [Section("", table=table, notes=notes, lines=others)])


def brief(versions: Sequence[str]) -> list[str]:
    """Return the ends of paths, where these still tell versions apart."""
    ends = [one.rpartition("/")[2] or one for one in versions]
    return ends if len(set(ends)) == len(ends) else list(versions)


def sentences(found: Bisection, versions: Sequence[str]) -> list[str]:
    """Return the answer, what it rests on, and how many probes it took."""
    probes = f"It took {count(len(found.probes), 'probe')} to search {count(len(versions) - 1, 'version')}."
    last = found.probes[-1]
    if found.outcome is Outcome.FOUND:
        step = "prediction" if last.predicts else "step"
        change = (
            f": a {step} takes {times(found.change)} as long as with {versions[found.fast]}" if found.change else ""
        )
        return [f"{versions[found.slow]} is the first slow version{change}.", probes]
    if found.outcome is Outcome.NONE:
        between = " The versions in between were not measured." if len(versions) > 2 else ""
        answer = f"{versions[-1]} is not clearly slower than {versions[0]}.{between}"
        return [f"{answer} {_of_last(last, versions)} {_could_see(last)}".strip(), probes]
    if len(found.probes) == 1:
        why = f"{versions[last.index]} cannot be compared: {last.why}." if last.why else _of_last(last, versions)
        return [f"Not decided. {why} {_could_see(last)}".strip(), probes]
    between = f"The change is after {versions[found.fast]} and not after {versions[found.slow]}."
    unclear = f"{versions[last.index]} cannot be placed: {last.why}." if last.why else _of_last(last, versions)
    return [f"Not decided. {between} {unclear} More --rounds may decide.", probes]


def _of_last(one: Probe, versions: Sequence[str]) -> str:
    ratio = times(one.ratio) if one.ratio else "an unknown number of times"
    return f"{versions[one.index]} takes {ratio} as long as {versions[0]}."


def _could_see(one: Probe) -> str:
    return could_have_seen(one.ratio, one.effect) if not one.why and one.verdict is Verdict.INCONCLUSIVE else ""
