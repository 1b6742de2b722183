"""What a soak has found: whether memory grew and steps became slower, in sentences, a table and a picture."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.estimates import Interval
from kerasbench.analysis.soak import Soak
from kerasbench.analysis.summary import LEAST_SLOWER, slower_by_subnormals
from kerasbench.protocol.columns import CPU
from kerasbench.report import charts
from kerasbench.report.figures import duration, names, percent, three_digits
from kerasbench.report.sections import EMPTY, Cell, Section, Table, number, texts
from kerasbench.text import KIB, MIB


def section(soaks: Sequence[Soak]) -> Section:
    """Return the first section of a page."""
    named, lines, tells = (
        names(soak.column for soak in soaks),
        sentences(soaks),
        any(soak.held_on_device for soak in soaks),
    )
    rows = [
        [
            *texts(soak.row.label, named[soak.column]),
            number(soak.units),
            Cell(duration(soak.unit_ns), soak.unit_ns),
            *_amounts(soak, soak.memory),
            *(_amounts(soak, soak.device_memory) if tells else ()),
            _amount(soak.slower, 100, "%"),
        ]
        for soak in soaks
    ]
    headers = ["scenario", "column", "units", "time of one", "memory a minute", "memory a unit", "slower over the run"]
    if tells:
        headers[-1:-1] = ["device memory a minute", "device memory a unit"]
    notes = [
        "Unit: a training step, an epoch where these are shorter than eight steps, a prediction, or a build.",
        "A line through the medians of ten parts of the run, without its first tenth; in brackets its 95 % interval.",
        "Slower: by the time of a unit over that of a control in turn, a process of the same case that rests most of "
        "the time.",
    ]
    if any(soak.column.device != CPU and not soak.held_on_device for soak in soaks):
        notes.append("Host memory alone: the device does not tell what it holds, so a leak there is not seen.")
    return Section("Answer", lines, Table(headers, rows), notes=notes, chart=charts.soaked(soaks))


def sentences(soaks: Sequence[Soak]) -> list[str]:
    """Return ``mnist_dense: torch: memory grows by 0.90 MiB (0.70 to 1.10) a minute; ...`` for each case."""
    named = names(one.column for one in soaks)
    return [
        f"{one.row.label}: {named[one.column]}: {'; '.join(_parts(one))}, in {one.minutes:.1f} minutes."
        for one in soaks
    ]


def _parts(soak: Soak) -> Iterator[str]:
    slower = soak.slower
    yield _memory(soak, soak.memory, "memory" if soak.column.device == CPU else "host memory")
    if soak.held_on_device:
        yield _memory(soak, soak.device_memory, "device memory")
    subnormals = slower_by_subnormals(soak.row.cases[soak.column]) >= LEAST_SLOWER
    if subnormals:
        yield (
            f"{soak.unit}s became slower in the first thousand, for numbers of its optimizer became subnormal "
            "(torch.set_flush_denormal(True) avoids that)"
        )
    if slower is None:
        yield f"nothing is known of whether {soak.unit}s become slower"
    elif soak.slows:
        yield f"{soak.unit}s became {_interval(slower, 100, '%')} slower"
    elif not subnormals:
        by = f" by more than {percent(slower.high)}"
        yield f"{soak.unit}s did not become slower{by if slower.high > 0 else ''}"


def _memory(soak: Soak, memory: Interval | None, what: str) -> str:
    unit, by_minute = f"{'an' if soak.unit[0] in 'aeiou' else 'a'} {soak.unit}", soak.by_minute(memory)
    if memory is None or by_minute is None:
        return f"too short to tell whether {what} grows"
    if soak.leaks(memory):
        a_minute, a_unit = _interval(by_minute, 1 / MIB, "MiB"), _interval(memory, 1 / KIB, "KiB")
        return f"{what} grows by {a_minute} a minute, {a_unit} {unit}"
    above = f" above {three_digits(memory.high / KIB)} KiB {unit}"
    return f"no growth of {what}{above if memory.high > 0 else ''}"


def _amounts(soak: Soak, memory: Interval | None) -> list[Cell]:
    return [_amount(soak.by_minute(memory), 1 / MIB, "MiB"), _amount(memory, 1 / KIB, "KiB")]


def _amount(trend: Interval | None, factor: float, unit: str) -> Cell:
    return EMPTY if trend is None else Cell(_interval(trend, factor, unit), trend.value * factor)


def _interval(trend: Interval, factor: float, unit: str) -> str:
    numbers = [one * factor for one in (trend.value, trend.low, trend.high)]
    value, low, high = (f"{one:,.0f}" if abs(one) >= 100 else f"{one:.3g}" for one in numbers)
    return f"{value} {unit} ({low} to {high})"
