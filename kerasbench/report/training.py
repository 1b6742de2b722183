"""The tables of the training step: who is fastest, the verdicts, the table while a run goes on."""

from collections.abc import Iterator

from kerasbench.analysis.cells import Row
from kerasbench.analysis.standings import CONTROL_BOUND, Comparison
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.verdicts import Verdict
from kerasbench.report import sweep
from kerasbench.report.cells import column_name, column_names, timed
from kerasbench.report.markdown import draw_table, escape
from kerasbench.report.notes import corrected, paired, training_notes
from kerasbench.report.number import with_interval

SCARCE_ROUNDS = 30  # more rounds than that are no advice


def training(summary: Summary) -> str:
    """Return the headline table with its title and notes."""
    return _section(training_table(summary), summary)


def brief(summary: Summary) -> str:
    """Return the same for a terminal."""
    return _section(narrow_table(summary), summary)


def _section(table: str, summary: Summary) -> str:
    return f"## Training step\n\n{table}\n\n{training_notes(summary)}"


def table_so_far(summary: Summary) -> str:
    """Return what a run shows after each round: its tables of steps, without their titles and notes."""
    published, sized = summary.plain, summary.swept
    tables = (narrow_table(published) if published.rows else "", sweep.narrow_table(sized) if sized.rows else "")
    return "\n\n".join(table for table in tables if table)


def training_table(summary: Summary) -> str:
    """Return the headline table: what a training step costs, its share of the epoch's overhead included."""
    body = [[*_subject(row), *times] for row, times in _times(summary)]
    return draw_table(["scenario", "data", "batch", "steps", *column_names(summary.columns)], body)


def narrow_table(summary: Summary) -> str:
    """Return it without what a scenario is, so that three columns fit into a terminal."""
    body = [[escape(row.label), *times] for row, times in _times(summary)]
    return draw_table(["scenario", *column_names(summary.columns)], body)


def _times(summary: Summary) -> Iterator[tuple[Row, list[str]]]:
    for row, standing in zip(summary.rows, summary.standings, strict=True):
        yield row, [timed(row, column, standing) for column in summary.columns]


def _subject(row: Row) -> list[str]:
    regime = row.regime
    batch = f"{regime.batch:,} (all)" if regime.full_batch else f"{regime.batch:,}"
    drawn = f"{regime.data}, synthetic" if regime.has_real_data and row.origin.data == "synthetic" else regime.data
    return [escape(row.label), escape(drawn), batch, f"{regime.steps:,}"]


def verdicts(summary: Summary) -> str:
    """Return the fastest of each row against each of the others: ratio, verdict, and what would decide."""
    rows = [
        [escape(row.label), column_name(standing.fastest), *_compared(comparison)]
        for row, standing in zip(summary.rows, summary.standings, strict=True)
        if standing.fastest is not None and standing.proven
        for comparison in standing.comparisons
    ]
    if not rows:
        return ""
    table = draw_table(["scenario", "fastest", "against", "ratio of times", "verdict", "rounds"], rows)
    effect = f"{summary.record.minimal_effect:.0%}"
    explanation = (
        f"The fastest cell's time over the other's, {paired(summary.rows)}, with its 95 % "
        f"interval{corrected(summary)}. "
        f"Faster: significantly, by more than {effect}. Same: significantly within {effect}. Rounds: about how many in "
        "all would decide at this scatter, of one comparison by itself."
    )
    return f"## Verdicts\n\n{table}\n\n{explanation}"


def controls(summary: Summary) -> str:
    """Return what this machine cannot tell apart: each row's control against the column that it repeats."""
    lines = [
        f"- {escape(row.label)}: {column_name(one.column)} against itself: {with_interval(one.ratio)}"
        f"{'; this is not 1, so the row has no verdicts' if one.is_off else ''}."
        for row, standing in zip(summary.rows, summary.standings, strict=True)
        if (one := standing.control) is not None
    ]
    if not lines:
        return ""
    explanation = (
        "One column of each row was measured twice in every bout. The ratio of the two should be 1; its interval is "
        f"what cannot be told apart here. Where it lies wholly outside ±{CONTROL_BOUND:.0%}, the row has no verdicts."
    )
    return "## What this machine cannot tell apart\n\n" + "\n".join(lines) + f"\n\n{explanation}"


def _compared(one: Comparison) -> list[str]:
    made, decides = one.ratio.trials, one.decides
    if one.verdict is not Verdict.INCONCLUSIVE:
        rounds = str(made)
    elif decides is None or decides > SCARCE_ROUNDS:
        rounds = f"over {SCARCE_ROUNDS}"
    else:
        rounds = str(max(decides, made + 1))  # one that Holm's correction took back needs more than it has
    return [column_name(one.rival), with_interval(one.ratio), one.verdict, rounds]
