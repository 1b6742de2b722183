"""What a sweep shows: from which size on one configuration overtakes another, and the time at each size."""

from collections.abc import Collection, Iterator

from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.modes.sweep import MODE
from kerasbench.modes.sweep.series import FIT_TOLERANCE, Crossing, SeriesPair, SizeSeries, swept
from kerasbench.protocol.columns import Axis
from kerasbench.report import answer, charts, data, document
from kerasbench.report.document import Document
from kerasbench.report.sections import Cell, Crossover, Line, LineChart, Panel, Section, Strong, Table, Words
from kerasbench.report.teller import Brief, ModeReport
from kerasbench.report.warnings import Marks
from kerasbench.report.words import Names, as_given, listed, names, percent, size_along, three_digits, timed_in
from kerasbench.results.run import RunConfig
from kerasbench.text import NOTHING

AXES = {"batch": "batch size"}  # as a caption calls them
FLAGS: dict[Axis, str] = {"batch": "--batch-size", "width": "--width"}


def title(summary: Summary) -> str:
    if lines := [f"On {series.label} {sentence}" for series, sentence in sentences(summary)]:
        return lines[0] if len(lines) == 1 else f"{lines[0]}; {len(lines) - 1} more below"
    if labels := [series.label for series in swept(summary)]:
        return f"A {timed_in(summary.sized.rows)} of {listed(labels)} at several sizes"
    measured = [row.label for row in summary.sized.rows if any(case.trials for case in row.cases.values())]
    called = names(summary.sized.columns)
    return f"{listed(measured)}: one size" if measured else answer.nothing_compared(summary.sized, called)


def sentences(summary: Summary) -> list[tuple[SizeSeries, str]]:
    called = names(summary.columns)
    return [(series, _of_pair(series, pair, called)) for series in swept(summary) for pair in series.duels]


def _of_pair(series: SizeSeries, duel: SeriesPair, called: Names) -> str:
    axis = series.axis
    if duel.crossings:
        return "; ".join(
            f"{called[crossing.winner]} overtakes {called[crossing.loser]} at {place_of(crossing, axis)}"
            for crossing in duel.crossings
        )
    sizes = [size_along(axis, size) for size in duel.contrasts]
    span = f"{axis} {sizes[0]}" + ("" if len(sizes) == 1 else f" to {sizes[-1]}")
    a, b = called[duel.over], called[duel.under]
    slower = next((sign for sign in duel.signs if sign), 0)
    if not slower:
        return f"{a} and {b} are undecided at {span}"
    faster, loser = (b, a) if slower > 0 else (a, b)
    equal = [size for size, sign in zip(sizes, duel.signs, strict=True) if not sign]
    rest = f", undecided at {listed(equal)}" if equal else ""
    return f"{faster} is faster than {loser} at every {'other ' if equal else ''}size ({span}){rest}"


def _caption(summary: Summary, rows: Collection[Row]) -> Words:
    labels = {row.label for row in rows}
    rankings = [ranking for row, ranking in summary.sized.ranked if row.label in labels]
    compared = [contrast for ranking in rankings for contrast in ranking.others]
    interval = " (95 % interval)" if any(contrast.ratio.has_interval for contrast in compared) else ""
    others = f": the fastest in ms; the others take N× as long{interval}" if compared else ""
    what = {"training step": "step inside an epoch (median), without the fixed cost of an epoch"}
    timed = timed_in(rows)
    text = f"Time per {what.get(timed, f'{timed} (median)')}{others}."
    if not any(ranking.proven for ranking in rankings):
        return text
    return [text, " ", Strong("Bold"), f": clearly fastest, by more than {as_given(summary.effect)}."]


def _notes(series: SizeSeries, called: Names) -> Iterator[str]:
    for column, cost in series.costs.items():
        if cost.fits and cost.overhead.low > 0 and cost.per_sample.low > 0:
            overhead, sample = (three_digits(part.value) for part in (cost.overhead, cost.per_sample))
            within = percent(max(FIT_TOLERANCE, cost.deviation))
            cost_of = f"{overhead} ms per {unit_of(series)} and {sample} ms per sample"
            yield f"{called[column]} takes {cost_of}, at every size within {within}."
        elif not cost.fits:
            yield f"{called[column]} follows no straight line, so it has no cost per sample."
    for column in series.columns:
        size = series.out_of_memory(column)
        if size is not None:
            yield f"{called[column]} runs out of memory at {series.axis} {size_along(series.axis, size)}."


def place_of(crossing: Crossing, axis: Axis) -> str:
    sizes = (crossing.at, *(crossing.interval or ()))
    at, *ends = (size_along(axis, round(size) if axis == "batch" else size) for size in sizes)  # whole samples
    return f"about {axis} {at} ({'–'.join(ends)})" if ends else f"about {axis} {at}"


def unit_of(series: SizeSeries) -> str:
    return timed_in(series.rows.values()).removeprefix("training ")


