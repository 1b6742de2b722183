"""What a soak shows: whether memory grew and steps became slower, in sentences, a table and a chart."""

import statistics
from collections.abc import Iterator, Sequence

from kerasbench.analysis.estimates import Estimate, Interval, mean
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import LEAST_SLOWER, slower_by_subnormals
from kerasbench.modes.soak import JUDGED_MINUTES, MODE
from kerasbench.modes.soak.trend import Soak, soaks
from kerasbench.protocol.columns import CPU
from kerasbench.protocol.stages import BUILD_FIT
from kerasbench.report import charts, data
from kerasbench.report.document import Document, Trend
from kerasbench.report.kinds import grouped
from kerasbench.report.sections import EMPTY, Cell, Line, LineChart, Panel, Section, Strong, Table, Words, number, texts
from kerasbench.report.teller import Brief, ModeReport
from kerasbench.report.warnings import Marks
from kerasbench.report.words import duration, listed, names, percent, seconds
from kerasbench.results.run import RunConfig
from kerasbench.text import GIB, KIB, MIB, NOTHING

MOST_POINTS = 60  # of a line
UNITS = (("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1))


def _parts(soak: Soak) -> Iterator[str]:
    slower, unit = soak.slower_share, _one(soak)
    yield _memory(soak, soak.memory_bytes_per_unit, "memory" if soak.column.device == CPU else "host memory")
    if soak.held_on_device_mib:
        yield _memory(soak, soak.device_memory_bytes_per_unit, "device memory")
    if _by_subnormals(soak):
        why = "numbers of the optimizer became subnormal (torch.set_flush_denormal(True) avoids it)"
        yield f"each {soak.unit} became slower in the first thousand, because {why}"
    if slower is None:
        yield f"too short to say whether {unit} becomes slower"
    elif soak.becomes_slower:
        yield f"{unit} became {_interval(slower, 100, '%')} slower"
    elif not _by_subnormals(soak):
        by = f" by more than {percent(slower.high)}"
        yield f"{unit} did not become slower{by if slower.high > 0 else ''}"


def _one(soak: Soak) -> str:
    return f"{'an' if soak.unit[0] in 'aeiou' else 'a'} {soak.unit}"


def _by_subnormals(soak: Soak) -> bool:
    return slower_by_subnormals(soak.row.cases[soak.column]) >= LEAST_SLOWER


def _memory(soak: Soak, memory: Interval | None, what: str) -> str:
    if memory is None:
        return f"too short to say whether {what} grows"
    if soak.leaks(memory):
        a_minute, a_unit = in_bytes(memory, soak.units_a_minute), in_bytes(memory)
        return f"{what} grows by {a_minute} a minute, {a_unit} {_one(soak)}"
    unit, size = _unit(memory.high)
    above = f" above {_number(memory.high / size)} {unit} {_one(soak)}"
    return f"no growth of {what}{above if memory.high > 0 else ''}"


def _amounts(soak: Soak, memory: Interval | None) -> list[Cell]:
    factors = (soak.units_a_minute, 1.0)
    return [EMPTY if memory is None else Cell(in_bytes(memory, by), memory.value * by) for by in factors]


def in_bytes(growth: Interval, by: float = 1.0) -> str:
    unit, size = _unit(by * max(growth.value, -growth.low, growth.high))
    return _interval(growth, by / size, unit)


def _unit(most_bytes: float) -> tuple[str, int]:
    return next(((unit, size) for unit, size in UNITS if most_bytes >= 0.995 * size), UNITS[-1])


def _interval(trend: Interval, factor: float, unit: str) -> str:
    value, low, high = (_number(amount * factor) for amount in (trend.value, trend.low, trend.high))
    return f"{value} {unit} ({low} to {high})"


def _number(amount: float) -> str:
    """Return two or three digits: ``235``, ``64``, ``4.2``."""
    return f"{amount:,.0f}" if abs(amount) >= 9.95 else f"{round(amount, 1) + 0:.1f}"


def _chart(soaks: Sequence[Soak], title: str) -> LineChart | None:
    named = names(soak.column for soak in soaks)
    styles = charts.looks(list(named))
    panels = []
    for label, of_row in grouped((soak.row.label, soak) for soak in soaks).items():
        for what, unit, series in (
            ("memory", "MiB", [soak.held_mib for soak in of_row]),
            ("device memory", "MiB", [soak.held_on_device_mib for soak in of_row]),
            ("time relative to a process that rests", "×", [soak.ratios for soak in of_row]),
        ):
            lines = [
                Line(named[soak.column], styles[soak.column], _thinned(points), soak.column.backend)
                for soak, points in zip(of_row, series, strict=True)
                if points
            ]
            if lines:
                panels.append(Panel(label, "minutes", lines, unit=unit, linear=True, what=what))
    caption = "Memory of the process, and time relative to a second process that mostly rests, over the run."
    return LineChart(title, caption, panels) if panels else None


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, Estimate]]:
    length = -(-len(points) // MOST_POINTS)
    parts = [points[first : first + length] for first in range(0, len(points), length)]
    return [(statistics.fmean(at for at, _ in part), mean([value for _, value in part])) for part in parts]


class SoakReport(ModeReport):
    name = MODE.name

    def words(self, config: RunConfig) -> list[str]:
        settings = MODE.settings_of(config)
        purpose = [] if settings.purpose == "train" else ["--for", settings.purpose]
        return [*super().words(config), *purpose, "--minutes", f"{settings.minutes:g}"]

    def rounds(self, config: RunConfig) -> list[str]:
        return []

    def title(self, summary: Summary) -> str:
        of_run = soaks(summary)
        if not of_run:
            return ""
        named = names(soak.column for soak in of_run)
        several = len({soak.row.label for soak in of_run}) > 1

        def who(chosen: Sequence[Soak]) -> str:
            return listed([(f"{soak.row.label} on " if several else "") + named[soak.column] for soak in chosen])

        grows = [soak for soak in of_run if soak.memory_grows]
        slows = [soak for soak in of_run if soak.becomes_slower or _by_subnormals(soak)]
        workload = "" if several else f"{of_run[0].row.label}: "
        lasted = seconds(60 * max(soak.minutes for soak in of_run))
        if not slows and not any(soak.memory_bytes_per_unit or soak.slower_share for soak in of_run):
            return f"{workload}{lasted} is too short to say whether memory grows or steps become slower"
        memory = "too short to say whether memory grows"
        if grows or all(soak.memory_bytes_per_unit for soak in of_run):
            short = [soak for soak in of_run if soak.memory_bytes_per_unit is None]
            memory = f"memory grows on {who(grows)}" if grows else "memory does not grow"
            memory += f" (too short to say on {who(short)})" if short else ""
        slower = "too short to say whether anything becomes slower"
        if slows or all(soak.slower_share for soak in of_run):
            slower = f"steps become slower on {who(slows)}" if slows else "nothing becomes slower"
        return f"{workload}{memory}, {slower}, within {lasted}"

    def sections(self, summary: Summary, marks: Marks) -> Iterator[Section]:
        of_run = soaks(summary)
        if not of_run:
            return
        named, tells = names(soak.column for soak in of_run), any(soak.held_on_device_mib for soak in of_run)
        rows = []
        for soak in of_run:
            cells = [*texts(soak.row.label, named[soak.column]), number(soak.units)]
            cells += [Cell(duration(soak.unit_ns), soak.unit_ns), *_amounts(soak, soak.memory_bytes_per_unit)]
            cells += _amounts(soak, soak.device_memory_bytes_per_unit) if tells else []
            slower = soak.slower_share
            rows.append([*cells, Cell(_interval(slower, 100, "%"), slower.value) if slower else EMPTY])
        on_device = ["device memory a minute", "device memory a unit"] if tells else []
        headers = ["workload", "configuration", "units", "time of one", "memory a minute", "memory a unit"]
        headers += [*on_device, "slower over the run"]
        notes: list[Words] = [
            "A unit is a training step, an epoch where these are shorter than eight steps, a prediction, or a build. "
            "In brackets: 95 % intervals. Slower: relative to a second process of the same case that mostly rests."
        ]
        plans = [soak.row.origin.config.effort.plan for soak in of_run]
        if any(plan.kind == "predict_calls" for plan in plans):
            notes.append("A prediction is a call of predict() on one batch.")
        if any(BUILD_FIT in plan.stages for plan in plans):
            notes.append("A build is followed by fit() for one epoch of at most 16 steps; then the session is cleared.")
        if any(soak.column.device != CPU and not soak.held_on_device_mib for soak in of_run):
            notes.append("Host memory alone: the device does not report what it holds, so a leak there is not found.")
        chart = _chart(of_run, self.title(summary))
        yield Section("", chart=chart, table=Table(headers, rows), notes=notes, lines=self.sentences(summary))

    def advice(self, summary: Summary) -> Iterator[Words]:
        if not all(soak.is_judged for soak in soaks(summary)):
            least = f"{JUDGED_MINUTES:g} minute"
            yield [Strong("Too short."), f" Below {least} no trend is judged. Leave out --minutes: it takes 5."]

        few = [soak for soak in soaks(summary) if soak.is_judged and soak.memory_bytes_per_unit is None]
        if few:
            named = names(soak.column for soak in soaks(summary))
            who = listed([named[soak.column] for soak in few])
            yield [Strong(f"Too short on {who}."), " Too few steps or builds for a trend: give it more --minutes."]

    def sentences(self, summary: Summary) -> list[str]:
        named = names(soak.column for soak in soaks(summary))
        return [f"{soak.row.label} on {named[soak.column]}: {'; '.join(_parts(soak))}." for soak in soaks(summary)]

    def briefs(self, summary: Summary) -> Iterator[Brief]:
        return ((row, "soak", [NOTHING, NOTHING]) for row in summary.rows if summary.mode == MODE.name)

    def data(self, summary: Summary) -> Document:
        return Document(trends=list(map(_trend, soaks(summary))))


def _trend(soak: Soak) -> Trend:
    return Trend(
        **data.of_key(soak.row.key(soak.column)),
        minutes=soak.minutes,
        unit=soak.unit,
        units=soak.units,
        unit_ms=soak.unit_ns / 1e6,
        memory_grows=soak.memory_grows,
        memory_bytes_per_unit=soak.memory_bytes_per_unit,
        device_memory_bytes_per_unit=soak.device_memory_bytes_per_unit,
        becomes_slower=soak.becomes_slower,
        slower_share=soak.slower_share,
    )
