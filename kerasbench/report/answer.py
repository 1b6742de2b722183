"""The answer of plain runs: which configuration is fastest on each workload, and how many times as long others take."""

from collections.abc import Sequence

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.rankings import Comparison, Ranking
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import Code
from kerasbench.report import charts
from kerasbench.report.kinds import FEW, Ranked, by_kind, compared, has_one_step, ordered, relative, winner
from kerasbench.report.sections import EMPTY, Cell, Section, Strong, Table, Words
from kerasbench.report.warnings import Marks
from kerasbench.report.words import Names, as_given, listed, multiple, names, span, timed_in, times, took, verb
from kerasbench.text import NOTHING, blanked, count

MOST_NAMED = 3  # of the slower configurations, in a sentence
REAL = ("Iris",)  # data sets that are real without being downloaded
CAUSES = {
    Code.UNAVAILABLE: "not available",
    Code.UNSUPPORTED: "not supported",
    Code.OOM: "out of memory",
    Code.TIMEOUT: "time limit reached",
    Code.CRASH: "the process crashed",
    Code.WRONG_DEVICE: "ran on another device",
    Code.NONFINITE: "the loss or a prediction is not finite",
    Code.PARITY: "its results differ from those of the other backends",
    Code.INVALID: "the scenario or its answer is invalid",
    Code.ERROR: "an exception was raised",
}


def title(found: Findings) -> str:
    """Return the finding in one line: ``JAX trains 10 of 12 workloads fastest, TensorFlow trains 2``."""
    summary = found.plain
    ranked, called = compared(summary), names(summary.columns)
    if not ranked:
        return nothing_compared(summary, called)
    if len(ranked) == 1:
        return _of_one(*ranked[0], called)
    wins: dict[Column, list[str]] = {}
    for row, ranking in ranked:
        first = winner(ranking)
        if first is not None:
            wins.setdefault(first, []).append(row.label)
    if not wins:
        return _nothing_decided(ranked, called)
    does, most = verb(row for row, _ in ranked), sorted(wins, key=lambda column: (-len(wins[column]), column.order))
    open_ = [row.label for row, ranking in ranked if winner(ranking) is None]
    if len(ranked) <= FEW:
        parts = [f"{called[column]} {does} {listed(wins[column])} fastest" for column in most]
        rest = f"; {listed(open_)} {'is' if len(open_) == 1 else 'are'} undecided" if open_ else ""
        return ", ".join(parts) + rest
    first, *others = most
    parts = [f"{called[first]} {does} {len(wins[first])} of {len(ranked)} workloads fastest"]
    parts += [f"{called[column]} {does} {len(wins[column])}" for column in others]
    return ", ".join(parts) + (f"; {len(open_)} undecided" if open_ else "")


def _of_one(row: Row, ranking: Ranking, called: Names) -> str:
    return f"{row.label}: {_standing(row, ranking, called)}"


def _nothing_decided(ranked: Ranked, called: Names) -> str:
    if all(ranking.tentative for _, ranking in ranked):
        shortest = [called[ranking.fastest] for _, ranking in ranked if ranking.fastest]
        most = sorted(dict.fromkeys(shortest), key=lambda name: -shortest.count(name))
        parts = [f"{name} on {shortest.count(name)} of {len(ranked)} workloads" for name in most]
        return f"{listed(parts)} had the shortest time {_in_rounds(max(row.rounds for row, _ in ranked))}"
    return f"No configuration is clearly fastest on any of {len(ranked)} workloads"


def _in_rounds(rounds: int) -> str:
    return f"in {count(rounds, 'round')}" if rounds else "in a round that is not complete"


def nothing_compared(summary: Summary, called: Names) -> str:
    measured = [
        (row, column, estimate)
        for row in summary.rows
        for column, case in row.cases.items()
        if not column.options.control and (estimate := case.estimate(row.headline)) is not None
    ]
    failed = len(summary.failures)
    if not measured:
        return f"Nothing was measured: {count(failed, 'case')} failed" if failed else "Nothing was measured"
    rest = f"; {count(failed, 'case')} failed" if failed else ""
    if len(measured) == 1:
        row, column, estimate = measured[0]
        return f"A {timed_in([row])} of {row.label} takes {took(estimate, row.headline)} on {called[column]}{rest}"
    on = listed([called[column] for column in dict.fromkeys(column for _, column, _ in measured)])
    return f"{count(len({row.label for row, *_ in measured}), 'workload')} measured on {on}{rest}"


