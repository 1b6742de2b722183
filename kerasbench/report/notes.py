"""What stands below the headline table: what its figures are, and what is to be said of single cells."""

from collections.abc import Callable, Iterator, Sequence

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.summary import Summary
from kerasbench.exchange.devices import APPLE
from kerasbench.exchange.options import is_native
from kerasbench.quiet.signals import SCATTER_WARN
from kerasbench.report.cells import column_name
from kerasbench.report.markdown import escape
from kerasbench.results.keys import Column
from kerasbench.results.record import Group
from kerasbench.text import count, label

OVERHEAD_STEP_MS = 5  # below it a step is mostly Python and framework overhead (floors on a CPU: 0.2 to 1.5 ms)
COMMON = ("keras", "python")  # what every column has, and what makes more than the backend differ
# Metal's compiler keeps kernels in the user's cache folder of macOS (com.apple.metal), by program.
METAL_CACHE = ", but for Metal's own: macOS keeps it, so on the Apple GPU kernels may come from an earlier trial"
STEP = (
    "A step as a user of `fit` sees it: the time of an epoch of the published length over its steps. It contains "
    "feeding the batch, the step, its metrics, and its share of what each epoch costs once (validation included)."
)


def training_notes(summary: Summary, step: str = STEP) -> str:
    """Return what a table of steps cannot say in a cell, one line each; ``step`` says what a step is there."""
    notes = [step, *_verdict_notes(summary)]
    if any(_is_mostly_overhead(row) for row in summary.rows):
        notes.append(
            f"Steps under {OVERHEAD_STEP_MS} ms are mostly Python and framework overhead, not the device's work."
        )
    if any(is_native(column[2]) for column in summary.columns):
        notes.append(
            "native=on: the same model in the plain framework, without Keras; compared under What Keras costs alone."
        )
    notes += [f"{package} differs between columns: {escape(said)}." for package, said in _differing(summary)]
    notes += [f"Done by the CPU, because the GPU lacks them: {escape(said)}." for said in _fallbacks(summary)]
    notes += [f"Measured apart, for lack of memory: {said}." for said in _apart(summary)]
    notes += _unshown(summary)
    for note, applies in _CELL_NOTES:
        named = [_named(row, [c for c in row.cells if applies(row, c)]) for row in summary.rows]
        if any(named):
            notes.append(note.format("; ".join(filter(None, named))))
    return "\n".join(f"- {note}" for note in notes)


def _verdict_notes(summary: Summary) -> Iterator[str]:
    """Say what the marks of the table rest on."""
    few = [row for row in summary.rows if row.rounds < MIN_TRIALS_FOR_INTERVAL]
    proven = any(standing.proven for standing in summary.standings)
    if not proven and len(few) == len(summary.rows):
        rounds = max((row.rounds for row in summary.rows), default=summary.record.rounds_completed)
        yield (
            f"Bold: the fastest measured in {count(rounds, 'complete round')}. Fewer than {MIN_TRIALS_FOR_INTERVAL} "
            "rounds give no interval, so this is no verdict."
        )
        return
    yield (
        "×: the time over that of the fastest of the row, ±: the 95 % interval of that ratio, "
        f"{paired(summary.rows)}. Bold: significantly faster than every other cell of its row, by more than "
        f"{summary.record.minimal_effect:.0%}{corrected(summary)}. ≈: the fastest, and what cannot be told from it."
    )
    sliced = [row for row, place in zip(summary.rows, summary.standings, strict=True) if place.by_slices]
    if sliced:
        yield (
            f"Fewer than {MIN_TRIALS_FOR_INTERVAL} bouts, so that the interval is from their slices, widened by what "
            f"processes are known to differ by: {_labels(sliced)}."
        )
    unproven = [row for row in few if row not in sliced]
    if unproven:
        yield f"Fewer than {MIN_TRIALS_FOR_INTERVAL} rounds, so without ± and verdict: {_labels(unproven)}."
    off = [row for row, place in zip(summary.rows, summary.standings, strict=True) if place.withheld]
    if off:
        yield f"No verdicts, because a column that was measured twice differs from itself: {_labels(off)}."


def paired(rows: Sequence[Row]) -> str:
    """Return how the cells of these rows were compared."""
    ways = {row.in_turn for row in rows if len(row.cells) > 1}
    if ways == {True, False}:
        return "compared bout by bout, and results of an older kerasbench by rounds"
    return "compared bout by bout" if ways == {True} else "paired by rounds"


def _labels(rows: Sequence[Row]) -> str:
    """Return the names of rows, or that it is all of a table's when they are many."""
    return escape(", ".join(row.label for row in rows))


def _apart(summary: Summary) -> Iterator[str]:
    """Return, for each row whose columns did not fit into memory together, which were measured side by side."""
    for row in summary.rows:
        groups: dict[int, dict[int, list[Column]]] = {}
        for column, cell in row.cells.items():
            for trial, _ in cell.trials:
                if trial.bout and row.origin.protocol != "published":
                    groups.setdefault(trial.round, {}).setdefault(trial.bout, []).append(column)
        found = next((bouts for bouts in groups.values() if len(bouts) > 1), None)
        if found:
            yield f"{escape(row.label)}: " + "; ".join(
                ", ".join(column_name(column) for column in columns) for columns in found.values()
            )


