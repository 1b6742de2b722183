"""The answer of plain runs: which configuration is fastest on each workload, and how many times as long others take."""

import statistics
from collections import Counter
from collections.abc import Sequence

from kerasbench import variants
from kerasbench.analysis.estimates import Estimate, Verdict
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import programs_in
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import OUTPACED, Code, Failure
from kerasbench.report import charts
from kerasbench.report.kinds import (
    FEW,
    Ranked,
    by_kind,
    compared,
    grouped,
    has_one_step,
    model_kind,
    ordered,
    relative,
)
from kerasbench.report.sections import EMPTY, Bar, Cell, DotChart, Piece, Section, Strong, Table, Words, number
from kerasbench.report.warnings import Marks
from kerasbench.report.words import Names, as_given, listed, multiple, names, span, timed_in, times, took, verb
from kerasbench.text import NOTHING, blanked, count

MOST_NAMED = 3  # of the slower configurations, in a sentence
MOST_PARTS = 4  # kinds of models, by winner, that a title counts; of more it has those of which one wins most
UNDECIDED = (Verdict.INCONCLUSIVE, Verdict.FASTER)  # of another one than the fastest
DIFFERS = "the same configuration measured twice differs from itself"
BEYOND = f"over {OUTPACED}×"  # of a column that was left behind
REAL = ("Iris",)  # data sets that are real without being downloaded
CAUSES = {
    Code.UNAVAILABLE: "not available",
    Code.UNSUPPORTED: "not supported",
    Code.OOM: "out of memory",
    Code.SLOW: "left out",
    Code.TIMEOUT: "time limit reached",
    Code.CRASH: "the process crashed",
    Code.WRONG_DEVICE: "ran on another device",
    Code.NONFINITE: "the loss or a prediction is not finite",
    Code.PARITY: "its results differ from those of the other backends",
    Code.INVALID: "the scenario or its answer is invalid",
    Code.ERROR: "an exception was raised",
}


def title(summary: Summary) -> str:
    """Return ``JAX trains dense networks (9 of 10) fastest, TensorFlow image CNNs (1 of 1)``."""
    plain = summary.plain
    ranked, called = compared(plain), names(plain.columns)
    if not ranked:
        return nothing_compared(plain, called)
    if len(ranked) == 1:
        row, ranking = ranked[0]
        return f"{row.label}: {_standing(row, ranking, called)}"
    does, wins = verb(row for row, _ in ranked), _wins(ranked)
    undecided = [(row, ranking) for row, ranking in ranked if ranking.winner is None]
    why = _why_all(undecided)
    if not wins and not why and all(ranking.tentative for _, ranking in ranked):
        shortest = Counter(called[ranking.fastest] for _, ranking in ranked if ranking.fastest and ranking.believed)
        parts = [f"{name} on {number} of {len(ranked)} workloads" for name, number in shortest.most_common()]
        return f"{listed(parts)} had the shortest time {_in_rounds(max(row.rounds for row, _ in ranked))}"
    if not wins:
        return f"{len(ranked)} workloads, all undecided{why}"
    if len(ranked) <= FEW:
        parts = [f"{called[column]} {does} {listed(labels)} fastest" for column, labels in wins.items()]
        labels = listed([row.label for row, _ in undecided])
        rest = f"; {labels} {'is' if len(undecided) == 1 else 'are'} undecided{why}"
        return ", ".join(parts) + (rest if undecided else "")
    rest = f"; {len(undecided)} undecided{why}" if undecided else ""
    return f"{_by_kind(ranked, called, does)}{rest}"


