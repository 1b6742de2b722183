"""Which charts there are: ratios to the fastest, the candidates of a race, the parts of an epoch, curves, soaks."""

import itertools
import statistics
from collections.abc import Iterable, Sequence

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.contrasts import Contrast, Place
from kerasbench.analysis.estimates import Amount, Estimate, mean
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.analysis.race import Race
from kerasbench.analysis.soak import Soak
from kerasbench.protocol.columns import Column
from kerasbench.report.kinds import FEW, by_kind, compared, kind_of, relative, winner
from kerasbench.report.sections import (
    TORN,
    Bar,
    BarChart,
    BarGroup,
    Crossover,
    Dot,
    DotChart,
    DotLine,
    Line,
    LineChart,
    Look,
    Panel,
    Piece,
)
from kerasbench.report.words import duration, multiple, names, percent, place_of, span, timed_in, times, took
from kerasbench.results.run import Run
from kerasbench.text import MIB, count, whole_gib

# Okabe and Ito's palette, without black and yellow: people who are colour-blind can tell these colours apart, on white
# and on black. Shapes and names tell them apart where there is no colour.
LOOKS = {
    "jax": Look("#0072B2", "circle"),
    "tensorflow": Look("#D55E00", "square"),
    "torch": Look("#009E73", "triangle"),
}
OTHER_LOOKS = [Look(colour, "diamond") for colour in ("#CC79A7", "#E69F00", "#56B4E9", "#999999")]
PALER, PALEST = 0.55, 0.25  # another device or option of a backend has its colour, each paler than the one before
ROOM = 1.02  # an interval's end is still seen

# None of them is a backend's colour; black letters can be read on each.
PIECE_COLOURS = {
    "computation": "#56B4E9",
    "Python and framework": "#E69F00",
    "input pipeline": "#CC79A7",
    "fixed cost per epoch": "#999999",
}
WORTH_A_LABEL = 0.12  # of the width: a narrower piece has no room for its percentage
MOST_POINTS = 60
AXES = {"batch": "batch size"}  # as a caption calls them


def looks(columns: Iterable[Column]) -> dict[Column, Look]:
    unique = list(dict.fromkeys(columns))
    return dict(zip(unique, looks_of([column.backend for column in unique]), strict=True))


def looks_of(backends: Sequence[str]) -> list[Look]:
    known = dict(LOOKS)
    known |= zip(sorted(set(backends) - set(known)), itertools.cycle(OTHER_LOOKS), strict=False)
    seen: dict[str, int] = {}
    result = []
    for backend in backends:
        look = known[backend]
        result.append(Look(look.colour, look.shape, max(PALEST, PALER ** seen.get(backend, 0))))
        seen[backend] = seen.get(backend, 0) + 1
    return result


def where(record: Run) -> str:
    """Return the machine and the date, as a caption says them."""
    machine = record.machine
    parts = [machine.chip, count(machine.cores, "logical CPU"), whole_gib(machine.memory_bytes), *machine.gpus]
    return f"{', '.join(parts)}, {record.started[:10]}"


def ratios(findings: Findings, title: str) -> BarChart | DotChart | None:
    """Return bars for up to four workloads, and a line with dots for each of more; None where nothing was compared."""
    ranked = compared(findings.plain)
    if not ranked:
        return None
    columns = [column for column in findings.plain.columns if column.competes]
    called, seen = names(columns), looks(columns)
    groups = []
    for row, ranking in ranked:
        first = winner(ranking)
        drawn = [
            bar(called[key], seen[key], Place(row, key), row.headline, ranking.over_fastest(key), key == first)
            for key in columns
            if relative(ranking, key) is not None
        ]
        groups.append((row.label, drawn))
    what, place = f"Time per {timed_in(row for row, _ in ranked)}, relative to the fastest", where(findings.record)
    if len(ranked) <= FEW:
        return bars(title, f"{what} (shorter is better). {place}.", groups)
    legend = {called[column]: look for column, look in seen.items()}
    kinds: dict[str, list[DotLine]] = {}
    for (row, _), (label, drawn) in zip(ranked, groups, strict=True):
        dots = [Dot(bar.backend, legend[bar.name], bar.size, bar.low, bar.high, f"{label}, {bar.tip}") for bar in drawn]
        kinds.setdefault(kind_of(row), []).append(DotLine(label, dots))
    intervals = " Lines: 95 % intervals." if any(bar.low is not None for _, drawn in groups for bar in drawn) else ""
    caption = f"{what}: 1× is the fastest, further left is better. Logarithmic scale.{intervals} {place}."
    return DotChart(title, caption, list(kinds.items()), list(legend.items()))