def let_in(summary: Summary) -> str:
    """Return which variables of the shell reached the trials, and of which rows where not of all; empty without any."""
    rows: dict[str, list[str]] = {}
    for row in summary.rows:
        rows.setdefault(", ".join(f"{name}={value}" for name, value in row.origin.keep_env.items()), []).append(
            row.label
        )
    said = [f"{one} ({', '.join(labels)})" if len(rows) > 1 else one for one, labels in rows.items() if one]
    return f"Let in from the shell (--keep-env): {'; '.join(said)}." if said else ""


def first_step(summary: Summary) -> str:
    """Return what a first step is, and how cold its compilation was."""
    apple = any(trial.device.platform in APPLE for trial in summary.record.trials)
    return (
        "First step: tracing, compiling and running one `fit` of one batch, with empty compilation caches"
        f"{METAL_CACHE if apple else ''}."
    )


def _unshown(summary: Summary) -> Iterator[str]:
    """Return, for each run that has columns which the table lacks or has older figures of, which those are."""
    found: dict[tuple[str, bool], list[str]] = {}
    for group in dict.fromkeys(Group(row.scenario.name, row.regime.name, row.size is not None) for row in summary.rows):
        for one in summary.record.unshown.get(group, []):
            columns = ", ".join(column_name(column) for column in one.columns)
            named = f"{escape(label(group.scenario, group.regime))} {columns}"
            found.setdefault((one.started, one.newer), []).append(named)
    for (started, newer), cells in sorted(found.items(), reverse=True):
        age = "A newer" if newer else "An older"
        yield (
            f"{age} run, begun {escape(started)}, is not shown here, because a row is of one run: {'; '.join(cells)}. "
            "That run has a page of its own. Measure all of a row's columns in one run to see them together."
        )


def _named(row: Row, columns: list[Column]) -> str:
    """Return ``dense jax cpu, torch cpu``: these cells of a row, nothing where there is none."""
    if len(columns) == len(row.cells) > 1:
        return f"{escape(row.label)} (all columns)"
    return f"{escape(row.label)} {', '.join(column_name(column) for column in columns)}" if columns else ""


def _differing(summary: Summary) -> Iterator[tuple[str, str]]:
    """Return the packages of which columns that are compared had different versions, and which had which."""
    for package in COMMON:
        found: dict[str, dict[str, None]] = {}
        for trial in summary.record.trials:
            if trial.measurement is not None and (version := trial.measurement.resolved.versions.get(package)):
                found.setdefault(version, {})[column_name(trial.column)] = None
        if len(found) > 1:
            yield package, "; ".join(f"{version} on {', '.join(names)}" for version, names in sorted(found.items()))


def _fallbacks(summary: Summary) -> Iterator[str]:
    """Return, for each cell that has any, the operations of a step that fell back, and how often each."""
    for row in summary.rows:
        for column, cell in row.cells.items():
            counts = {name: n for _, measurement in cell.trials for name, n in measurement.fallbacks.items()}
            if counts:
                named = ", ".join(f"{name} ({times} a step)" for name, times in sorted(counts.items()))
                yield f"{row.label} {column_name(column)}: {named}"


def _unsteady(row: Row, column: Column) -> bool:
    trials = row.cells[column].trials
    return 2 * sum(not measurement.training.steady for _, measurement in trials) > len(trials)


def _scattered(row: Row, column: Column) -> bool:
    return (row.cells[column].scatter or 0) >= SCATTER_WARN


def _unjudged(row: Row, column: Column) -> bool:
    trials = row.cells[column].trials
    others = [cell for other, cell in row.cells.items() if other != column and cell.trials]
    steady = row.origin.protocol == "steady"
    return bool(steady and trials and others) and all(measurement.parity is None for _, measurement in trials)


_CELL_NOTES: tuple[tuple[str, Callable[[Row, Column], bool]], ...] = (
    (
        "†: does not learn, its loss is the same before and after training: {}.",
        lambda row, column: column in row.idle,
    ),
    (
        "~: disturbed in a round (see Noise): {}.",
        lambda row, column: bool(row.cells[column].noisy),
    ),
    ("Not compared with the others by its first losses: {}.", _unjudged),
    (f"Trials scatter by {SCATTER_WARN:.0%} or more: {{}}.", _scattered),
    (
        "Not shown to be steady when it was measured, in most trials: {}.",
        _unsteady,
    ),
)


def corrected(summary: Summary) -> str:
    """Return how many verdicts of a table were judged together."""
    made = sum(len(standing.comparisons) for standing in summary.standings if standing.proven and not standing.withheld)
    return f" ({made} verdicts corrected by Holm's method)" if made > 1 else ""


def _is_mostly_overhead(row: Row) -> bool:
    found = [cell.estimate(row.headline) for cell in row.cells.values()]
    return any(estimate.value < OVERHEAD_STEP_MS for estimate in found if estimate)
