"""The answer: which column is fastest in each row, by how much, and how sure that is, in plain sentences."""

from collections.abc import Iterator, Mapping, Sequence

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.rankings import Comparison, Ranking
from kerasbench.analysis.series import Crossing, SeriesComparison, SizeSeries
from kerasbench.analysis.summary import disturbance, is_warned
from kerasbench.protocol.columns import Axis, Column
from kerasbench.protocol.messages import Code
from kerasbench.report import charts
from kerasbench.report.figures import about, failed, listed, names, significant, size_along, timed_in, times
from kerasbench.report.sections import EMPTY, NOTHING, WARNED, Cell, Section, Table
from kerasbench.text import blanked, count

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
    """Return the first section of a page: a sentence a row, or for many rows one sentence and a table of ratios.

    Where no row has two columns to compare there are no ratios: the table of steps says all.
    """
    said = sentences(found)
    if not said:
        return None
    if len(found.plain.rows) <= MOST_SENTENCES:
        return Section("Answer", lines=said, chart=charts.ratios(found))
    swept = said[len(found.plain.rows) :]
    if not charts.compared(found):
        return Section("Answer", [overall(found)], lines=swept)
    table = _ratios(found)
    notes = [
        f"×: how many times as long a typical {timed_in(found.plain.rows)} takes as with the fastest: the median, "
        "with the 95 % interval."
    ]
    notes += list(_all_by_means(found))
    notes += [f"{WARNED}: see Warnings."] if any(cell.warned for row in table.rows for cell in row) else []
    return Section("Answer", [overall(found)], table, swept, notes, chart=charts.ratios(found))


def _ratios(found: Findings) -> Table:
    columns = found.plain.columns
    named = names(columns)
    rows = [
        [Cell(row.label), _winner(ranking, named), *(_ratio(row, column, ranking) for column in columns)]
        for row, ranking in zip(found.plain.rows, found.plain.rankings, strict=True)
    ]
    return Table(["scenario", "fastest", *named.values()], rows)


def in_brief(row: Row, ranking: Ranking, named: Names) -> list[str]:
    """Return who is fastest in a row, and how many times as long the others take."""
    others = [f"{named[one.rival]} {times(one.ratio.inverse)}" for one in ranking.comparisons]
    doubt = f" {WARNED}" if ranking.disturbed else ""
    return [_winner(ranking, named).shown + doubt, ", ".join(others) or NOTHING]


def _winner(ranking: Ranking, named: Names) -> Cell:
    if ranking.fastest is None:
        return EMPTY
    equal = listed([named[column] for column in (ranking.fastest, *ranking.level)])
    return Cell(equal, strong=ranking.first is not None, level=bool(ranking.level))


def _ratio(row: Row, column: Column, ranking: Ranking) -> Cell:
    ratio = ranking.over_fastest(column)
    warned = ranking.disturbed or (column in row.cases and is_warned(row, column))
    if ratio is not None:
        return Cell(times(ratio), ratio.value, level=column in ranking.level, warned=warned)
    if column == ranking.fastest:
        return Cell("1×", 1.0, warned=warned)
    return _alone_in_its_row(row, column) if ranking.fastest is None else failed(row, column)


def _alone_in_its_row(row: Row, column: Column) -> Cell:
    """Return the time of a column where there is nothing to compare it with."""
    found = row.cases[column].estimate(row.headline) if column in row.cases else None
    if found is None:
        return failed(row, column)
    return Cell(f"{significant(found.value)} {BY_NAME[row.headline].unit}", found.value)


def sentences(found: Findings) -> list[str]:
    """Return a sentence for each row at its published size, then for each pair of columns of a sweep."""
    named = names(found.summary.columns)
    rows = zip(found.plain.rows, found.plain.rankings, strict=True)
    cores = found.record.machine.cores
    answers = [f"{row.label}: {of_row(row, ranking, named, cores)}" for row, ranking in rows]
    swept = [f"{one.label}: {_of_duel(one, duel, named)}" for one in found.sweeps for duel in one.duels if duel.ratios]
    return [blanked(one) for one in [*answers, *swept]]


