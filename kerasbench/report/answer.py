"""The answer: which column is fastest in each row, by how much, and how sure that is, in plain sentences."""

from collections.abc import Iterator, Mapping, Sequence

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.rankings import Comparison, Ranking
from kerasbench.analysis.series import SeriesComparison, SizeSeries
from kerasbench.analysis.summary import disturbance, is_warned
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import Code
from kerasbench.report import charts, race, soak
from kerasbench.report.figures import (
    any_sitting,
    confidence,
    failed,
    listed,
    names,
    place_of,
    size_along,
    three_digits,
    timed_in,
    times,
    took,
)
from kerasbench.report.sections import EMPTY, WARNED, Cell, Section, Table
from kerasbench.text import NOTHING, blanked, count, percent

Names = Mapping[Column, str]

MOST_SENTENCES = 6  # more rows are read faster from a table
CAUSES = {
    Code.UNAVAILABLE: "not available",
    Code.UNSUPPORTED: "not supported",
    Code.OOM: "out of memory",
    Code.TIMEOUT: "time limit reached",
    Code.CRASH: "the process crashed",
    Code.WRONG_DEVICE: "ran on another device",
    Code.NONFINITE: "the loss or a prediction is not finite",
    Code.PARITY: "its results differ from the other backends",
    Code.INVALID: "the scenario or its answer is invalid",
    Code.ERROR: "an exception was raised",
}


def answer(found: Findings) -> Section | None:
    """Return the first section of a page: a sentence a row, or for many rows one sentence and a table of ratios."""
    if found.races:
        return race.section(found.races)
    if found.soaks:
        return soak.section(found.soaks)
    lines = sentences(found)
    if not lines:
        return None
    answered = _answered(found)
    if len(answered) <= MOST_SENTENCES:
        return Section("Answer", lines=lines, chart=charts.ratios(found))
    of_sizes = lines[len(answered) :]
    if not charts.compared(found):  # there are no ratios: the table of steps says all
        return Section("Answer", [overall(found)], lines=of_sizes)
    columns, column_names = found.plain.columns, names(found.plain.columns)
    rows = [
        [Cell(row.label), _winner(ranking, column_names), *(_ratio(row, column, ranking) for column in columns)]
        for row, ranking in answered
    ]
    table = Table(["scenario", "fastest", *column_names.values()], rows)
    notes = [
        f"×: how many times as long a typical {timed_in(found.plain.rows)} takes as with the fastest (median, "
        f"{confidence(found.plain.rankings)} interval).",
        *any_sitting(found.plain.rankings),
    ]
    by_means = [
        f"{row.label}: {text}" for row, ranking in found.plain.ranked if (text := _by_means(ranking, column_names))
    ]
    if by_means:
        notes.append(f"By means instead of medians, where that lies outside the interval: {'; '.join(by_means)}.")
    if any(cell.warned for row in rows for cell in row):
        notes.append(f"{WARNED}: see Warnings.")
    return Section("Answer", [overall(found)], table, of_sizes, notes, chart=charts.ratios(found))


def _answered(found: Findings) -> list[tuple[Row, Ranking]]:
    """Return the rows of which there is something to say: of a race beside plain runs there may not be."""
    return [
        (row, ranking)
        for row, ranking in found.plain.ranked
        if any(case.failure or case.estimate(row.headline) for case in row.cases.values())
    ]


def in_brief(ranking: Ranking, names: Names) -> list[str]:
    """Return who is fastest in a row, and how many times as long the others take."""
    others = [f"{names[one.rival]} {times(one.ratio.inverse)}" for one in ranking.comparisons]
    doubt = f" {WARNED}" if ranking.disturbed else "" if ranking.proven or not others else " (not proven)"
    return [_winner(ranking, names).shown + doubt, ", ".join(others) or NOTHING]


def _winner(ranking: Ranking, names: Names) -> Cell:
    if ranking.fastest is None:
        return EMPTY
    equal = listed([names[column] for column in (ranking.fastest, *ranking.level)])
    return Cell(equal, strong=ranking.first is not None, level=bool(ranking.level))


def _ratio(row: Row, column: Column, ranking: Ranking) -> Cell:
    ratio = ranking.over_fastest(column)
    warned = ranking.disturbed or (column in row.cases and is_warned(row, column))
    if ratio is not None:
        return Cell(times(ratio), ratio.value, level=column in ranking.level, warned=warned)
    if column == ranking.fastest:
        return Cell("1×", 1.0, warned=warned)
    case = row.cases.get(column)
    if case and (found := case.estimate(row.headline)) is not None:  # it is not compared: its time
        return Cell(took(found, row), found.value, warned=warned)
    return failed(row, column)