def _by_kind(ranked: Ranked, called: Names, does: str) -> str:
    """Say who wins by kind of model: of twelve workloads ten may be of one kind."""
    kinds = grouped((model_kind(row), (row, ranking)) for row, ranking in ranked)
    wins = _wins(ranked)
    of_kinds = {kind: _wins(of_kind) for kind, of_kind in kinds.items()}
    won = {column: Counter({kind: len(of[column]) for kind, of in of_kinds.items() if column in of}) for column in wins}
    mixed: list[str] = []
    if sum(map(len, won.values())) > MOST_PARTS:
        most = {kind: max(map(len, of.values()), default=0) for kind, of in of_kinds.items()}
        mixed = [kind for kind in kinds if 2 * most[kind] <= len(kinds[kind])]
        won = {column: Counter({k: n for k, n in of.items() if 2 * n > len(kinds[k])}) for column, of in won.items()}
    led = {column: numbers for column, numbers in won.items() if numbers}
    if len(kinds) == 1 or not led:
        parts = [f"{called[column]} {does} {len(labels)}" for column, labels in wins.items()]
        parts[0] += f" of {len(ranked)} {next(iter(kinds)) if len(kinds) == 1 else 'workloads'} fastest"
        return ", ".join(parts)
    parts = []
    for column, numbers in led.items():
        of_each = listed([f"{kind} ({number} of {len(kinds[kind])})" for kind, number in numbers.most_common()])
        parts.append(f"{called[column]} {of_each}" if parts else f"{called[column]} {does} {of_each} fastest")
    return "; ".join([*parts, *([f"none leads on {listed(mixed)}"] if mixed else [])])


def because(ranking: Ranking, programs: Sequence[str] = ()) -> str:
    """Return why nothing is decided in a row whose ratios are not believed; empty for any other."""
    if ranking.disturbed:
        who = f" ({listed(programs)})" if programs else ""
        return f", because other programs{who} used the CPU"
    return f", because {DIFFERS}" if ranking.withheld else ""


def _why_all(undecided: Ranked) -> str:
    """Return the one reason why these are undecided; empty where they have none or several."""
    programs = programs_in(row for row, ranking in undecided if ranking.disturbed)
    reasons = {because(ranking, programs) for _, ranking in undecided}
    return reasons.pop() if len(reasons) == 1 else ""


def _in_rounds(rounds: int) -> str:
    return f"in {count(rounds, 'round')}" if rounds else "in a round that is not complete"


def nothing_compared(summary: Summary, called: Names) -> str:
    measured = [(row, *timed) for row in summary.rows for timed in _measured(row)]
    failed = f"{count(len(summary.failures), 'case')} failed" if summary.failures else ""
    if not measured:
        return f"Nothing was measured: {failed}" if failed else "Nothing was measured"
    rest = f"; {failed}" if failed else ""
    if len(measured) == 1:
        row, column, estimate = measured[0]
        return f"A {timed_in([row])} of {row.label} takes {took(estimate, row.headline)} on {called[column]}{rest}"
    on = listed([called[column] for column in dict.fromkeys(column for _, column, _ in measured)])
    return f"{count(len({row.label for row, *_ in measured}), 'workload')} measured on {on}{rest}"


def sentences(summary: Summary) -> list[str]:
    called = names(summary.columns)
    lines = []
    for row, ranking in ordered(summary.plain):
        failures = ((column, case.failure) for column, case in row.cases.items() if column in called)
        failed = [f"{called[column]} {_ended(failure)}" for column, failure in failures if failure]
        text = "; ".join(filter(None, [_standing(row, ranking, called), *failed]))
        lines += [blanked(f"{row.label}: {text}.")] if text else []
    return lines


def _ended(failure: Failure) -> str:
    slow = failure.code is Code.SLOW
    return f"takes {BEYOND} as long" if slow else f"failed ({CAUSES[failure.code]})"


def _measured(row: Row) -> list[tuple[Column, Estimate]]:
    cases = ((column, case) for column, case in row.cases.items() if not variants.is_aside(column.options))
    estimates = [(column, case.estimate(row.headline)) for column, case in cases]
    return [(column, estimate) for column, estimate in estimates if estimate is not None]