def _chart(summary: Summary, title: str) -> LineChart | None:
    panels = []
    for series in swept(summary):
        steps_ms = {column: steps for column in series.columns if (steps := series.times_ms(column))}
        named, styles = names(steps_ms), charts.looks(steps_ms)
        lines = [Line(named[column], styles[column], steps, column.backend) for column, steps in steps_ms.items()]
        crossovers = [
            Crossover(crossing.at, crossing.interval, place_of(crossing, series.axis)) for crossing in series.crossings
        ]
        panels += [Panel(series.label, series.axis, lines, crossovers)] if lines else []
    if not panels:
        return None
    has_interval = any(step.low is not None for panel in panels for line in panel.lines for _, step in line.points)
    intervals = " Vertical lines: 95 % intervals." if has_interval else ""
    axes = " and ".join(dict.fromkeys(AXES.get(panel.axis, panel.axis) for panel in panels))
    units = " or ".join(dict.fromkeys(map(unit_of, swept(summary))))
    caption = f"Time per {units} by {axes}, both axes logarithmic.{intervals} {charts.where(summary.record)}."
    return LineChart(title, caption, panels)


class SweepReport(ModeReport):
    name = MODE.name

    def words(self, config: RunConfig) -> list[str]:
        words = super().words(config)
        sizes = [option.size for option in config.options if option.size is not None]
        for axis, flag in FLAGS.items():
            along = [f"{at:g}" for size in sizes if (at := size.along(axis)) is not None]
            words += [flag, ",".join(dict.fromkeys(along))] if along else []
        return words

    def title(self, summary: Summary) -> str:
        return title(summary) if summary.sized.rows and not summary.plain.rows else ""

    def sections(self, summary: Summary, marks: Marks) -> Iterator[Section]:
        if not any(row.origin.agenda.sized for row in summary.sized.rows):  # but one size more of an explanation
            return
        chart = _chart(summary, title(summary))
        rankings = {row.label: ranking for row, ranking in summary.sized.ranked}
        called, every = names(summary.sized.columns), names(summary.columns)
        for series in swept(summary):
            of_pairs = [_of_pair(series, duel, every) for duel in series.duels]
            is_in_title = len(of_pairs) == len(swept(summary)) == 1
            lines = [] if is_in_title else [f"{sentence[0].upper()}{sentence[1:]}." for sentence in of_pairs]
            rows = []
            for size, row in series.rows.items():
                numbers = [answer.cell(row, rankings[row.label], column, marks) for column in series.columns]
                rows.append([Cell(size_along(series.axis, size), size), *numbers])
            table = Table([series.axis, *(called[column] for column in series.columns)], rows)
            notes = [_caption(summary, series.rows.values()), *_notes(series, called)]
            yield Section(f"{series.label} by {series.axis}", chart=chart, table=table, notes=notes, lines=lines)
            chart = None
        # The times at sizes that no series has: of a sweep that ended after its first one.
        in_series = {row.label for series in swept(summary) for row in series.rows.values()}
        alone = [
            [Cell(row.label), *(answer.cell(row, ranking, column, marks) for column in called)]
            for row, ranking in summary.sized.ranked
            if row.label not in in_series
        ]
        if alone and not summary.plain.rows:
            table = Table(["workload", *called.values()], alone)
            yield Section("Sizes without a series", table=table, notes=[_caption(summary, summary.sized.rows)])

    def sentences(self, summary: Summary) -> list[str]:
        return [f"On {series.label} {sentence}." for series, sentence in sentences(summary)]

    def briefs(self, summary: Summary) -> Iterator[Brief]:
        for row in summary.sized.rows:
            if any(series.name == row.name for series in swept(summary)):
                of_row = [sentence for series, sentence in sentences(summary) if series.name == row.name]
                yield row, "sizes", [NOTHING, "; ".join(of_row) or NOTHING]

    def data(self, summary: Summary) -> Document:
        whole = Document()
        for series in swept(summary):
            row = next(iter(series.rows.values()))
            for column, cost in series.costs.items():
                case = data.of_key(row.key(column)) | {"batch_size": None}
                trials = sum(step.trials for _, step in series.times_ms(column))
                metrics = (
                    {f"fixed_{unit_of(series)}_ms": cost.overhead, "per_sample_ms": cost.per_sample}
                    if cost.fits
                    else {}
                )
                for metric, estimate in metrics.items():
                    whole.results.append(data.result(case, metric, estimate, unit="ms", trials=trials))
            place = {"scenario": row.scenario.name, "workload": row.workload.name, "axis": series.axis}
            for crossing in series.crossings:
                low, high = crossing.interval or (None, None)
                whole.crossovers.append(
                    document.Crossing(
                        **place,
                        faster_above=data.configuration(crossing.winner),
                        faster_below=data.configuration(crossing.loser),
                        at=crossing.at,
                        low=low,
                        high=high,
                    )
                )
        return whole
