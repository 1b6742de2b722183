"""What feeds cost: a batch of each by itself, the share of a step that waits for it, and how many workers end that."""

from collections.abc import Iterator

from kerasbench import variants
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column, Options
from kerasbench.report.kinds import ordered
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.report.words import names, percent, three_digits, with_range
from kerasbench.text import count
from kerasbench.variants.feed import Feed
from kerasbench.variants.workers import Workers, without_feed

ARRAYS = "arrays"
LEAST = 1  # ms, or MiB, of an import: less is none
WAITS = 10  # percent of a step: what waits for less does not wait
NOTE = (
    "In each cell: what a batch takes from the feed to Keras, without a model; the share of a step that waits for its "
    "batch, which is what it takes beyond one whose batch lies ready on the device; then the time and the memory of "
    "importing the feed's package, where they were measured and there are any. Arrays lie in memory, files in the "
    "system's cache."
)


def section(summary: Summary) -> Section | None:
    plain, rows, lines = summary.plain, [], list[str]()
    if not any(case.estimate("feed_batch_ms") for _, _, case in plain.cases):
        return None
    bases = list(dict.fromkeys(map(without_feed, plain.columns)))
    for row, _ in ordered(plain):
        for options in dict.fromkeys(_feed_of(column) for column in plain.columns):
            cells = [_cell(row, base.with_options(**options)) for base in bases]
            rows += [[*texts(row.label, _name(options)), *cells]] if any(cell is not EMPTY for cell in cells) else []
        lines += _on_workers(row)
    table = Table(["workload", "feed", *names(bases).values()], rows)
    return Section("What feeds cost", table=table, notes=[NOTE], lines=lines)


def _feed_of(column: Column) -> Options:
    return Options(**{name: column.options.get(name) for name in (Feed.name, Workers.name)})


def _name(options: Options) -> str:
    return ", ".join(variant.describe(value, "") for variant, value in variants.chosen(options)) or ARRAYS


def _cell(row: Row, column: Column) -> Cell:
    case = row.cases.get(column)
    alone = case.estimate("feed_batch_ms") if case else None
    if case is None or alone is None:
        return EMPTY
    waiting = case.estimate("feed_waiting")
    needs = {unit: case.estimate(f"feed_import_{unit.lower()}") for unit in ("ms", "MiB")}
    parts = [with_range(alone, "ms"), *([percent(waiting.value / 100)] if waiting else [])]
    parts += [f"{three_digits(need.value)} {unit}" for unit, need in needs.items() if need and need.value >= LEAST]
    return Cell(", ".join(parts), alone.value)


def _on_workers(row: Row) -> Iterator[str]:
    """Yield from how many workers on no step waits, of each feed that was measured with several numbers of them."""
    shares: dict[Column, dict[int, float]] = {}
    for column, case in row.cases.items():
        if Feed.name in column.options and (waiting := case.estimate("feed_waiting")):
            workers = int(column.options.get(Workers.name, 0))
            shares.setdefault(column.with_options(workers=None), {})[workers] = waiting.value
    named = names(shares)
    for column, by_workers in shares.items():
        if len(by_workers) < 2:
            continue
        numbers = sorted(by_workers)
        free = [number for number in numbers if all(by_workers[more] < WAITS for more in numbers if more >= number)]
        if free[:1] == [0]:
            what = f"without workers, too, a step waits for less than {WAITS} % of its time"
        elif free:
            what = f"from {count(free[0], 'worker')} on a step waits for less than {WAITS} % of its time"
        else:
            share = percent(by_workers[numbers[-1]] / 100)
            what = f"with {count(numbers[-1], 'worker')} a step still waits for {share} of its time"
        yield f"{row.label} on {named[column]}: {what}."