def _standing(row: Row, ranking: Ranking, called: Names) -> str:
    """Return ``JAX is fastest; PyTorch takes 3.3× (3.2–3.5) as long, TensorFlow 25× (24–27)``."""
    if ranking.fastest is None or not ranking.others:
        return ", ".join(f"{called[column]} takes {took(time, row.headline)}" for column, time in _measured(row))
    if not ranking.believed:
        return f"undecided{because(ranking, programs_in([row]))}"
    others = sorted(ranking.others, key=lambda contrast: contrast.ratio.value)
    first = called[ranking.fastest]
    if ranking.winner is not None:
        beginning = f"{first} is fastest"
    elif not ranking.proven:
        beginning = f"{first} had the shortest time {_in_rounds(row.rounds)}"
    else:
        same = [called[contrast.over.column] for contrast in others if contrast.verdict is Verdict.SAME]
        near = [called[contrast.over.column] for contrast in others if contrast.verdict in UNDECIDED]
        parts = [f"{listed([first, *same])} tie"] if same else []
        parts += [f"undecided between {listed([first, *near])}"] if near else []
        beginning = ", ".join(parts)
    longer = [f"{called[contrast.over.column]} {times(contrast.ratio)}" for contrast in others[:MOST_NAMED]]
    longer[0] = f"{called[others[0].over.column]} takes {times(others[0].ratio)} as long"
    longer += [f"{len(others) - MOST_NAMED} others longer"] if len(others) > MOST_NAMED else []
    return f"{beginning}; {', '.join(longer)}"


def in_brief(row: Row, ranking: Ranking, called: Names) -> list[str]:
    if not ranking.believed:
        return [f"undecided{because(ranking)}", NOTHING]
    others = [f"{called[contrast.over.column]} {times(contrast.ratio)}" for contrast in ranking.others]
    first = ranking.winner
    shortest = f"undecided ({called[ranking.fastest]} first)" if ranking.fastest else NOTHING
    return [called[first] if first else shortest, ", ".join(others) or NOTHING]


def _wins(ranked: Ranked) -> dict[Column, list[str]]:
    wins = grouped((first, row.label) for row, ranking in ranked if (first := ranking.winner) is not None)
    return dict(sorted(wins.items(), key=lambda won: (-len(won[1]), won[0].order)))


def kinds(summary: Summary) -> Section | None:
    """Return a line for each kind of model; several have a chart too, with the mean of each configuration."""
    plain = summary.plain
    called = names(column for column in plain.columns if variants.competes(column))
    rows, lines, styles = [], [], charts.looks(called)
    for kind, ranked in by_kind(compared(plain)).items():
        won, spans, dots = _wins(ranked), [], []
        fastest = [f"{called[column]} {len(labels)}" for column, labels in won.items()]
        undecided = len(ranked) - sum(map(len, won.values()))
        fastest += [f"undecided {undecided}"] if undecided else []
        for column, name in called.items():
            ratios = [ratio for _, ranking in ranked if (ratio := relative(ranking, column)) is not None]
            spans.append(Cell(span(ratios, multiple)) if ratios else EMPTY)
            if ratios:
                piece = Piece(statistics.geometric_mean(ratios), styles[column])
                tip = f"{kind}, {name}: {spans[-1].text}, {count(len(ratios), 'workload')}"
                dots.append(Bar("", "", [piece], column.backend, tip=tip))
        rows.append([Cell(f"{kind} ({len(ranked)})"), Cell(", ".join(fastest)), *spans])
        lines.append((f"{kind} ({len(ranked)})", dots))
    title = "By kind of model"
    what = timed_in(row for row, _ in compared(plain))
    caption = f"Time per {what}, relative to the fastest of each workload: further left is better."
    caption += f" Geometric means over workloads. {charts.where(summary.record)}."
    legend = [(name, styles[column]) for column, name in called.items()]
    chart = DotChart(title, caption, [("", lines)], legend) if len(lines) > 1 else None
    headers = ["kind of model (workloads)", "fastest", *(f"{name} takes" for name in called.values())]
    return Section(title, chart=chart, table=Table(headers, rows)) if rows else None