def sentences(found: Findings) -> list[str]:
    """Return a sentence for each workload: who is fastest, how long the others take, and who failed."""
    called = names(found.summary.columns)
    lines = []
    for row, ranking in ordered(found.plain):
        failed = [
            f"{called[column]} failed ({CAUSES[case.failure.code]})"
            for column, case in row.cases.items()
            if case.failure is not None and not column.options.control
        ]
        known = _standing(row, ranking, called)
        lines += [blanked(f"{row.label}: {'; '.join(filter(None, [known, *failed]))}.")] if known or failed else []
    return lines


def _standing(row: Row, ranking: Ranking, called: Names) -> str:
    """Return ``JAX is fastest; PyTorch takes 3.3× (3.2–3.5) as long, TensorFlow 25× (24–27)``."""
    if ranking.fastest is None or not ranking.comparisons:
        own = [(column, case.estimate(row.headline)) for column, case in row.cases.items()]
        measured = [(called[column], known) for column, known in own if known and not column.options.control]
        return ", ".join(f"{name} takes {took(known, row.headline)}" for name, known in measured)
    others = sorted(ranking.comparisons, key=lambda one: one.ratio.inverse.value)
    first = called[ranking.fastest]
    if winner(ranking) is not None:
        beginning = f"{first} is fastest"
    elif ranking.disturbed:
        beginning = f"undecided, because other programs used the CPU; {first} had the shortest time"
    elif ranking.withheld:
        beginning = f"undecided, because the same configuration differs from itself; {first} had the shortest time"
    elif not ranking.proven:
        beginning = f"{first} had the shortest time {_in_rounds(row.rounds)}"
    else:
        same = [called[one.rival] for one in others if one.verdict is Verdict.SAME]
        near = [called[one.rival] for one in others if one.verdict in (Verdict.INCONCLUSIVE, Verdict.SLOWER)]
        parts = [f"{listed([first, *same])} tie"] if same else []
        parts += [f"undecided between {listed([first, *near])}"] if near else []
        beginning = ", ".join(parts)
    nearest, *farther = others[:MOST_NAMED]
    longer = [f"{called[nearest.rival]} takes {times(nearest.ratio.inverse)} as long"]
    longer += [f"{called[one.rival]} {times(one.ratio.inverse)}" for one in farther]
    longer += [f"{len(others) - MOST_NAMED} others longer"] if len(others) > MOST_NAMED else []
    return f"{beginning}; {', '.join(longer)}"


def in_brief(row: Row, ranking: Ranking, called: Names) -> list[str]:
    """Return who is clearly fastest, and how many times as long the others take."""
    others = [f"{called[one.rival]} {times(one.ratio.inverse)}" for one in ranking.comparisons]
    first = winner(ranking)
    shortest = f"undecided ({called[ranking.fastest]} first)" if ranking.fastest else NOTHING
    return [called[first] if first else shortest, ", ".join(others) or NOTHING]


def _wins(ranked: Ranked) -> dict[Column, int]:
    """Return on how many workloads each configuration is clearly fastest, most first."""
    first = [winner(ranking) for _, ranking in ranked]
    won = {column for column in first if column is not None}
    return {column: first.count(column) for column in sorted(won, key=lambda one: (-first.count(one), one.order))}


def kinds(found: Findings) -> Section | None:
    """Return a table of kinds of models: who is fastest on how many, and how many times as long others take."""
    summary = found.plain
    called = names(column for column in summary.columns if column.competes)
    rows = []
    for kind, ranked in by_kind(compared(summary)).items():
        won = _wins(ranked)
        fastest = [f"{called[column]} {wins}" for column, wins in won.items()]
        fastest += [f"undecided {open_}"] if (open_ := len(ranked) - sum(won.values())) else []
        ratios = {
            column: [ratio for _, ranking in ranked if (ratio := relative(ranking, column)) is not None]
            for column in called
        }
        spans = [Cell(span(own, multiple)) if own else EMPTY for own in ratios.values()]
        rows.append([Cell(kind), Cell(str(len(ranked)), len(ranked)), Cell(", ".join(fastest)), *spans])
    headers = ["kind of model", "workloads", "fastest", *(f"{name} takes" for name in called.values())]
    return Section("By kind of model", table=Table(headers, rows)) if rows else None