def sentences(found: Findings) -> list[str]:
    """Return a sentence for each row at its published size, then for each pair of columns of a sweep."""
    if found.races:
        return [blanked(race.sentence(one)) for one in found.races]
    if found.soaks:
        return [blanked(sentence) for sentence in soak.sentences(found.soaks)]
    column_names, cores = names(found.summary.columns), found.record.machine.cores
    of_rows = [f"{row.label}: {_of_row(row, ranking, column_names, cores)}" for row, ranking in _answered(found)]
    of_sizes = [f"{series.label}: {sentence}" for series, sentence in sentences_of_sizes(found)]
    return [blanked(sentence) for sentence in [*of_rows, *of_sizes]]


def sentences_of_sizes(found: Findings) -> list[tuple[SizeSeries, str]]:
    """Return a sentence for each pair of columns of a sweep, and of which series it is."""
    column_names = names(found.summary.columns)
    return [(series, _of_sizes(series, pair, column_names)) for series in found.sweeps for pair in series.duels]


def overall(found: Findings) -> str:
    """Return one sentence for many rows, ``JAX is the fastest in 10 of 12 rows.``"""
    column_names = names(found.summary.columns)
    rankings = [ranking for _, ranking in charts.compared(found)]
    if not rankings:
        return _nothing_compared(found.plain.rows, column_names)
    left = len(_answered(found)) - len(rankings)
    others = f" {count(left, 'other row')} had no two columns to compare." if left else ""
    return _won(rankings, column_names) + others


def _won(rankings: Sequence[Ranking], names: Names) -> str:
    wins = [ranking.first for ranking in rankings]
    winners = sorted({column for column in wins if column}, key=lambda column: (-wins.count(column), column.order))
    rows = count(len(wins), "row")
    if not winners:
        return f"No column is significantly faster than all others in any of {rows}."
    looks = "looks" if any(ranking.tentative for ranking in rankings) else "is"
    first, *others = winners
    parts = [f"{names[first]} {looks} the fastest in {wins.count(first)} of {rows}"]
    parts += [f"{names[column]} in {wins.count(column)}" for column in others]
    undecided = wins.count(None)
    return ", ".join(parts) + (f"; {undecided} without a clear winner." if undecided else ".")


def _nothing_compared(rows: Sequence[Row], names: Names) -> str:
    measured = [
        column for row in rows for column, case in row.cases.items() if case.estimate(row.headline) and column.competes
    ]
    if len(set(measured)) == 1:
        alone = f"{count(len(measured), 'row')} measured on {names[measured[0]]} alone"
        return f"{alone}: add a backend or a device to compare, such as --backend torch,jax."
    return f"None of {count(len(rows), 'row')} has two columns to compare."


def _of_row(row: Row, ranking: Ranking, names: Names, cores: int) -> str:
    """Return the ranking of a row, then what disturbed it, which of its columns have warnings, and its failures."""
    parts = list(_ranked(row, ranking, names))
    if by_means := _by_means(ranking, names):
        parts.append(f"By means instead of medians: {by_means}.")
    if ranking.disturbed:
        parts.append(_disturbed(row, names, cores))
    doubted = [names[column] for column in row.cases if not column.options.control and is_warned(row, column)]
    if doubted:
        parts.append(f"{WARNED} {listed(doubted)}: see Warnings.")
    return " ".join([*parts, *_failed(row, names)])


def _by_means(ranking: Ranking, names: Names) -> str:
    """Return ``JAX 1.33×, torch 1.41×`` of those whose ratio by means lies outside its interval."""
    return ", ".join(
        f"{names[one.rival]} {three_digits(1 / one.by_means)}×" for one in ranking.comparisons if one.by_means
    )


def _disturbed(row: Row, names: Names, cores: int) -> str:
    """Return why a row has no verdict: how much of the machine others used, and who suffered from it."""
    found = disturbance(row, cores)
    who, remedy = "other processes used", "Close them and run again"
    used, suffers = "a part of this machine", ""
    if found:
        if found.is_stolen:
            who, remedy = "the hypervisor gave others", "Run again on a machine that is not shared"
        used = f"{percent(found.share) if found.share >= 0.01 else f'{100 * found.share:.1g} %'} of this machine"
        used += f" and {percent(found.card)} of the GPU" if found.card else ""
        suffers = f"; {names[found.slowed]} suffers most" if found.slowed else ""
        suffers += f" ({found.times:.2g} times as long meanwhile)" if found.times else ""
    return f"{WARNED} Not decided: {who} {used}{suffers}. {remedy}."