def bar(
    name: str, look: Look, place: Place, metric: str, contrast: Contrast | None, strong: bool, rounds: int | None = None
) -> Bar:
    """Return the bar of a case relative to another; without a contrast it is what others are relative to."""
    estimate, ratio = place.estimate(metric), contrast.ratio if contrast else None
    text = times(ratio) if ratio else took(estimate, metric) if estimate else ""
    rounds = rounds or (ratio.trials if ratio else place.row.rounds)
    return Bar(
        name,
        text,
        [Piece(name, ratio.value if ratio else 1.0, look.colour)],
        place.column.backend,
        ratio.low if ratio else None,
        ratio.high if ratio else None,
        strong,
        look.opacity,
        tip=f"{name}: {text}, {count(rounds, 'round')}",
    )


def bars(title: str, caption: str, groups: Sequence[tuple[str, Sequence[Bar]]]) -> BarChart:
    """Return bars on one scale, from zero; what is beyond TORN is torn."""
    drawn = [bar for _, group in groups for bar in group]
    inside = [bar for bar in drawn if bar.size <= TORN]
    torn = len(inside) < len(drawn)
    end = TORN if torn else max(1.0, *(max(bar.size, min(bar.high or 0.0, 1.5 * bar.size)) for bar in inside)) * ROOM
    caption = f"{caption} Lines: 95 % intervals." if any(bar.low is not None for bar in drawn) else caption
    caption = f"{caption} A torn bar is longer than {TORN:.0f}×." if torn else caption
    return BarChart(title, caption, [BarGroup(label, group, end) for label, group in groups])


def kinds(findings: Findings) -> DotChart | None:
    """Return a line for each kind of model, with the mean of each configuration; None for a single kind."""
    grouped = by_kind(compared(findings.plain))
    if len(grouped) < 2:
        return None
    columns = [column for column in findings.plain.columns if column.competes]
    called, seen = names(columns), looks(columns)
    lines = []
    for kind, ranked in grouped.items():
        dots = []
        for column in columns:
            ratios = [ratio for _, ranking in ranked if (ratio := relative(ranking, column)) is not None]
            if ratios:
                value = statistics.geometric_mean(ratios)
                tip = f"{kind}, {called[column]}: {span(ratios, multiple)}, {count(len(ratios), 'workload')}"
                dots.append(Dot(column.backend, seen[column], value, None, None, tip))
        lines.append(DotLine(f"{kind} ({len(ranked)})", dots))
    what = timed_in(row for ranked in grouped.values() for row, _ in ranked)
    caption = f"Time per {what}, relative to the fastest of each workload: further left is better."
    caption += f" Geometric means over workloads. {where(findings.record)}."
    return DotChart("By kind of model", caption, [("", lines)], [(called[column], seen[column]) for column in columns])


def candidates(race: Race, title: str) -> BarChart:
    """Return the bars of a race: every candidate that was measured, the fastest first."""
    measured = [column for column in race.candidates if column == race.leader or column in race.contrasts]
    called, seen = names(measured), looks(sorted(measured, key=lambda column: column.order))
    drawn = []
    for column in measured:
        place, contrast, is_first = Place(race.row, column), race.contrasts.get(column), column == race.leader
        rounds, strong = race.rounds_of(column), is_first and race.is_over
        drawn.append(bar(called[column], seen[column], place, race.metric, contrast, strong, rounds))
    return bars(title, "Time relative to the fastest (shorter is better).", [(race.row.label, drawn)])