def overall(found: Findings) -> str:
    """Return one sentence for many rows, ``JAX is the fastest in 10 of 12 rows.``; empty for a sweep alone."""
    if not found.plain.rows:
        return ""
    named = names(found.summary.columns)
    rankings = [ranking for _, ranking in charts.compared(found)]
    if not rankings:
        return _nothing_compared(found, count(len(found.plain.rows), "row"), named)
    left = len(found.plain.rows) - len(rankings)
    others = f" {count(left, 'other row')} failed or had one column: not compared." if left else ""
    return _won(rankings, named) + others


def _won(rankings: Sequence[Ranking], named: Names) -> str:
    """Return in how many of the rows that were compared each column is the fastest."""
    wins = [ranking.first for ranking in rankings]
    counted = sorted({column for column in wins if column}, key=lambda column: (-wins.count(column), column.order))
    rows = count(len(wins), "row")
    if not counted:
        return f"No column is significantly faster than all others in any of {rows}."
    looks = "looks" if any(ranking.tentative for ranking in rankings) else "is"
    first, *others = [(named[column], wins.count(column)) for column in counted]
    parts = [f"{first[0]} {looks} the fastest in {first[1]} of {rows}", *(f"{who} in {many}" for who, many in others)]
    undecided = wins.count(None)
    return ", ".join(parts) + (f"; {undecided} without a clear winner." if undecided else ".")


def _nothing_compared(found: Findings, rows: str, named: Names) -> str:
    measured = {
        column
        for row in found.plain.rows
        for column, cell in row.cases.items()
        if cell.estimate(row.headline) and column.competes
    }
    if len(measured) == 1:
        return f"{rows} measured on {named[measured.pop()]} alone: there is nothing to compare."
    return f"No two columns were measured in any of {rows}: there is nothing to compare."


def of_row(row: Row, ranking: Ranking, named: Names, cores: int) -> str:
    """Return what a row says, then what disturbed it, which of its columns are warned of, then its failures."""
    disturbed = [_disturbed(row, named, cores)] if ranking.disturbed else []
    means = [f"By means instead of medians: {_by_means(ranking, named)}."] if _by_means(ranking, named) else []
    return " ".join([*_ranked(row, ranking, named), *means, *disturbed, *_warned(row, named), *_failed(row, named)])


def _all_by_means(found: Findings) -> Iterator[str]:
    """Yield the rows whose ratios by means lie outside of their intervals."""
    named = names(found.plain.columns)
    pairs = zip(found.plain.rows, found.plain.rankings, strict=True)
    said = [f"{row.label}: {text}" for row, ranking in pairs if (text := _by_means(ranking, named))]
    if said:
        yield f"By means instead of medians, where that lies outside the interval: {'; '.join(said)}."


def _by_means(ranking: Ranking, named: Names) -> str:
    """Return ``JAX 1.33×, torch 1.41×`` of those whose ratio by means lies outside its interval."""
    return ", ".join(
        f"{named[one.rival]} {significant(1 / one.by_means)}×" for one in ranking.comparisons if one.by_means
    )


def _disturbed(row: Row, named: Names, cores: int) -> str:
    """Return why a row has no verdict: how much of the machine others used, and who suffered from it."""
    found = disturbance(row, cores)
    share = f"{found.share:.0%} of this machine" if found else "a part of this machine"
    share += f" and {found.card:.0%} of the GPU" if found and found.card else ""
    worst = f"; {named[found.slowed]} suffers most from that" if found and found.slowed else ""
    times = f" ({found.times:.2g} times as long, measured)" if found and found.times else ""
    return f"{WARNED} Not decided: other processes used {share}{worst}{times}. Close them and run again."


def _ranked(row: Row, ranking: Ranking, named: Names) -> Iterator[str]:
    """Yield who is fastest, or who is level with whom, and by how much the others are slower."""
    if ranking.fastest is None:
        yield from _alone(row, named)
        return
    fastest = named[ranking.fastest]
    compared = sorted(ranking.comparisons, key=lambda one: one.ratio.inverse.value)
    if ranking.withheld:
        yield f"no verdict: a column measured twice differs from itself. {fastest} {_ahead(compared, named, 'was')}."
    elif ranking.disturbed:
        yield f"{fastest} {_ahead(compared, named, 'looks fastest,')}."
    elif not ranking.proven:
        yield f"{fastest} {_ahead(compared, named, 'looks fastest,')} ({_too_few(row)}: not yet proven)."
    elif ranking.first is not None:
        yield f"{fastest} {_ahead(compared, named, 'is fastest,')}."
    else:
        yield from _undecided(fastest, compared, named)