def section(summary: Summary, marks: Marks) -> Section | None:
    plain = summary.plain
    if not plain.rows:
        return None
    ranked, called = ordered(plain), names(plain.columns)
    rows = []
    for row, ranking in ranked:
        name = f"{row.label} †" if has_one_step(row) else row.label
        cells = (cell(row, ranking, column, marks) for column in plain.columns)
        rows.append([Cell(name), number(row.workload.batch), *cells])
    table = Table(["workload", "batch", *called.values()], rows)
    return Section("", chart=charts.ratios(summary, title(summary)), table=table, notes=_caption(summary))


def cell(row: Row, ranking: Ranking, column: Column, marks: Marks) -> Cell:
    """Return the time of the fastest, ``N× (low–high)`` of the others, ``tie`` and ``undecided`` in words."""
    case, numbers = row.cases.get(column), marks.get((row.label, column), ())
    estimate = case.estimate(row.headline) if case else None
    if case is None or estimate is None:
        if case is None or case.failure is None:
            return EMPTY
        is_slow = case.failure.code is Code.SLOW
        return Cell(BEYOND if is_slow else case.failure.code, marks=numbers, failed=not is_slow)
    contrast = ranking.over_fastest(column)
    if contrast is None:
        is_fastest, is_first = column == ranking.fastest, column == ranking.winner
        text, ratio = took(estimate, row.headline), 1.0 if is_fastest and ranking.believed else None
        return Cell(text, estimate.value, strong=is_first, marks=numbers, ratio=ratio)
    doubt = ", tie" if contrast.verdict is Verdict.SAME else ""
    if not ranking.believed or (contrast.verdict in UNDECIDED and contrast.ratio.has_interval):
        doubt = ", undecided"
    ratio = contrast.ratio.value if ranking.believed else None
    return Cell(f"{times(contrast.ratio)}{doubt}", estimate.value, marks=numbers, ratio=ratio)


def _caption(summary: Summary) -> list[Words]:
    plain = summary.plain
    if not any(case.trials for _, _, case in plain.cases):
        return []
    ranked = compared(plain)
    parts: list[str | Strong] = [f"Time per {timed_in(plain.rows)} (median)"]
    if ranked:
        has_intervals = any(contrast.ratio.has_interval for _, ranking in ranked for contrast in ranking.others)
        interval = " (95 % interval)" if has_intervals else ""
        parts.append(f": the fastest in ms; the others take N× as long{interval}. ")
        if any(ranking.proven for _, ranking in ranked):
            parts += [Strong("Bold"), f": clearly fastest, by more than {as_given(summary.effect)}. "]
    else:
        parts.append(". ")
    if any(failure.code is Code.SLOW for _, _, case in plain.cases if (failure := case.failure)):
        parts.append(f"{BEYOND}: left out of this quick look after its second step. ")
    if any(has_one_step(row) for row in plain.rows):
        parts.append("† One step per epoch: the fixed cost of an epoch is in it. ")
    if any(row.origin.agenda.in_full for row in plain.rows):
        parts.append("A step is the time of all epochs divided by their steps; the first one compiles. ")
    return [[*parts, _data(plain.rows)]]


def _data(rows: Sequence[Row]) -> str:
    built_in = [row for row in rows if not row.of_user]
    real = {row.workload.data for row in built_in if row.workload.has_real_data and row.origin.config.data == "real"}
    real |= {row.workload.data for row in built_in if row.workload.data in REAL}
    if all(row.workload.data in real for row in built_in):
        return "Real data." if built_in else ""
    mixed = f"; {listed(sorted(real))} {'is' if len(real) == 1 else 'are'} real" if real else ""
    return f"Synthetic data{mixed}."