def epoch_chart(breakdowns: Sequence[StepBreakdown], title: str) -> BarChart | None:
    """Return a group for each workload, a bar for each of its configurations; None where nothing was explained."""
    if not breakdowns:
        return None
    named = names(dict.fromkeys(breakdown.column for breakdown in breakdowns))
    groups = []
    for label in dict.fromkeys(breakdown.row.label for breakdown in breakdowns):
        of_row = [breakdown for breakdown in breakdowns if breakdown.row.label == label]
        end = max(sum(parts_ms(breakdown).values()) for breakdown in of_row)
        drawn = []
        for breakdown in of_row:
            epoch_ms, name = breakdown.epoch_ms.value, named[breakdown.column]
            pieces = [
                Piece(part, ms, PIECE_COLOURS[part], percent(ms / epoch_ms) if ms > WORTH_A_LABEL * end else "")
                for part, ms in parts_ms(breakdown).items()
                if ms > 0
            ]
            text = duration(epoch_ms * NS_PER_MS)
            drawn.append(Bar(name, text, pieces, breakdown.column.backend, tip=f"{name}: an epoch takes {text}"))
        groups.append(BarGroup(label, drawn, end))
    caption = "Where the time of an epoch goes. In each group the longest epoch fills the width."
    return BarChart(title, caption, groups, legend=list(PIECE_COLOURS.items()))


def amounts(breakdown: StepBreakdown) -> dict[str, tuple[Amount, int]]:
    """Return the parts of an epoch: what each takes, in ms, and how many times in an epoch."""
    of_step = (breakdown.computation_ms, breakdown.framework_ms, breakdown.feeding_ms)
    parts = [*((amount, breakdown.steps) for amount in of_step), (breakdown.overhead_ms, 1)]
    return dict(zip(PIECE_COLOURS, parts, strict=True))


def parts_ms(breakdown: StepBreakdown) -> dict[str, float]:
    """Return what each part has of an epoch; one that is too small to measure has nothing."""
    return {
        name: amount.value * times_an_epoch if amount.sign == 1 else 0.0
        for name, (amount, times_an_epoch) in amounts(breakdown).items()
    }


def curves(findings: Findings, title: str) -> LineChart | None:
    """Return a panel for each workload and axis that was swept, but where no step was measured; None without any."""
    panels = []
    for series in findings.sweeps:
        steps_ms = {column: steps for column in series.columns if (steps := series.steps_ms(column))}
        named, seen = names(steps_ms), looks(steps_ms)
        lines = [Line(named[column], seen[column], steps, column.backend) for column, steps in steps_ms.items()]
        crossovers = [
            Crossover(crossing.at, crossing.interval, place_of(crossing, series.axis))
            for duel in series.duels
            for crossing in duel.crossings
        ]
        panels += [Panel(series.label, series.axis, lines, crossovers)] if lines else []
    if not panels:
        return None
    known = any(step.low is not None for panel in panels for line in panel.lines for _, step in line.points)
    intervals = " Vertical lines: 95 % intervals." if known else ""
    axes = " and ".join(dict.fromkeys(AXES.get(panel.axis, panel.axis) for panel in panels))
    caption = f"Time per step by {axes}, both axes logarithmic.{intervals} {where(findings.record)}."
    return LineChart(title, caption, panels)


def soaked(soaks: Sequence[Soak], title: str) -> LineChart | None:
    """Return panels for each workload of a soak: memory, the device's where it is known, times over the control's."""
    named = names(soak.column for soak in soaks)
    styles = looks(list(named))
    panels = []
    for label in dict.fromkeys(soak.row.label for soak in soaks):
        of_row = [soak for soak in soaks if soak.row.label == label]
        memory = [(soak, [(minute, held / MIB) for minute, held in soak.held_bytes]) for soak in of_row]
        on_device = [(soak, [(minute, held / MIB) for minute, held in soak.held_on_device]) for soak in of_row]
        for what, unit, series in (
            ("memory", "MiB", memory),
            ("device memory", "MiB", on_device),
            ("time relative to a process that rests", "×", [(soak, soak.ratios) for soak in of_row]),
        ):
            lines = [
                Line(named[soak.column], styles[soak.column], _thinned(points), soak.column.backend)
                for soak, points in series
                if points
            ]
            if lines:
                panels.append(Panel(label, "minutes", lines, unit=unit, linear=True, what=what))
    caption = "Memory of the process, and time relative to a second process that mostly rests, over the run."
    return LineChart(title, caption, panels) if panels else None


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, Estimate]]:
    """Return the means of so many parts as a chart can show."""
    length = -(-len(points) // MOST_POINTS)
    parts = [points[first : first + length] for first in range(0, len(points), length)]
    return [(statistics.fmean(at for at, _ in part), mean([value for _, value in part])) for part in parts]