def _undecided(fastest: str, compared: list[Comparison], named: Names) -> Iterator[str]:
    """Yield who is level with a row's first column, whom it is ahead of, and who is ahead of it."""
    beaten, behind = ([one for one in compared if one.verdict is it] for it in (Verdict.FASTER, Verdict.SLOWER))
    level = [one for one in compared if one not in beaten and one not in behind]
    if level:
        ratios = ", ".join(f"{named[one.rival]} {times(one.ratio.inverse)}" for one in level)
        equal = listed([fastest, *(named[one.rival] for one in level)])
        yield f"{equal} are level: no significant difference ({ratios})."
    if beaten:
        yield f"{fastest} {_ahead(beaten, named, 'is')}."
    for one in behind:
        yield f"{named[one.rival]} is {times(one.ratio)} faster than {fastest}: no column is the fastest of all."


def _ahead(compared: list[Comparison], named: Names, verb: str) -> str:
    """Return ``is fastest, 3.9× (3.7–4.1) faster than TensorFlow, 6.9× (6.6–7.2) than torch``."""
    if not compared:
        return verb.rstrip(",")
    first, *others = compared
    parts = [f"{times(first.ratio.inverse)} faster than {named[first.rival]}"]
    parts += [f"{times(one.ratio.inverse)} than {named[one.rival]}" for one in others]
    return f"{verb} {', '.join(parts)}"


def _too_few(row: Row) -> str:
    words = {1: "one round", 2: "two rounds"}
    return words.get(row.rounds, f"fewer than {MIN_TRIALS_FOR_INTERVAL} rounds")


def _alone(row: Row, named: Names) -> Iterator[str]:
    """Yield the time of each column that is compared with no other."""
    unit = BY_NAME[row.headline].unit
    for column, cell in row.cases.items():
        found = cell.estimate(row.headline)
        if found is not None and not column.options.control:
            what = "prediction" if row.workload.predicts_only else "step"
            yield f"{named[column]} takes {significant(found.value)} {unit} a {what}."


def _warned(row: Row, named: Names) -> Iterator[str]:
    doubted = [named[one] for one in row.cases if not one.options.control and is_warned(row, one)]
    if doubted:
        yield f"{WARNED} {listed(doubted)}: see Warnings."


def _failed(row: Row, named: Names) -> Iterator[str]:
    """Yield who failed and why; in one sentence with its cause where all did for the same one."""
    found = {column: cell.failure for column, cell in row.cases.items() if not column.options.control}
    causes = {failure.cause if failure else "" for failure in found.values()}
    if len(found) > 1 and len(causes) == 1 and (cause := causes.pop()):
        yield f"not measured: {cause}."
        return
    for column, failure in found.items():
        if failure is not None:
            yield f"{named[column]} failed: {CAUSES[failure.code]}."


def _of_duel(found: SizeSeries, duel: SeriesComparison, named: Names) -> str:
    """Return where one series overtakes another, or that none does."""
    a, b = named[duel.a], named[duel.b]
    first, last = (size_along(found.axis, size) for size in (duel.ratios[0][0], duel.ratios[-1][0]))
    span = f"{found.axis} {first}" + ("" if first == last else f" to {last}")
    if duel.crossings:
        return "; ".join(_overtaken(found.axis, one, named) for one in duel.crossings) + "."
    slower = next((sign for sign in duel.signs if sign), 0)
    if not slower:
        return f"{a} and {b} are level: no significant difference ({span})."
    winner, loser = (b, a) if slower > 0 else (a, b)
    equal = [size_along(found.axis, size) for (size, _), sign in zip(duel.ratios, duel.signs, strict=True) if not sign]
    where = f"at {span}, but level at {listed(equal)}" if equal else f"at every size ({span})"
    return f"{winner} is faster than {loser} {where}."


def _overtaken(axis: Axis, one: Crossing, named: Names) -> str:
    within = f" ({about(axis, one.interval[0])}–{about(axis, one.interval[1])})" if one.interval else ""
    at = about(axis, one.at)
    return f"{named[one.winner]} is faster than {named[one.loser]} from about {axis} {at}{within} on"
