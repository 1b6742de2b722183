"""The tables of the training step: who is fastest, the verdicts, the table while a run goes on."""

from kerasbench.analysis.standings import CONTROL_BOUND, Comparison
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.verdicts import Verdict
from kerasbench.report.cells import column_name, column_names, estimated, timed
from kerasbench.report.notes import corrected, paired, timed_in, training_notes
from kerasbench.report.number import with_interval
from kerasbench.report.sections import Cell, Section, Table, texts

SCARCE_ROUNDS = 30  # more rounds than that are no advice


def training(summary: Summary) -> Section:
    """Return the headline table: what a training step costs, its share of the epoch's overhead included.

    Of a model that is not trained it has a prediction.
    """
    what = timed_in(summary.rows)
    title = "Time of a prediction" if what == "prediction" else what.capitalize()
    if not summary.rows:
        return Section(title, lines=["Nothing was measured."])
    body = [
        [Cell(row.label), *(timed(row, column, standing) for column in summary.columns)]
        for row, standing in zip(summary.rows, summary.standings, strict=True)
    ]
    table = Table(["scenario", *column_names(summary.columns)], body)
    return Section(title, table=table, notes=training_notes(summary), picture="step_times")


def verdicts(summary: Summary) -> Section | None:
    """Return the fastest of each row against each of the others: ratio, verdict, and what would decide."""
    rows = [
        [*texts(row.label, column_name(standing.fastest)), *_compared(comparison)]
        for row, standing in zip(summary.rows, summary.standings, strict=True)
        if standing.fastest is not None and standing.proven
        for comparison in standing.comparisons
    ]
    if not rows:
        return None
    table = Table(["scenario", "fastest", "against", "ratio of times", "verdict", "rounds"], rows)
    effect = f"{summary.record.minimal_effect:.0%}"
    notes = [
        f"The fastest cell's time over the other's, {paired(summary.rows)}, ±: the 95 % interval{corrected(summary)}.",
        f"Faster: significantly, by more than {effect}. Same: significantly within {effect}.",
        "Rounds: how many were made, and of an inconclusive verdict about how many this comparison alone would need.",
    ]
    return Section("Verdicts", table=table, notes=notes, folded=True)


def controls(summary: Summary) -> Section | None:
    """Return what this machine cannot tell apart: each row's control against the column that it repeats."""
    lines = [
        f"{row.label}: {column_name(one.column)} against itself: {with_interval(one.ratio)}"
        f"{'; this is not 1, so the row has no verdicts' if one.is_off else ''}."
        for row, standing in zip(summary.rows, summary.standings, strict=True)
        if (one := standing.control) is not None
    ]
    if not lines:
        return None
    notes = [
        "One column of each row was measured twice in every bout. The ratio of the two should be 1; its interval is "
        "what cannot be told apart here.",
        f"Where the interval lies wholly outside ±{CONTROL_BOUND:.0%}, the row has no verdicts.",
    ]
    return Section("What this machine cannot tell apart", lines=lines, notes=notes)


def _compared(one: Comparison) -> list[Cell]:
    made, decides = one.ratio.trials, one.decides
    if one.verdict is not Verdict.INCONCLUSIVE:
        rounds = Cell(str(made), made)
    elif decides is None or decides > SCARCE_ROUNDS:
        rounds = Cell(f"over {SCARCE_ROUNDS}", SCARCE_ROUNDS)
    else:
        needed = max(decides, made + 1)  # one that Holm's correction took back needs more than it has
        rounds = Cell(str(needed), needed)
    return [Cell(column_name(one.rival)), estimated(one.ratio), Cell(one.verdict), rounds]
