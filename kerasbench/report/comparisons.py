"""Runs side by side (``compare``), machines side by side, and two versions that one run compared (``versus``)."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerasbench.analysis.cases import FIRST_STEP, HEADLINE, PREDICTED, PREDICTED_ONE, PREDICTED_RATE
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Verdict
from kerasbench.analysis.findings import Findings, MachineColumn, MachineRow, abreast, light
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.rankings import CONTROL_BOUND
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.versus import DEVICE_MEMORY, MEMORY, Change, Difference, RunComparison, VersionPair, Versus
from kerasbench.protocol.columns import AT
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report.answer import answer
from kerasbench.report.conditions import INSECURE
from kerasbench.report.figures import (
    as_given,
    case_name,
    could_have_seen,
    estimated,
    first_step,
    judged_together,
    paired,
    three_digits,
    timed_in,
    times,
    with_interval,
)
from kerasbench.report.sections import EMPTY, Cell, Page, Section, Table, texts
from kerasbench.text import NOTHING, blanked, count

UNIT = BY_NAME[HEADLINE].unit
BESIDE = "beside"
DECIDED = (Verdict.FASTER, Verdict.SLOWER)


def changes(found: RunComparison, old: str, new: str) -> Page:
    """Return what became of every case between two sets of results."""
    lines = []
    for title, cases in (("New", found.added), ("No longer measured", found.vanished)):
        if cases:
            lines.append(f"{title}: {', '.join(case_name(case) for case in cases)}.")
    for case, failure in found.failed:
        lines.append(f"Measured before, failing now: {case_name(case)}: {failure.code}: {failure.cause}")
    title = f"{timed_in([one.row for one in found.changes]).capitalize()}, new against old"
    if not found.changes:
        return Page("", [Section(title, ["No case was measured on both sides."], lines=lines)])
    table = Table(["case", old, new, "new / old", BESIDE, "verdict"], [_change(change) for change in found.changes])
    return Page("", [Section(title, table=table, lines=lines, notes=list(_change_notes(found)))])


def _change(change: Change) -> list[Cell]:
    beside = change.beside
    return [
        Cell(case_name(change.case, change.row.workload.predicts_only), warned=change.source_changed),
        estimated(change.old, UNIT),
        estimated(change.new, UNIT),
        estimated(change.ratio),
        Cell(f"{three_digits(beside.ratio)} ({beside.column.label})", beside.ratio) if beside else EMPTY,
        _verdict(change.verdict),
    ]


def _verdict(verdict: Verdict | None, of_memory: bool = False) -> Cell:
    """Return a verdict, bold where it is a difference; memory is neither slow nor fast."""
    words = {Verdict.SLOWER: "more", Verdict.FASTER: "less"} if of_memory else {}
    return EMPTY if verdict is None else Cell(words.get(verdict, verdict), strong=verdict in DECIDED)


def _change_notes(found: RunComparison) -> Iterator[str]:
    if found.overall is not None:
        cases = count(len(found.changes), "case")
        yield f"Geometric mean of new / old over {cases}: {found.overall:.3f}."
    for why, number in found.unjudged.items():
        yield f"Descriptive only, without verdicts: {count(number, 'case')}: {why}."
    if found.unjudged:
        yield "Without a verdict, a ratio may come from the versions, or from what the machine did meanwhile."
    if len(found.changes) > found.unjudged.total():
        yield "Verdicts: Welch's 95 % interval on logarithms, over the runs of each side, which were measured by turns."
    yield from could_have_seen(found.changes, found.effect)
    if any(change.beside for change in found.changes):
        yield f"{BESIDE}: the ratio to another column of the same run, new over old. Both were measured together."
    if any(change.source_changed for change in found.changes):
        yield "⚠: the scenario's source has changed."


def side_by_side(summaries: Sequence[tuple[str, Summary]]) -> Section:
    """Return the training step, or prediction, of several machines or sets of results, each with its name."""
    columns, rows = abreast(summaries)
    body = []
    for row in rows:
        name, column = row.fastest or ("", None)
        fastest = Cell(f"{name}: {column.label}") if column else EMPTY
        body.append([Cell(row.label), fastest, *(_abreast(row, column) for column in columns)])
    headers = ["scenario", "fastest measured", *(f"{name}: {column.label}" for name, column in columns)]
    notes = [
        "Bold: the fastest measured in each set of results. ×: the time relative to the fastest of all.",
        "These ratios are descriptive: machines and days differ in too many ways for a verdict.",
    ]
    timed = timed_in([row for _, summary in summaries for row in summary.rows]).capitalize()
    return Section(f"{timed}, side by side", table=Table(headers, body), notes=notes)


@dataclass(frozen=True)
class MachineBrief:
    """What a page of several machines says of one: little, so that a hundred of them fit into memory."""

    name: str
    summary: Summary  # without its trials
    answer: Section | None
    versions: dict[str, str]  # of each package that its children ran


def brief(name: str, found: Findings) -> MachineBrief:
    versions: dict[str, set[str]] = {"kerasbench": {found.record.kerasbench}}
    for trial in found.record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            versions.setdefault(package, set()).add(version)
    named = {package: " and ".join(sorted(own)) for package, own in versions.items()}
    return MachineBrief(name, light(found.summary), answer(found), named)


def of_machines(found: Sequence[MachineBrief], failed: Mapping[str, str]) -> Page:
    """Return the page of several machines, the answer first. ``failed``: those that were not done, and why."""
    summaries = [(one.name, one.summary) for one in found]
    sections = [_over_machines(summaries)] if len(found) > 1 else []
    if failed:
        rows = [texts(name, cause) for name, cause in failed.items()]
        sections.append(Section("Machines that were not done", table=Table(["machine", "why"], rows)))
    sections += [dataclasses.replace(one.answer, title=f"Answer of {one.name}") for one in found if one.answer]
    sections += [side_by_side(summaries)] if len(found) > 1 else []
    sections += filter(None, [_different(found)])
    carried = [one.summary.record.carried for one in found]
    insecure = f" ({INSECURE})" if any(one is not None and one.insecure for one in carried) else ""
    return Page(
        f"kerasbench on {count(len(found) + len(failed.keys() - {*dict(summaries)}), 'machine')}{insecure}", sections
    )


def _over_machines(summaries: Sequence[tuple[str, Summary]]) -> Section:
    """Return for each row which machine and column is fastest, and how long the fastest of each other takes."""
    _, rows = abreast(summaries)
    lines = []
    for row in rows:
        if row.fastest is None:
            continue
        name, column = row.fastest
        others = [
            f"on {other} {own.label} takes {three_digits(row.ratios[other, own])}× as long"
            for other, own in sorted(row.firsts - {row.fastest}, key=row.ratios.__getitem__)
        ]
        rest = "; ".join(others) or "no other machine has a figure to compare"
        lines.append(blanked(f"{row.label}: {column.label} on {name} is fastest; {rest}."))
    notes = ["The machines were not measured in turn with each other, so there are no verdicts between them."]
    return Section("Answer", lines=lines, notes=notes)


def _different(found: Sequence[MachineBrief]) -> Section | None:
    packages = dict.fromkeys(package for one in found for package in one.versions)
    body = []
    for package in packages:
        versions = [one.versions.get(package, NOTHING) for one in found]
        if len(set(versions)) > 1:
            body.append(texts(package, *versions))
    table = Table(["package", *(one.name for one in found)], body)
    return Section("Versions that differ", table=table) if body else None


def _abreast(row: MachineRow, column: MachineColumn) -> Cell:
    found, ratio = row.cases.get(column), row.ratios.get(column)
    if found is None:
        return EMPTY
    if isinstance(found, Failure):
        return Cell(found.code, failed=True)
    over = f", {three_digits(ratio)}×" if ratio is not None and ratio != 1 else ""
    return Cell(f"{with_interval(found, UNIT)}{over}", found.value, strong=column in row.firsts)


MANY = 12  # figures: more are too many for a terminal
SAYING = {
    HEADLINE: "a training step takes {} as long",
    PREDICTED: "predicting a batch takes {} as long",
    FIRST_STEP: "the first step takes {} as long",
    PREDICTED_ONE: "predicting one sample takes {} as long",
    PREDICTED_RATE: "predict does {} as many samples a second",
    MEMORY: "the process takes {} the memory",
    DEVICE_MEMORY: "the device holds {} as much",
}
COLUMNS = (
    "scenario", "workload", "backend", "device", "options", "figure", "unit", "base", "head", "ratio", "low", "high",
    "verdict",
)  # fmt: skip


def rows(found: Versus) -> Iterator[list[str | float | None]]:
    """Yield each figure of base and head as data, in the order of COLUMNS."""
    for one in found.differences:
        row, metric = one.pair.row, BY_NAME[one.metric]
        column = one.pair.base.paired
        cell = [row.scenario.name, row.workload.name, column.backend, column.device, column.options.label]
        figures = [one.base.value, one.head.value, one.ratio.value, one.ratio.low, one.ratio.high]
        yield [*cell, metric.name, metric.unit, *figures, str(one.verdict)]


def versions(found: Findings, briefly: bool = False) -> Section | None:
    """Return the answer and the training step, and in parts what else differs; ``briefly``: few of many figures."""
    if not found.versus:
        return None
    first, *others = (_versions(one, found.summary, briefly) for one in found.versus)
    return dataclasses.replace(first, parts=[*first.parts, *others])


def _versions(found: Versus, summary: Summary, briefly: bool) -> Section:
    answer, *details = sentences(found)
    steps, others = _table(found.headlines, found), _others(found, summary, briefly)
    notes, parts = list(_notes(found)) if steps else [], [others] if others else []
    return Section(f"{found.head} against {found.base}", [answer], steps, details, notes, parts)


def sentences(found: Versus) -> list[str]:
    """Return one sentence for all, then one for each figure that is worse or cannot be had."""
    return [blanked(one) for one in (_overall(found), *worse(found), *_undecided(found), *_unproven(found))]


def worse(found: Versus) -> list[str]:
    """Return a sentence for each figure of the head that is worse, and for each case that it has no figure of."""
    lines = [f"{_case(one.pair)}: {SAYING[one.metric].format(times(one.ratio))}." for one in found.regressions]
    for pair, failure in found.broken:
        what = f"{found.head} fails, {found.base} does not: {failure.code}: {failure.cause}"
        if failure.code is Code.PARITY:
            what = f"{found.head} computes something else than {found.base}: {failure.cause}"
        lines.append(f"{_case(pair)}: {what}.")
    return lines


def _undecided(found: Versus) -> Iterator[str]:
    for one in found.headlines:
        if one.withheld and one.control is not None:
            ratio = with_interval(one.control.ratio)
            yield f"{_case(one.pair)}: no verdict, {found.base} differs from itself: {ratio}."
    for pair in found.pairs:
        failure = pair.failure(pair.base)
        if failure is not None:
            yield f"{_case(pair)}: not compared, {found.base} has no figure: {failure.code}: {failure.cause}."


def _unproven(found: Versus) -> Iterator[str]:
    """Yield what moved that the head cannot have changed: a negative control."""
    for one in found.moved:
        yield (
            f"{_case(one.pair)}: unproven. Importing the backend takes {times(one.ratio)} as long with {found.head}, "
            "and all but Keras has the same version: something else is at work."
        )


def _case(pair: VersionPair) -> str:
    return f"{pair.row.label} {pair.name}"


def _overall(found: Versus) -> str:
    steps = found.headlines
    if not steps:
        return "Nothing was timed with both versions."
    words = {
        Verdict.SLOWER: "slower",
        Verdict.FASTER: "faster",
        Verdict.SAME: "the same",
        Verdict.INCONCLUSIVE: "undecided",
    }
    counts = Counter(one.verdict for one in steps)
    parts = ", ".join(f"{word} in {counts[verdict]}" for verdict, word in words.items() if counts[verdict])
    means = ""
    if len(steps) > 1:
        each = ", ".join(f"{name} {mean:.3f}" for name, mean in found.means.items())
        of_backends = f" ({each})" if len(found.means) > 1 else ""
        means = f"; geometric mean of the ratios {found.overall:.3f}{of_backends}"
    what = timed_in([one.pair.row for one in steps]).capitalize()
    return f"{what} of {found.head} against {found.base}, {count(len(steps), 'row')}: {parts}{means}."


def _notes(found: Versus) -> Iterator[str]:
    steps = found.headlines
    yield (
        f"head / base: the time with {AT}{found.head} over that with {AT}{found.base}, "
        f"{paired([one.pair.row for one in steps])}, with its 95 % interval."
    )
    least, many = as_given(found.effect), judged_together(len(steps))
    yield f"Slower or faster: significantly, by more than {least}. Same: significantly within {least}{many}."
    yield (
        f"base / base: {AT}{found.base} was measured twice in every block. The ratio should be 1; smaller differences "
        f"than its interval cannot be distinguished. If it lies wholly outside ±{as_given(CONTROL_BOUND)}, there is no "
        "verdict."
    )
    yield from could_have_seen([one for one in steps if not one.withheld], found.effect)
    few = [one.pair.row for one in steps if one.ratio.trials < MIN_TRIALS_FOR_INTERVAL]
    if few:
        most = all(row.rounds >= MIN_TRIALS_FOR_INTERVAL for row in few)
        why = "Where most rounds were disturbed" if most else "Fewer than three rounds"
        yield f"{why}: intervals come from each round's slices, widened by what base / base shows."


def _others(found: Versus, summary: Summary, briefly: bool) -> Section | None:
    every = [one for one in found.differences if not one.is_headline]
    shown = [one for one in every if one.verdict in DECIDED] if briefly and len(every) > MANY else every
    if not every:
        return None
    left = len(every) - len(shown)
    notes = [
        *([f"Not shown: {count(left, 'figure')} without a significant difference. The page has them."] if left else []),
        *first_step(summary),
        *could_have_seen([one for one in shown if not one.withheld], found.effect),
        "Verdicts on each kind of figure are corrected together. A first step and memory have no slices: they need "
        "three rounds.",
    ]
    table = _table(shown, found, kinds=True)
    return Section("First step, prediction and memory", table=table, notes=notes, folded=True)


def _table(shown: Sequence[Difference], found: Versus, kinds: bool = False) -> Table | None:
    """Return a table of figures; ``kinds``: they are of several kinds, which a column names."""
    rows = []
    for one in shown:
        metric = BY_NAME[one.metric]
        verdict = _verdict(None if one.withheld else one.verdict, one.metric in (MEMORY, DEVICE_MEMORY))
        rows.append(
            [
                *texts(one.pair.row.label, one.pair.name, *([metric.title] if kinds else [])),
                estimated(one.base, metric.unit),
                estimated(one.head, metric.unit),
                estimated(one.ratio),
                EMPTY if one.control is None else estimated(one.control.ratio),
                verdict,
            ]
        )
    if not rows:
        return None
    figure = ["figure"] if kinds else []
    labels = [f"{AT}{found.base}", f"{AT}{found.head}"]
    return Table(["scenario", "column", *figure, *labels, "head / base", "base / base", "verdict"], rows)
