"""What stands below a table of steps: what its figures and its marks are."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.summary import Summary
from kerasbench.exchange.devices import APPLE
from kerasbench.exchange.options import is_beside_busy_cores, is_native
from kerasbench.text import count

OVERHEAD_STEP_MS = 5  # below it a step is mostly Python and framework overhead (floors on a CPU: 0.2 to 1.5 ms)
LEGEND = "Bold: significantly the fastest. ≈: not significantly slower than the fastest. ⚠: see Warnings."
PREDICTED = (
    "(predict): a model that is not trained, because it was saved without compile(); its figure is predict_on_batch "
    "of one batch, median."
)
STEP = (
    "A typical step of fit, without its progress bar: the time of an epoch over its steps, by medians. It contains "
    "feeding the batch, the step, its metrics, and its share of what each epoch costs once."
)


def timed_in(rows: Sequence[Row]) -> str:
    """Return what the headline of these rows is the time of: a training step, but of a model that is not trained."""
    kinds = {row.regime.predicts_only for row in rows}
    return "prediction" if kinds == {True} else "training step or prediction" if True in kinds else "training step"


def training_notes(summary: Summary, step: str = STEP) -> list[str]:
    """Return what a table of steps cannot say in a cell, one line each; ``step`` says what a step is there."""
    notes = list(_verdict_notes(summary))
    if not all(row.regime.predicts_only for row in summary.rows):
        notes.append(step)
    if any(row.regime.predicts_only for row in summary.rows):
        notes.append(PREDICTED)
    if any(_is_mostly_overhead(row) for row in summary.rows):
        notes.append(
            f"Steps under {OVERHEAD_STEP_MS} ms are mostly Python and framework overhead, not the device's work."
        )
    if any(is_native(column[2]) for column in summary.columns):
        notes.append("native=on: the same model in the plain framework, without Keras; see What Keras costs.")
    if any(is_beside_busy_cores(column[2]) for column in summary.columns):
        notes.append("busy-cores=N: kerasbench kept N processors busy beside it; see What busy cores cost.")
    return notes


def _verdict_notes(summary: Summary) -> Iterator[str]:
    """Say what the marks of the table rest on."""
    few = [row for row in summary.rows if row.rounds < MIN_TRIALS_FOR_INTERVAL]
    proven = any(standing.proven for standing in summary.standings)
    if not proven and len(few) == len(summary.rows):
        rounds = max((row.rounds for row in summary.rows), default=summary.record.rounds_completed)
        yield (
            f"Bold: the fastest measured in {count(rounds, 'complete round')}: too few for an interval, so nothing is "
            "proven. ⚠: see Warnings."
        )
        return
    yield LEGEND
    yield f"×: the time over that of the fastest of the row. ±: the 95 % interval of it, {paired(summary.rows)}."
    yield f"Significant: by more than {summary.record.minimal_effect:.0%}{corrected(summary)}."


def paired(rows: Sequence[Row]) -> str:
    """Return how the cells of these rows were compared."""
    ways = {row.in_turn for row in rows if len(row.cells) > 1}
    if ways == {True, False}:
        return "compared bout by bout, and what was measured one after another by rounds"
    return "compared bout by bout" if ways == {True} else "paired by rounds"


def first_step(summary: Summary) -> list[str]:
    """Return what a first step is, and how cold its compilation was."""
    notes = ["First step: tracing, compiling and running one fit of one batch, with empty compilation caches."]
    if any(trial.device.platform in APPLE for trial in summary.record.trials):
        # Metal's compiler keeps kernels in the user's cache folder of macOS (com.apple.metal), by program.
        notes.append("On the Apple GPU, macOS keeps Metal's own cache: kernels may come from an earlier trial.")
    return notes


def corrected(summary: Summary) -> str:
    """Return how many verdicts of a table were judged together."""
    made = sum(len(standing.comparisons) for standing in summary.standings if standing.proven and not standing.withheld)
    return f" ({made} verdicts corrected by Holm's method)" if made > 1 else ""


def _is_mostly_overhead(row: Row) -> bool:
    found = [cell.estimate(row.headline) for cell in row.cells.values() if not row.regime.predicts_only]
    return any(estimate.value < OVERHEAD_STEP_MS for estimate in found if estimate)