def _ranked(row: Row, ranking: Ranking, names: Names) -> Iterator[str]:
    """Yield who is fastest, and by how much the others are slower; or the time of each alone."""
    if ranking.fastest is None:
        what = "prediction" if row.workload.predicts_only else "step"
        for column, case in row.cases.items():
            found = case.estimate(row.headline)
            if found is not None and not column.options.control:
                yield f"{names[column]} takes {took(found, row)} a {what}."
        return
    fastest = names[ranking.fastest]
    compared = sorted(ranking.comparisons, key=lambda one: one.ratio.inverse.value)
    if ranking.withheld:
        yield f"no verdict: a column measured twice differs from itself. {fastest} {_ahead(compared, names, 'was')}."
    elif ranking.disturbed:
        yield f"{fastest} {_ahead(compared, names, 'looks fastest,')}."
    elif not ranking.proven:
        rounds = {1: "one round", 2: "two rounds"}.get(row.rounds, f"fewer than {MIN_TRIALS_FOR_INTERVAL} rounds")
        yield f"{fastest} {_ahead(compared, names, 'looks fastest,')} ({rounds}: not yet proven)."
    elif ranking.first is not None:
        yield f"{fastest} {_ahead(compared, names, 'is fastest,')}."
    else:
        yield from _undecided(fastest, compared, names)


def _undecided(fastest: str, compared: list[Comparison], names: Names) -> Iterator[str]:
    """Yield which columns do not differ from a row's first, which it is ahead of, and which are ahead of it."""
    beaten = [one for one in compared if one.verdict is Verdict.FASTER]
    ahead = [one for one in compared if one.verdict is Verdict.SLOWER]
    level = [one for one in compared if one not in beaten and one not in ahead]
    if level:
        ratios = ", ".join(f"{names[one.rival]} {times(one.ratio.inverse)}" for one in level)
        pairs = " or ".join(f"between {fastest} and {names[one.rival]}" for one in level)
        yield f"no significant difference {pairs} ({ratios})."
    if beaten:
        yield f"{fastest} {_ahead(beaten, names, 'is')}."
    for one in ahead:
        yield f"{names[one.rival]} is {times(one.ratio)} faster than {fastest}: no column is the fastest of all."


def _ahead(compared: list[Comparison], names: Names, verb: str) -> str:
    """Return ``is fastest, 3.9× (3.7–4.1) faster than TensorFlow, 6.9× (6.6–7.2) than torch``."""
    if not compared:
        return verb.rstrip(",")
    first, *others = compared
    parts = [f"{times(first.ratio.inverse)} faster than {names[first.rival]}"]
    parts += [f"{times(one.ratio.inverse)} than {names[one.rival]}" for one in others]
    return f"{verb} {', '.join(parts)}"


def _failed(row: Row, names: Names) -> Iterator[str]:
    """Yield which columns failed and why, in one sentence with the cause if all failed for the same one."""
    failures = {column: case.failure for column, case in row.cases.items() if not column.options.control}
    causes = {failure.cause if failure else "" for failure in failures.values()}
    if len(failures) > 1 and len(causes) == 1 and (cause := causes.pop()):
        yield f"not measured: {cause}."
        return
    for column, failure in failures.items():
        if failure is not None:
            yield f"{names[column]} failed: {CAUSES[failure.code]}."


def _of_sizes(series: SizeSeries, pair: SeriesComparison, names: Names) -> str:
    """Return where one column overtakes another along the sizes, or that none does."""
    axis = series.axis
    overtaken = [
        f"{names[one.winner]} is faster than {names[one.loser]} from {place_of(one, axis)} on" for one in pair.crossings
    ]
    if overtaken:
        return "; ".join(overtaken) + "."
    sizes = [size_along(axis, size) for size, _ in pair.ratios]
    span = f"{axis} {sizes[0]}" + ("" if len(sizes) == 1 else f" to {sizes[-1]}")
    slower = next((sign for sign in pair.signs if sign), 0)
    a, b = names[pair.a], names[pair.b]
    if not slower:
        return f"no significant difference between {a} and {b} ({span})."
    winner, loser = (b, a) if slower > 0 else (a, b)
    equal = [size for size, sign in zip(sizes, pair.signs, strict=True) if not sign]
    where = f"at {span}, but not significantly at {listed(equal)}" if equal else f"at every size ({span})"
    return f"{winner} is faster than {loser} {where}."