def best_by_kind(summary: Summary, called: Names) -> str:
    """Return ``image CNNs: TensorFlow 4 of 4; ...`` where there are several kinds of models; else nothing."""
    by = by_kind(compared(summary))
    if len(by) < 2 or sum(map(len, by.values())) <= FEW:
        return ""
    parts = []
    for kind, ranked in by.items():
        best = [f"{called[column]} {wins} of {len(ranked)}" for column, wins in _wins(ranked).items()] or ["undecided"]
        parts.append(f"{kind}: {', '.join(best)}")
    return "; ".join(parts)


def section(found: Findings, marks: Marks) -> Section | None:
    """Return the chart, the one table with every number, and what its numbers are."""
    summary = found.plain
    if not summary.rows:
        return None
    ranked, called = ordered(summary), names(summary.columns)
    kind = best_by_kind(summary, called)
    rows = [
        [
            Cell(f"{row.label} †" if has_one_step(row) else row.label),
            Cell(f"{row.workload.batch:,}", row.workload.batch),
            *(cell(row, ranking, column, marks) for column in summary.columns),
        ]
        for row, ranking in ranked
    ]
    headers = ["workload", "batch", *called.values()]
    intro: list[Words] = [[Strong("Fastest by kind of model"), f": {kind}."]] if kind else []
    return Section(
        "", intro, chart=charts.ratios(found, title(found)), table=Table(headers, rows), notes=_caption(found)
    )


def cell(row: Row, ranking: Ranking, column: Column, marks: Marks) -> Cell:
    """Return the time of the fastest, ``N× (low–high)`` of the others, ``tie`` and ``undecided`` in words."""
    case, own = row.cases.get(column), marks.of(row.label, column)
    estimate = case.estimate(row.headline) if case else None
    if case is None or estimate is None:
        return Cell(case.failure.code, marks=own, failed=True) if case and case.failure else EMPTY
    ratio = ranking.over_fastest(column)
    if ratio is None:
        is_first = column == winner(ranking)
        doubt = ", undecided" if column == ranking.fastest and ranking.disturbed else ""
        text = took(estimate, row.headline) + doubt
        return Cell(text, estimate.value, strong=is_first, marks=own, ratio=1.0 if column == ranking.fastest else None)
    comparison = next(one for one in ranking.comparisons if one.rival == column)
    text = f"{times(ratio)}{_doubt(ranking, comparison)}"
    return Cell(text, estimate.value, marks=own, ratio=ratio.value)


def _doubt(ranking: Ranking, comparison: Comparison) -> str:
    if comparison.verdict is Verdict.SAME:
        return ", tie"
    is_open = comparison.verdict is not Verdict.FASTER
    return ", undecided" if is_open and comparison.ratio.has_interval and not ranking.disturbed else ""


def _caption(found: Findings) -> list[Words]:
    """Return what the numbers of the table are times of, what bold is, and what the data are."""
    summary = found.plain
    if not any(case.trials for _, _, case in summary.cases):
        return []
    ranked = compared(summary)
    parts: list[str | Strong] = [f"Time per {timed_in(summary.rows)} (median)"]
    if ranked:
        has_intervals = any(one.ratio.has_interval for _, ranking in ranked for one in ranking.comparisons)
        interval = " (95 % interval)" if has_intervals else ""
        parts.append(f": the fastest in ms; the others take N× as long{interval}. ")
        if any(ranking.proven for _, ranking in ranked):
            parts += [Strong("Bold"), f": clearly fastest, by more than {as_given(found.effect)}. "]
    else:
        parts.append(". ")
    if any(has_one_step(row) for row in summary.rows):
        parts.append("† One step per epoch: the fixed cost of an epoch is in it. ")
    if any(row.origin.agenda.in_full for row in summary.rows):
        parts.append("A step is all published epochs divided by their steps; the first one compiles. ")
    return [[*parts, _data(summary.rows)]]


def _data(rows: Sequence[Row]) -> str:
    built_in = [row for row in rows if not row.own]
    real = {row.workload.data for row in built_in if row.workload.data in REAL or _is_downloaded(row)}
    if not built_in:
        return ""
    if all(row.workload.data in real for row in built_in):
        return "Real data."
    return (
        f"Synthetic data; {listed(sorted(real))} {'is' if len(real) == 1 else 'are'} real."
        if real
        else "Synthetic data."
    )


def _is_downloaded(row: Row) -> bool:
    return row.workload.has_real_data and row.origin.config.data == "real"
